#!/bin/bash
# Three same-level clients with shares of 2:1:1 that always have work. Under a fair policy they get the GPU in these
# parts, also under MPS; under other policies nobody is held. The test counts work, not time, and its bounds are wide:
# exact shares are tested in the simulator and measured by the benchmarks.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
. e2e/standalone/machine.sh
prepare filler
export WEIR_SIM_SMS=2 WEIR_SIM_BLOCK_US=300
cat >>"$work/agent.yaml" <<END
    - {uid: 65532, level: low, share: 50}
    - {uid: 65531, level: low, share: 25}
    - {uid: 65530, level: low, share: 25}
policy: wfq
scheduling: {quantum: 20ms}
END

under_mps

check "the agent is up" start_agent
uids=(65532 65531 65530)
for uid in "${uids[@]}"; do
    mkdir -m 777 "$work/$uid"
    governed "$uid" filler --depth 4 --stop-file "$work/stop" --ready-file "$work/$uid/ready" \
        >"$work/filler-$uid.log" 2>&1 &
    clients[$!]="filler of $uid"
done
all_ready() { [ -e "$work/65532/ready" ] && [ -e "$work/65531/ready" ] && [ -e "$work/65530/ready" ]; }
check "three same-level clients are at work" eventually 60 all_ready

launches() { # of each, in the order of the uids
    status '[.clients[] | {uid, launches}] | sort_by(-.uid) | map(.launches) | @tsv' | tr -d '"' | sed 's/\\t/ /g'
}

# Waits for @1 launches of all three together; parts=(...) is how many of a hundred each had.
measure() { # LAUNCHES
    local before now sum=0 i
    read -ra before < <(launches)
    for _ in $(seq 1200); do
        sleep 0.1
        read -ra now < <(launches)
        sum=0
        for i in 0 1 2; do sum=$((sum + now[i] - before[i])); done
        [ "$sum" -lt "$1" ] || break
    done
    parts=()
    for i in 0 1 2; do parts+=($((100 * (now[i] - before[i]) / (sum ? sum : 1)))); done
    echo "# $sum launches, parts of a hundred: ${parts[*]}"
    [ "$sum" -ge "$1" ]
}
within() { [ "$1" -ge "$2" ] && [ "$1" -le "$3" ]; }

check "they work" measure 1500
[ "$(status -c '[.clients[].concurrent] | unique')" = '[true]' ]
report $? "and say that their kernels run at the same time"
within "${parts[0]}" 40 60 && within "${parts[1]}" 15 35 && within "${parts[2]}" 15 35
report $? "shares of 2:1:1 are parts of 2:1:1"

"$B/bin/weirctl" --socket "$work/control.sock" trace --for 1s >"$work/trace"
report $? "what they do is recorded"
"$B/bin/weir-sim" --policy wfq --json "$work/trace" >"$work/sim.json"
[ "$(jq '[.clients[] | select(.requests > 0)] | length' "$work/sim.json")" = 3 ]
report $? "and weir-sim runs it"

check "the policy that has them run so" [ "$("$B/bin/weirctl" --socket "$work/control.sock" policy hpf)" = hpf ]
check "they work on" measure 1000
within "${parts[0]}" 3 94 && within "${parts[1]}" 3 94 && within "${parts[2]}" 3 94
report $? "all of them"
check "another policy, while they run" [ "$("$B/bin/weirctl" --socket "$work/control.sock" policy levels)" = levels ]
none_held() { [ "$(status '[.clients[] | select(.state == "held")] | length')" = 0 ]; }
check "nobody is held any more" none_held
check "they work on" measure 300

touch "$work/stop"
wrong=0
for pid in "${!clients[@]}"; do
    wait "$pid" || wrong=1
    unset "clients[$pid]"
done
report $wrong "every value is right"
[ $failed -eq 0 ] || { tail -n 4 "$work"/*.log; exit 1; }
