#!/bin/bash
# Sixteen processes of one container race at its memory limit through every way to allocate, and are killed at random
# moments. They never have more than the limit, can always have all of it but a chunk, and nothing is lost. KILLS: how
# many are killed.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
. e2e/standalone/machine.sh
kills=${KILLS:-200}
seed=${SEED:-$((RANDOM * 32768 + RANDOM))}
echo "# SEED=$seed"
prepare memory-storm
limit=$((96 << 20))
cat >>"$work/agent.yaml" <<END
    - {uid: 65532, level: low, memory: 96Mi}
END

check "the agent is up" start_agent

# Sees what the GPU has given, whatever libweir says.
LD_LIBRARY_PATH=$work timeout -s KILL 900 "$work/bin/memory-storm" --watch $limit --stop-file "$work/stop" \
    --ready-file "$work/ready" >"$work/watch.log" 2>&1 &
watch=$!
clients[$watch]=watch
check "an observer is at work" eventually 10 test -e "$work/ready"

governed 65532 memory-storm --seed "$seed" --kills "$kills" >"$work/storm.log" 2>&1
report $? "the limit holds, and all of it can be had"
grep '^[0-9]* processes' "$work/storm.log" | sed 's/^/# /'

# The agent dies, too, and another one comes: accounts and limits are where they were.
governed 65532 memory-storm --seed "$((seed + 1))" --kills $((kills * 2)) >"$work/storm-2.log" 2>&1 &
storm=$!
clients[$storm]=storm
sleep 0.3
kill -KILL "$agent"
wait "$agent" 2>/dev/null
rm -f "$work/control.sock"
sleep 0.3
check "another agent comes while they race" start_agent
check "the limit held all the time" wait "$storm"
unset "clients[$storm]"
grep '^[0-9]* processes' "$work/storm-2.log" | sed 's/^/# /'

nobody() { [ -z "$(ls "$work/state/memory")" ]; }
check "no account is left" eventually 5 nobody
touch "$work/stop"
check "the GPU never gave more, and has it all back" wait "$watch"
unset "clients[$watch]"
sed 's/^/# /' "$work/watch.log"
[ $failed -eq 0 ] || { tail -n 5 "$work"/*.log; exit 1; }
