#!/bin/bash
# Order is kept while signals interrupt the program's threads all the time, children are forked, and threads and contexts
# end with work outstanding; below a busy client, at its level, and with kernels in forms, under time-slicing and under
# MPS. Programs that call exit() in the middle end. Each of these mistakes in libweir makes it fail: the last continuation
# of a chain may leave; a forked child keeps its parent's state; an ended stream's preempt slot is free at once.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
. e2e/standalone/machine.sh
prepare burst stream-order
export WEIR_SIM_SMS=2 WEIR_PREEMPT_LATENCY_US=1000000
seed=${SEED:-$RANDOM}
echo "# SEED=$seed"

storm() { # UID OPTION...
    local uid=$1
    shift
    governed "$uid" stream-order --seed "$seed" "$@" >>"$work/storm.log" 2>&1
    local status=$?
    seed=$((seed + 1))
    return $status
}
leaves() {
    for _ in 1 2 3 4 5; do storm "$1" --leave-ms $((1 + RANDOM % 300)) || return 1; done
}
all() { # UNDER
    start_busy
    check "$1, level 0 below a busy client" storm 65534 --storms
    check "$1, level 2 beside a busy client" storm 0 --storms
    for form in sliced persistent resumable; do
        WEIR_FORM=$form check "$1, $form" storm 65534 --storms
    done
    check "$1, level 0: exit() in the middle" leaves 65534
    check "$1, level 2: exit() in the middle" leaves 0
    stop_busy
    rm -f "$work/stop" "$work/ready"
}

check "the agent is up" start_agent
all "time-slicing"
mkdir "$work/mps" && touch "$work/mps/control"
export CUDA_MPS_PIPE_DIRECTORY=$work/mps
all "MPS"
nobody() { [ "$(status '.clients | length')" = 0 ]; }
check "the agent has no clients" eventually 10 nobody
[ $failed -eq 0 ] || { tail -n 4 "$work"/*.log; exit 1; }
