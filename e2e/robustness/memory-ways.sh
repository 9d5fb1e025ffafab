#!/bin/bash
# Every way in which a process takes memory of a GPU, against its container's limit: each by itself, then sixteen
# processes of one container race in all of them. Meanwhile an observer sees what the GPU gives, whatever libweir says.
# It never gives more than the limit.
#
# GPU=1: on this machine's GPU, which nothing else uses. Contexts take memory that does not count: the observer allows
# for CONTEXT MiB each (600). ROUNDS: of each racing process.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
. e2e/standalone/machine.sh
processes=16
prepare memory-ways
limit=$((96 << 20)) piece=$((20 << 20)) context=0 rounds=${ROUNDS:-150}
if [ -n "${GPU:-}" ]; then
    ln -sf "$(ldconfig -p | awk '/libcuda\.so\.1 / && /x86-64/ { print $NF; exit }')" "$work/libcuda.so.1"
    limit=$((12 << 30)) piece=$((2500 << 20)) context=$((${CONTEXT:-600} << 20)) rounds=${ROUNDS:-30}
fi
cat >>"$work/agent.yaml" <<END
    - {uid: 65532, level: low, memory: $limit}
END

# Each process has two contexts.
observe() { # PROCESSES
    rm -f "$work/stop" "$work/ready"
    LD_LIBRARY_PATH=$work timeout -s KILL 900 "$work/bin/memory-ways" --watch $((limit + $1 * 2 * context)) \
        --stop-file "$work/stop" --ready-file "$work/ready" >"$work/watch.log" 2>&1 &
    observer=$!
    clients[$observer]=observer
    eventually 30 test -e "$work/ready"
}
observed() {
    local result
    touch "$work/stop"
    wait "$observer"
    result=$?
    unset "clients[$observer]"
    return $result
}
race() {
    local i bad=0 pids=()
    for ((i = 1; i <= processes; i++)); do
        governed 65532 memory-ways --race --size $((piece * 3 / 10)) --iterations "$rounds" --seed "$i" >"$work/race-$i.log" 2>&1 &
        pids+=($!)
        clients[$!]=race
    done
    for i in "${pids[@]}"; do
        wait "$i" || bad=1
        unset "clients[$i]"
    done
    return $bad
}
nobody() { [ -z "$(ls "$work/state/memory")" ]; }

check "the agent is up" start_agent
check "an observer is at work" observe 1
while read -r way; do
    governed 65532 memory-ways --way "$way" --size $piece >"$work/way-$way.log" 2>&1
    report $? "$way: refused at the limit, and all of it can be had again"
    grep -h "^$way: " "$work/way-$way.log" | sed 's/^/# /'
done < <(LD_LIBRARY_PATH=$work "$work/bin/memory-ways" --list)
check "the GPU never gave more to one process" observed
sed 's/^/# /' "$work/watch.log"
check "an observer is at work again" observe $processes
check "$processes processes race in all ways" race
grep -h ' taken, ' "$work"/race-*.log | sed 's/^/# /'
check "the GPU never gave more to all of them" observed
sed 's/^/# /' "$work/watch.log"
check "no account is left" eventually 20 nobody
[ $failed -eq 0 ] || { tail -n 5 "$work"/*.log; exit 1; }
