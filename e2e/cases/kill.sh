#!/bin/bash
# Clients of all levels share the simulated GPU, and are killed at random moments with SIGKILL. Then: those
# that were not killed come to a right end, no demand bit is left, the agent knows nobody any more, and the
# GPU is free. ROUNDS: how many are killed.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
rounds=${ROUNDS:-60}
work=$(mktemp -d)
chmod 755 "$work"
seed=${SEED:-$RANDOM$RANDOM}
RANDOM=$((seed % 32768))
declare -A clients # pid -> what it is
agent=

finish() {
    local pid
    for pid in "${!clients[@]}" $agent; do
        kill -KILL "$pid" 2>/dev/null
        wait "$pid" 2>/dev/null
    done
    rm -rf "$work"
}
trap finish EXIT

failed=0
say() { # CONDITION-STATUS TEXT
    if [ "$1" -eq 0 ]; then echo "ok - $2"; else echo "not ok - $2 (SEED=$seed)"; failed=1; fi
}

eventually() { # SECONDS COMMAND...
    local until=$((SECONDS + $1))
    shift
    until "$@"; do
        [ $SECONDS -lt $until ] || return 1
        sleep 0.1
    done
}

mkdir "$work/state" && mkdir -m 777 "$work/sim"
cat >"$work/agent.yaml" <<END
socket: $work/agent.sock
stateDir: $work/state
control: {socket: $work/control.sock}
metrics: {address: ""}
standalone:
  rules:
    - {uid: 65534, level: low}
    - {uid: 65533, level: normal}
    - {uid: 0, level: high}
END
export WEIR_SIM_DIR=$work/sim WEIR_SIM_SMS=4 WEIR_SIM_BLOCK_US=300
cp -L "$B/simcuda/libcuda.so.1" "$B/lib/libweir.so" "$work/"
mkdir "$work/bin" && cp "$B/bin/filler" "$B/bin/burst" "$B/bin/stream-order" "$B/bin/vector-add" "$work/bin/"
chmod -R a+rX "$work/bin" "$work"/*.so*

"$B/bin/weir-agent" --config "$work/agent.yaml" --standalone >"$work/agent.log" 2>&1 &
agent=$!
eventually 10 test -S "$work/agent.sock"
say $? "the agent is up"

guest() { # UID PROGRAM ARGUMENTS...
    local uid=$1
    shift
    exec setpriv --reuid="$uid" --regid="$uid" --clear-groups env LD_PRELOAD="$work/libweir.so" \
        WEIR_DRIVER="$work/libcuda.so.1" WEIR_SOCKET="$work/agent.sock" LD_LIBRARY_PATH="$work" "$@"
}

uids=(65534 65533 0)
start() {
    local uid=${uids[RANDOM % 3]} program
    case $((RANDOM % 3)) in
    0) program="filler --waves 3 --seconds 600 --stop-file $work/stop" ;;
    1) program="burst --kernels 5 --requests 1000000 --gap-min-us 1000 --gap-max-us 20000 --stop-file $work/stop" ;;
    2) program="stream-order --iterations 1000000 --seed $RANDOM --stop-file $work/stop" ;;
    esac
    # shellcheck disable=SC2086
    guest "$uid" "$work/bin/"$program >"$work/client.$RANDOM.log" 2>&1 &
    clients[$!]="uid $uid: $program"
}

nap() {
    sleep "0.$(printf %03d $((RANDOM % 150 + 5)))"
}

for _ in 1 2 3 4 5; do start; done
for ((round = 0; round < rounds; round++)); do
    nap
    pids=("${!clients[@]}")
    victim=${pids[RANDOM % ${#pids[@]}]}
    if ! kill -KILL "$victim" 2>/dev/null; then
        echo "# ended before it was killed: ${clients[$victim]}"
        failed=1
    fi
    wait "$victim" 2>/dev/null
    unset "clients[$victim]"
    start
done
say $failed "$rounds clients were killed at random moments"

touch "$work/stop"
stuck=0
for pid in "${!clients[@]}"; do
    for _ in $(seq 300); do
        kill -0 "$pid" 2>/dev/null || break
        sleep 0.1
    done
    if kill -0 "$pid" 2>/dev/null; then
        echo "# stuck: ${clients[$pid]}"
        stuck=1
        kill -KILL "$pid"
    fi
    wait "$pid" || { echo "# exit status $?: ${clients[$pid]}"; stuck=1; }
    unset "clients[$pid]"
done
say $stuck "those that live on come to a right end"

words() {
    cat "$work"/state/*/demand-* | od -An -v -t x8 -w4096 | awk '{ print $1 }' | sort -u | tr -d '\n'
}
no_demand() { [ "$(words)" = 0000000000000000 ]; }
eventually 3 no_demand
say $? "no demand bit is left"

nobody() { [ "$("$B/bin/weirctl" status --json --socket "$work/control.sock" | jq '.clients | length')" = 0 ]; }
eventually 3 nobody
say $? "the agent knows nobody any more"

(guest 65534 timeout 60 "$work/bin/vector-add") >"$work/last.log" 2>&1
say $? "the GPU is free for the lowest"
[ $failed -eq 0 ] || { tail -n 3 "$work"/*.log; exit 1; }
