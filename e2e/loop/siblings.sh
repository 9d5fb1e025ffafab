#!/bin/bash
# Two processes of one tenant below an idle client of a higher level: neither waits for the other one's turn, and
# both go on, as the hardware's slices are long enough for that while both work.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
. e2e/standalone/machine.sh
hardware=''
prepare loop-runner
. e2e/loop/runner.sh

has_slice() { # US: all clients of the lowest level
    status -e "[.clients[] | select(.level == 0) | .sliceMicroseconds] | length > 0 and all(. == $1)" >/dev/null
}

check "the agent is up" start_agent
check "hardware preemption works" eventually 30 works
check "a client of a higher level waits for a timer" waits_above high
works_on first 65534
check "a client below it goes on" eventually 30 all_move first
check "its slice is short" eventually 10 has_slice 5
works_on second 65534
check "both go on with another one of its tenant" eventually 30 all_move first second
check "they go on for a second" eval 'sleep 1 && all_move first second'
check "the second one ends when it is told to" ends second
check "the first one goes on" eventually 30 all_move first
check "its slice is short again" eventually 10 has_slice 5
check "it ends when it is told to" ends first
check "the client above ends when it is told to" ends high
[ $failed -eq 0 ] || tail -n 20 "$work"/*.log
exit $failed
