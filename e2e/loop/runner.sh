# Sourced by tests of loops, after e2e/standalone/machine.sh and prepare: a loop of loop-runner as a client of the lowest
# level, in the background, and what the agent and its page of counts say of it.
# shellcheck shell=bash disable=SC2034
export WEIR_SIM_SMS=2 WEIR_SIM_SLICES=1 LD_LIBRARY_PATH=$PWD/$B/simcuda
mkdir -m 777 "${work:?}/client"
page=$work/client/out
runner=

loop() { # UID OPTION...
    local uid=$1
    shift
    governed "$uid" loop-runner "$@" >"$work/loop.json" 2>"$work/loop.log"
}
begin() { # OPTION...
    rm -f "$work/client"/{ready,stop}
    loop 65534 --ready-file "$work/client/ready" --stop-file "$work/client/stop" "$@" &
    runner=$!
    clients[$runner]=loop
    eventually 30 test -e "$work/client/ready"
}
finish_loop() {
    touch "$work/client/stop"
    wait "$runner"
    unset "clients[$runner]"
}
ended_by_kill() { # its shell says so
    wait "$runner" 2>/dev/null
    [ $? = 137 ] && unset "clients[$runner]"
}
kill_loop() {
    kill -KILL "$(program_of "$runner")"
    ended_by_kill
}
of_loop() { # FILTER
    status -e "first(.clients[] | select(.command == \"loop-runner\" and .uid == 65534)) | $1" 2>/dev/null
}
is() { # FILTER
    [ "$(of_loop "$1")" = true ]
}
is_gone() { [ "$(status '[.clients[] | select(.command == "loop-runner")] | length')" = 0 ]; }
new_page() { rm -f "$page" && head -c 4096 /dev/zero >"$page" && chmod 666 "$page"; }
count() { od -An -tu8 -N8 "$page" | tr -d ' '; }
moves() { local before; before=$(count) && sleep 0.2 && [ "$(count)" != "$before" ]; }
stands() { ! moves; }
works() { [ "$(status '.gpus[0].hardwarePreemption')" = true ]; }
weirctl() { "$B/bin/weirctl" --socket "$work/control.sock" "$@"; }

# Several loops, each with a name.
declare -A named # name -> pid

works_on() { # NAME UID: a loop that always has work, and counts on a page of its own
    page=$work/client/out-$1
    new_page
    governed "$2" loop-runner --kernel spinner --page "$page" --n 1000000000000 --stop-file "$work/client/stop-$1" \
        >"$work/loop-$1.log" 2>&1 &
    named[$1]=$!
    clients[$!]=loop
}
waits_above() { # NAME: a loop of the highest level waits for a timer
    governed 0 loop-runner --kernel timers --n 3600000000000 --ready-file "$work/client/ready" \
        --stop-file "$work/client/stop-$1" >"$work/loop-$1.log" 2>&1 &
    named[$1]=$!
    clients[$!]=loop
    eventually 30 test -e "$work/client/ready"
}
ends() { # NAME
    touch "$work/client/stop-$1"
    wait "${named[$1]}"
    unset "clients[${named[$1]}]"
}
all_move() { # NAME...
    local name
    for name; do page=$work/client/out-$name && moves || return; done
}
