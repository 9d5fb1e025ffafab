#!/bin/bash
# The agent is killed again and again while clients of three levels use two simulated GPUs. Each new agent knows all
# clients and sees their launches.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
. e2e/standalone/machine.sh
prepare burst
export WEIR_SIM_GPUS=2 WEIR_SIM_SMS=2 WEIR_SIM_BLOCK_US=2000
rounds=${ROUNDS:-6} n=9
uids=(65534 65533 0)

check "the agent is up" start_agent
for ((i = 0; i < n; i++)); do
    CUDA_VISIBLE_DEVICES=$((i % 2)) governed "${uids[i % 3]}" burst --kernels 2 --requests 1000000 --gap-min-us 20000 \
        --gap-max-us 100000 --stop-file "$work/stop" >"$work/burst-$i.log" 2>&1 &
    clients[$!]="burst $i"
done

# Each is known, at the level that its user has, and has launched something that this agent knows of.
all_seen() {
    [ "$(status '[.clients[] | select(.launches > 0 and .level == ({"65534": 0, "65533": 1, "0": 2}[.uid | tostring]))] | length')" = "$n" ]
}

check "$n clients work" eventually 60 all_seen
for ((round = 1; round <= rounds; round++)); do
    { kill -KILL "$agent" && wait "$agent"; } 2>/dev/null
    rm -f "$work/control.sock"
    [ $((round % 3)) -ne 0 ] || sleep 0.7 # and is away for a while
    start_agent
    eventually 60 all_seen || break
done
check "after each of $rounds restarts the agent sees what all of them do" [ "$round" -gt "$rounds" ]
[ $failed = 0 ] || status -c '.clients[] | [.pid, .uid, .level, .launches, .state]'

touch "$work/stop"
bad=0
for pid in "${!clients[@]}"; do
    wait "$pid" || bad=$((bad + 1))
    unset "clients[$pid]"
done
check "the clients' own values are right" [ $bad = 0 ]
exit $failed
