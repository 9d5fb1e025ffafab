#!/bin/bash
# Under MPS a busy client of a few blocks, for which `yield: needed` holds, is above applications in forms: their kernels
# leave it some SMs and go on on the others, all the time. Every value is right.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
. e2e/standalone/machine.sh
prepare vector-add matrix-multiply reduction kernels stream-order burst
# A block keeps its SM for as long as it takes two processors to begin eight of them: workers are on all SMs at the same
# time, also on the last ones, which are to be left.
export WEIR_SIM_SMS=8 WEIR_SIM_BLOCK_US=500
mkdir "$work/cache"
echo "compile: {mode: ptx, cacheDir: $work/cache}" >>"$work/agent.yaml"
# Before the rules of machine.sh: the first that fits decides.
sed -i 's|  rules:|  rules:\n    - {uid: 65531, level: high, yield: needed}|' "$work/agent.yaml"

under_mps

start_small() { # BLOCKS: it asks for so many SMs, whatever it finds faster
    rm -rf "$work/small" && mkdir -m 777 "$work/small"
    WEIR_YIELD_SMS=$1 start_burst "$work/small" 65531 "a busy client of $1 blocks" \
        --size "$1" --kernels 3 --gap-min-us 2000 --gap-max-us 6000
}

of_low() { status "[.clients[] | select(.level == 0) | .$1] | add // 0"; }
# The agent reports that a kernel of the program PID left a part of the SMs, before it ends. Its first launches, of
# unknown length, have 1344 continuations each, which takes a busy machine seconds.
leaves_a_part() { # PID
    local until=$((SECONDS + 180))
    until [ "$(of_low partialLeaves)" -gt 0 ]; do
        kill -0 "$1" 2>/dev/null && [ $SECONDS -lt $until ] || return 1
        sleep 0.1
    done
}

# The ticket's time counts, and on a busy machine it is long.
export WEIR_PREEMPT_LATENCY_US=1000000
in_form() { # FORM PROGRAM ARGUMENTS...
    local form=$1 name=$2 low
    shift
    rm -f "$work/enough"
    WEIR_FORM=$form governed 65534 "$@" --seconds 300 --stop-file "$work/enough" >"$work/$name-$form.log" 2>&1 &
    low=$!
    clients[$low]=$name
    check "$name, $form: it leaves a part of the SMs" leaves_a_part "$low"
    sleep 1 # of leaving and coming back
    touch "$work/enough"
    check "$name, $form: every value is right" wait "$low"
    unset "clients[$low]"
}

check "the agent is up" start_agent
for blocks in 2 5; do
    start_small $blocks
    for form in persistent resumable; do
        in_form $form vector-add
        in_form $form matrix-multiply
        in_form $form reduction
    done
    stop_busy
done
start_small 2
WEIR_CHUNK=3 in_form persistent matrix-multiply --size 96
for form in persistent resumable; do
    check "all kernels, $form: every value is right" \
        eval "WEIR_FORM=$form governed 65534 kernels --repeat 3 --seconds 0.2 >'$work/kernels-$form.log' 2>&1"
    check "the order of a stream, $form" \
        eval "WEIR_FORM=$form governed 65534 stream-order --seed 3 --seconds 3 >'$work/order-$form.log' 2>&1"
done
stop_busy
[ $failed -eq 0 ] || { tail -n 4 "$work"/*.log; exit 1; }
