#!/bin/bash
# Two loops of different users below a client of a higher level take turns: the hardware stops each in the middle of its
# kernel. That counts neither as time on the GPU nor as disobedience.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
. e2e/standalone/machine.sh
hardware=''
prepare loop-runner
. e2e/loop/runner.sh
sed -i 's/    - {uid: 65534, level: low}/&\n    - {uid: 65532, level: low}/' "$work/agent.yaml"
users=(65534 65532)

works_on() { # UID: a loop that always has work, and counts on a page of its own
    page=$work/client/out$1
    new_page
    governed "$1" loop-runner --kernel spinner --page "$page" --n 1000000000000 --stop-file "$work/client/stop$1" \
        >"$work/loop$1.log" 2>&1 &
    turns[$1]=$!
    clients[$!]=loop
}
ends() { # UID
    touch "$work/client/stop$1"
    wait "${turns[$1]}"
    unset "clients[${turns[$1]}]"
}
both() { # COMMAND, with the page of each
    local user
    for user in "${users[@]}"; do page=$work/client/out$user && "$@" || return; done
}
gpu_seconds() { status '[.clients[] | select(.level == 0) | .gpuSeconds] | add // 0'; }
clock() { date +%s.%N; }
# They take turns, so together they run for no longer than the time that passes. Half as much again is for reports that come late.
took_turns() { # SECONDS
    local before began
    before=$(gpu_seconds) began=$(clock)
    sleep "$1"
    python3 -c 'import sys; before, began, after, end = map(float, sys.argv[1:]); sys.exit(not 0 < after - before < 1.5 * (end - began))' \
        "$before" "$began" "$(gpu_seconds)" "$(clock)"
}
declare -A turns

check "the agent is up" start_agent
check "hardware preemption works" eventually 30 works
governed 0 loop-runner --kernel timers --n 3600000000000 --ready-file "$work/client/ready" --stop-file "$work/client/stop0" \
    >"$work/loop0.log" 2>&1 &
turns[0]=$!
clients[$!]=above
check "a client of a higher level waits for a timer" eventually 30 test -e "$work/client/ready"
for user in "${users[@]}"; do works_on "$user"; done
check "two below it go on" eventually 30 both moves
check "their time on the GPU is no more than what passes" took_turns 4
check "none is taken for one that runs while it is stopped" eval '! grep "runs while it is stopped" "$work/agent.log"'
check "both still go on" eventually 10 both moves
for user in "${users[@]}" 0; do check "the loop of user $user ends when it is told to" ends "$user"; done
[ $failed -eq 0 ] || tail -n 20 "$work"/*.log
exit $failed
