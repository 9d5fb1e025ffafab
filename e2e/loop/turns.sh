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

gpu_seconds() { status '[.clients[] | select(.level == 0) | .gpuSeconds] | add // 0'; }
clock() { date +%s.%N; }
# Together they run for no longer than the time that passes. Half as much again is for reports that come late.
took_turns() { # SECONDS
    local before began
    before=$(gpu_seconds) began=$(clock)
    sleep "$1"
    python3 -c 'import sys; before, began, after, end = map(float, sys.argv[1:]); sys.exit(not 0 < after - before < 1.5 * (end - began))' \
        "$before" "$began" "$(gpu_seconds)" "$(clock)"
}

check "the agent is up" start_agent
check "hardware preemption works" eventually 30 works
check "a client of a higher level waits for a timer" waits_above high
works_on first 65534
works_on second 65532
check "two below it go on" eventually 30 all_move first second
check "their time on the GPU is no more than what passes" took_turns 4
check "none is taken for one that runs while it is stopped" eval '! grep "runs while it is stopped" "$work/agent.log"'
check "both still go on" eventually 10 all_move first second
for name in first second high; do check "loop $name ends when it is told to" ends "$name"; done
[ $failed -eq 0 ] || tail -n 20 "$work"/*.log
exit $failed
