# Sourced: the events of a soak, one function each. Repairs are scheduled with `later`.
# shellcheck shell=bash disable=SC2004,SC2034,SC2154

kills=0 n_slow=0
disturbed=$SECONDS # when something was last away, or came back
jobs_later=()      # "SECOND COMMAND"
declare -A away    # parts that we have taken away
declare -A came_back # when

later() { # SECONDS COMMAND...
    jobs_later+=("$((SECONDS + $1)) ${*:2}")
}

run_later() {
    local job jobs=(${jobs_later[@]+"${jobs_later[@]}"})
    jobs_later=()
    for job in ${jobs[@]+"${jobs[@]}"}; do
        if [ "${job%% *}" -le $SECONDS ]; then
            ${job#* }
            disturbed=$SECONDS
        else
            jobs_later+=("$job")
        fi
    done
}

# take_away NAME SECONDS: kills a part; it starts again that much later, in the background.
take_away() {
    [ -z "${away[$1]:-}" ] || return 0
    away[$1]=1
    kill -KILL "$(pid_of "$1")"
    until_ok 5 stopped "$1"
    kills=$((kills + 1))
    {
        sleep "$2"
        "start_$1"
    } &
    later $(($2 + 1)) is_back "$1" $((SECONDS + $2 + 60))
}

# Polled, because pods come and go meanwhile.
is_back() { # NAME DEADLINE
    if ! "is_well_$1" > /dev/null 2>&1; then
        [ $SECONDS -lt "$2" ] || violation "$1 does not come back"
        later 2 is_back "$1" $(($2 > SECONDS ? $2 : SECONDS + 60))
        return
    fi
    unset "away[$1]"
    came_back[$1]=$SECONDS
}

is_well_agent() { agent_ready; }
is_well_apiserver() { apiserver_ready; }
is_well_plugin() { pid_of plugin; }
is_well_kubelet() { pid_of kubelet; }

# away_lately NAME SECONDS
away_lately() {
    [ -n "${away[$1]:-}" ] || [ $((SECONDS - ${came_back[$1]:--1000})) -lt "$2" ]
}

do_agent() { take_away agent "$1"; }
do_plugin() { take_away plugin "$1"; }
do_kubelet() { take_away kubelet "$1"; }
do_api() { take_away apiserver "$1"; }

# The pod and the pid of the client in a slot, or in the next slot that has one.
victim() {
    local i name pid
    local -A clients
    while read -r name pid; do
        [ -z "$name" ] || clients[$name]=$pid
    done < <(status 2> /dev/null | jq -r '.clients[] | "\(.pod) \(.pid)"')
    for ((i = 0; i < slots; i++)); do
        name=${slot_pod[($1 + i) % slots]:-none}
        [ -z "${clients[$name]:-}" ] || {
            echo "$name ${clients[$name]}"
            return
        }
    done
    return 1
}

do_client() {
    local name pid found
    [ -z "${away[agent]:-}" ] && found=$(victim "$1") || return 0
    read -r name pid <<< "$found"
    killed[$name]=1
    kill -KILL "$pid" 2> /dev/null && kills=$((kills + 1))
}

do_pod() {
    local name=${slot_pod[$1]:-}
    [ -n "$name" ] && [ -z "${away[apiserver]:-}" ] || return 0
    killed[$name]=1
    pod_delete "$name" 2> /dev/null
    kills=$((kills + 1))
}

# Fills the folders of the agent's state and cache for SECONDS, in the background.
do_disk() {
    local folder
    [ -z "${away[disk]:-}" ] || return 0
    away[disk]=1
    for folder in "$W/tmpfs/state" "$W/cache"; do
        dd if=/dev/zero of="$folder/full" bs=4k > /dev/null 2>&1
    done
    {
        sleep "$1"
        rm -f "$W/tmpfs/state/full" "$W/cache/full"
    } &
    later $(($1 + 1)) disk_has_room
}

disk_has_room() {
    unset "away[disk]"
}

do_clock() {
    set_clock "$1"
    later 5 set_clock 0
}

set_clock() {
    python3 -c 'import struct, sys
open(sys.argv[1], "r+b").write(struct.pack("q", int(sys.argv[2])))' "$W/realtime" "$1"
}

# Its complaints count only if the agent lived all the time.
do_slow() {
    local log=$W/loiter-$((n_slow += 1)).log
    { e2e/robustness/soak/loiter.py "$W/tmpfs/run/agent.sock" "$W/control.sock" "$metrics_port" "$1" 10 2>&1 ||
        echo failed; } > "$log" &
    later 20 hear_slow "$log" "$(pid_of agent || echo none)"
}

hear_slow() {
    if [ "$(pid_of agent)" = "$2" ] && grep -q failed "$1"; then
        violation "slow sockets: $(head -n 1 "$1")"
    fi
    rm -f "$1"
}
