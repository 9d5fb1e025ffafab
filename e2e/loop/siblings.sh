#!/bin/bash
# Two processes of one tenant below an idle client of a higher level: neither waits for the other one's turn, and
# both go on, as the hardware's slices are long enough for that while both work.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
. e2e/standalone/machine.sh
hardware=''
prepare loop-runner
. e2e/loop/runner.sh

works_on() { # NUMBER: a loop that always has work, and counts on a page of its own
    page=$work/client/out$1
    new_page
    governed 65534 loop-runner --kernel spinner --page "$page" --n 1000000000000 --stop-file "$work/client/stop$1" \
        >"$work/loop$1.log" 2>&1 &
    siblings[$1]=$!
    clients[$!]=sibling
}
ends() { # NUMBER
    touch "$work/client/stop$1"
    wait "${siblings[$1]}"
    unset "clients[${siblings[$1]}]"
}
moves_on() { page=$work/client/out$1 moves; }
both_move() { moves_on 1 && moves_on 2; }
has_slice() { # US: all clients of the lowest level
    status -e "[.clients[] | select(.level == 0) | .sliceMicroseconds] | length > 0 and all(. == $1)" >/dev/null
}
declare -A siblings

check "the agent is up" start_agent
check "hardware preemption works" eventually 30 works
governed 0 loop-runner --kernel timers --n 3600000000000 --ready-file "$work/client/ready" --stop-file "$work/client/stop0" \
    >"$work/loop0.log" 2>&1 &
siblings[0]=$!
clients[$!]=above
check "a client of a higher level waits for a timer" eventually 30 test -e "$work/client/ready"
works_on 1
check "a client below it goes on" eventually 30 moves_on 1
check "its slice is short" eventually 10 has_slice 5
works_on 2
check "both go on with another one of its tenant" eventually 30 both_move
check "they go on for a second" eval 'sleep 1 && both_move'
check "the second one ends when it is told to" ends 2
check "the first one goes on" eventually 30 moves_on 1
check "its slice is short again" eventually 10 has_slice 5
check "it ends when it is told to" ends 1
check "the client above ends when it is told to" ends 0
[ $failed -eq 0 ] || tail -n 20 "$work"/*.log
exit $failed
