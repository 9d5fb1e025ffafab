#!/bin/bash
# Levels of running clients change hundreds of times, while they launch kernels and replay graphs beside clients whose
# levels stay. All go on, and all compute right values. ROUNDS (200). GPU=1: on the real GPU, with B's programs.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
. e2e/standalone/machine.sh
prepare burst filler
rounds=${ROUNDS:-200}
export WEIR_SIM_SMS=2 WEIR_SIM_BLOCK_US=200
sizes=()
if [ "${GPU:-0}" = 1 ]; then
    real=$(ldconfig -p | sed -n 's|.*libcuda\.so\.1 .*=> ||p' | head -n 1)
    ln -sf "${real:?no driver}" "$work/libcuda.so.1"
    sizes=(--gpu)
fi

# Levels of the users whose clients change: 65534 launches kernels, 65533 graphs, too.
names=(low normal high critical)
levels=(0 0)
decide() { # LEVEL LEVEL
    levels=("$1" "$2")
    configure <<END
    - {uid: 65534, level: ${names[$1]}}
    - {uid: 65533, level: ${names[$2]}}
    - {uid: 65532, level: low}
    - {uid: 0, level: high}
END
}

decided() {
    [ "$(status -c '[.clients[] | select(.uid == 65534 or .uid == 65533) | [.uid, .level]] | sort')" = \
        "[[65533,${levels[1]}],[65534,${levels[0]}]]" ]
}

# Each client has more launches than it had in $before, which lists them by pid.
launches() { status -c '[.clients[] | {key: (.pid | tostring), value: .launches}] | from_entries'; }
each_launched() { [ "$(launches | jq --argjson before "$before" 'to_entries | all(.value > $before[.key])')" = true ]; }
each_goes_on() { before=$(launches) && eventually 120 each_launched; }

begin() { # NAME UID PROGRAM ARGUMENTS...
    local name=$1
    shift
    governed "$@" "${sizes[@]}" --stop-file "$work/stop" >"$work/$name.log" 2>&1 &
    clients[$!]=$name
}

decide 0 0
check "the agent is up" start_agent
BURST=(burst --kernels 4 --requests 100000000 --gap-min-us 0 --gap-max-us 2000)
begin kernels 65534 "${BURST[@]}"
begin graphs 65533 "${BURST[@]}" --graphs
begin low 65532 "${BURST[@]}" --graphs
begin high 0 burst --kernels 2 --requests 100000000 --gap-min-us 500 --gap-max-us 5000
four() { [ "$(status '[.clients[] | select(.launches > 0)] | length')" = 4 ]; }
check "four clients work" eventually 120 four

RANDOM=${SEED:-7}
for ((round = 1; round <= rounds; round++)); do
    decide $((RANDOM % 4)) $((RANDOM % 4))
    kill -HUP "$agent"
    eventually 60 decided || break
done
check "the agent changes levels $rounds times" [ "$round" -gt "$rounds" ]
[ $failed = 0 ] || status -c '.clients[] | [.pid, .uid, .level, .launches, .state]'

# A client that waits for demand that ended, or for a page that nobody clears, stops here.
decide 0 0
kill -HUP "$agent"
check "they are all low again" eventually 60 decided
check "and work" each_goes_on
for i in 1 2; do
    decide $i 0
    kill -HUP "$agent"
    check "one is raised to ${names[$i]}, and all work" each_goes_on
done

touch "$work/stop"
bad=0
for pid in "${!clients[@]}"; do
    wait "$pid" || { echo "# exit status $?: ${clients[$pid]}"; tail -n 3 "$work/${clients[$pid]}.log"; bad=1; }
    unset "clients[$pid]"
done
check "the clients' own values are right" [ $bad = 0 ]
exit $failed
