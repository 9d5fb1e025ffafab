#!/bin/bash
# Under MPS and the policy coexec kernels of several clients run at the same time, with a bounded number of blocks on an SM
# each. Clients come and go, and bounds change at random: every result is compared with the CPU's. Whether running together
# pays depends on the machine, so only that it is tried is looked at. SEED=N repeats a run.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
. e2e/standalone/machine.sh
prepare kernels filler
export WEIR_SIM_SMS=2 WEIR_SIM_SM_BLOCKS=4
RANDOM=${SEED:=$((10#$(date +%N) % 32768))}
echo "# SEED=$SEED"
cat >>"$work/agent.yaml" <<END
    - {uid: 65532, level: low}
    - {uid: 65531, level: low}
    - {uid: 65530, level: low}
policy: coexec
END

under_mps

# The papers' benchmarks NAMES, again and again, until its stop file is there.
begin() { # UID NAMES
    rm -rf "${work:?}/$1" && mkdir -m 777 "$work/$1"
    governed "$1" kernels --only "$2" --seconds 600 --repeat 30 --stop-file "$work/$1/stop" >"$work/kernels-$1.log" 2>&1 &
    clients[$!]="kernels of $1"
    pids[$1]=$!
}
end() { # UID
    touch "$work/$1/stop"
    check "every value of $1 is right" wait "${pids[$1]}"
    unset "clients[${pids[$1]}]"
}
declare -A pids
uids=(65534 65532 65531 65530)

searched() { status -e '[.gpus[].coexec[]? | .searches] | add > 0'; }

check "the agent is up, and has the policy" start_agent
begin 65534 matrix-multiply
begin 65532 vector-add
check "the agent tries how many blocks each may have on an SM" eventually 60 searched
listed() { "$B/bin/weirctl" --socket "$work/control.sock" profile sets | grep -Eq '^ +[0-9.]+x  [0-9a-f]{16} x [0-9]+ [0-9a-f]{16} x [0-9]+'; }
check "weirctl lists what it found" eventually 60 listed
begin 65531 md5-search
begin 65530 path-find

numbers() { status -r '.clients[].client'; }
for _ in $(seq 60); do
    mapfile -t of < <(numbers)
    [ ${#of[@]} -gt 0 ] || continue
    "$B/bin/weirctl" --socket "$work/control.sock" bound "${of[RANDOM % ${#of[@]}]}" --workers $((RANDOM % 6)) >/dev/null 2>&1
    sleep 0.0$((RANDOM % 9 + 1))
done
mapfile -t of < <(numbers)
for client in "${of[@]}"; do "$B/bin/weirctl" --socket "$work/control.sock" bound "$client" >/dev/null; done
waited() { [ "$(status '[.clients[] | select(.waits > 0)] | length')" -ge 2 ]; }
check "clients took turns meanwhile" eventually 60 waited

# One is killed among the others.
kill -KILL "$(program_of "${pids[65531]}")"
wait "${pids[65531]}" 2>/dev/null
unset "clients[${pids[65531]}]"
for uid in "${uids[@]}"; do [ "$uid" = 65531 ] || end "$uid"; done

# What was found goes to another agent, and can be forgotten.
profile() { "$B/bin/weirctl" --socket "$work/control.sock" profile "$@"; }
sets() { profile export | jq -cS 'select(.kernels)' | sort; }
sets >"$work/sets"
check "what was found of kernels is exported" test -s "$work/sets"
check "but not with a namespace" [ -z "$(profile export --namespace '*' | jq -c 'select(.kernels)')" ]
check "it can be forgotten" profile forget --all
check "then nothing is known" [ -z "$(sets)" ]
check "it is left out where namespaces are replaced" eval "profile import --namespace production '$work/sets' | grep -q 'left out'"
check "and nothing is known of it" [ -z "$(sets)" ]
check "it is imported" profile import "$work/sets"
imported() { diff "$work/sets" <(sets); }
check "as it was" imported
[ $failed -eq 0 ] || { tail -n 4 "$work"/*.log; exit 1; }
