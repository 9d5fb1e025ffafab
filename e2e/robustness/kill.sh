#!/bin/bash
# Clients of all levels share the simulated GPU and are killed at random moments with SIGKILL. Then the others end
# with right values, no demand bit is left, the agent has no clients, and the GPU is free. ROUNDS: how many are killed.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
. e2e/standalone/machine.sh
rounds=${ROUNDS:-60}
seed=${SEED:-$((RANDOM * 32768 + RANDOM))}
RANDOM=$((seed % 32768))
echo "# SEED=$seed"
prepare filler burst stream-order vector-add
export WEIR_SIM_SMS=4 WEIR_SIM_BLOCK_US=300

check "the agent is up" start_agent

uids=(65534 65533 0)
declare -A logs
started=0
start() {
    local uid=${uids[RANDOM % 3]} program
    case $((RANDOM % 3)) in
    0) program="filler --waves 3 --seconds 600" ;;
    1) program="burst --kernels 5 --requests 1000000 --gap-min-us 1000 --gap-max-us 20000" ;;
    2) program="stream-order --iterations 1000000 --seed $RANDOM" ;;
    esac
    started=$((started + 1))
    # shellcheck disable=SC2086 # words are meant
    governed "$uid" $program --stop-file "$work/stop" >"$work/client-$started.log" 2>&1 &
    clients[$!]="uid $uid: $program"
    logs[$!]=$work/client-$started.log
}

for _ in 1 2 3 4 5; do start; done
ended=0
for ((round = 0; round < rounds; round++)); do
    sleep "0.$(printf %03d $((RANDOM % 150 + 5)))"
    pids=("${!clients[@]}")
    victim=${pids[RANDOM % ${#pids[@]}]}
    if ! kill -KILL "$(program_of "$victim")" 2>/dev/null; then
        echo "# ended before it was killed: ${clients[$victim]}"
        ended=1
    else
        rm -f "${logs[$victim]}"
    fi
    wait "$victim" 2>/dev/null
    unset "clients[$victim]"
    start
done
report $ended "$rounds clients were killed at random moments"

touch "$work/stop"
stuck=0
gone() { ! kill -0 "$1" 2>/dev/null; }
for pid in "${!clients[@]}"; do
    if ! eventually 30 gone "$pid"; then
        echo "# stuck: ${clients[$pid]}"
        stuck=1
        kill -KILL "$(program_of "$pid")"
    fi
    wait "$pid" || { echo "# exit status $?: ${clients[$pid]}"; stuck=1; }
    unset "clients[$pid]"
done
report $stuck "the others end with right values"

no_demand() {
    [ "$(cat "$work"/state/*/demand-* | od -An -v -t x8 -w4096 | awk '{ print $1 }' | sort -u)" = 0000000000000000 ]
}
check "no demand bit is left" eventually 3 no_demand
nobody() { [ "$(status '.clients | length')" = 0 ]; }
check "the agent has no clients" eventually 3 nobody
check "the GPU is free for the lowest level" governed 65534 vector-add
[ $failed -eq 0 ] || { tail -n 3 "$work"/*.log; exit 1; }
