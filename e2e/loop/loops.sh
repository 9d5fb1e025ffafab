#!/bin/bash
# Loops are scheduled as everybody: beside a busy client above they leave and come back, and compute the same; a server
# that waits is off the GPU, and weirctl says what it waits for; one that never comes to a scheduling point is stopped in
# hardware while it is held.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
. e2e/standalone/machine.sh
prepare burst loop-runner
. e2e/loop/runner.sh

says() { # FILTER
    jq -e "$1" "$work/loop.json" >/dev/null
}
sum=$((2 * 64 * (200000 * 199999 / 2)))

check "a loop runs without Weir" env LD_LIBRARY_PATH="$work" "$work/bin/loop-runner" --kernel tasks --n 10
check "and without an agent" loop 65534 --kernel sums --n 1000
check "its sum is right" says ".out[0] == $((2 * 64 * 1000 * 999 / 2))"
sed -i 's/    - {uid: 65534, level: low}/&\n    - {uid: 65532, level: low}/' "$work/agent.yaml"
check "the agent is up" start_agent
start_busy
check "beside a busy client above it" loop 65534 --kernel sums --n 200000
check "its sum is right, too" says ".out[0] == $sum and .result == 0"
check "it has left for that client" says ".evictions > 0 and .launches > .evictions"
stop_busy

# Two tenants of one level.
twin() {
    governed 65532 loop-runner --kernel sums --n 600000 >"$work/twin.json" 2>"$work/twin.log" &
    local twin=$!
    clients[$twin]=twin
    loop 65534 --kernel sums --n 600000 && wait $twin && unset "clients[$twin]"
}
took_turns() {
    says ".out[0] == $((2 * 64 * (600000 * 599999 / 2))) and .evictions > 0" && cp "$work/twin.json" "$work/loop.json" &&
        says ".out[0] == $((2 * 64 * (600000 * 599999 / 2))) and .evictions > 0"
}
check "two loops of one level" twin
check "take turns, and their sums are right" took_turns

check "a server waits" begin --kernel server --n 1 --text 127.0.0.1:0
check "its loop is known, and off the GPU" eventually 30 is '.loops == 1 and .loopsOnGpu == 0'
check "it waits for the network" is '.loopsWaitFor.network == 2'
check "and has no work" eventually 30 is '.outstanding == 0 and .state == "idle"'
check "weirctl says so to people" eventually 5 grep -q 'blocked network:2' \
    <("$B/bin/weirctl" status --socket "$work/control.sock")
check "it ends when it is told to" finish_loop

check "a page for counts" new_page
check "a busy loop that comes to scheduling points" begin --kernel spinner --page "$page" --n 1000000000000
check "runs" eventually 30 moves
evictions=$(of_loop .evictions)
check "is held" weirctl hold "$(of_loop .client)" --for 60s
check "leaves" eventually 30 stands
check "which is an eviction" eventually 30 is ".evictions > $evictions"
check "and stays away" stands
check "is released" weirctl release "$(of_loop .client)"
check "goes on" eventually 30 moves
sed -i 's/{uid: 65534, level: low}/{uid: 65534, level: normal}/' "$work/agent.yaml"
check "gets another level" eventually 30 is '.actingLevel == 1'
check "and runs on" eventually 30 moves
check "is held there, too" weirctl hold "$(of_loop .client)" --for 60s
check "and leaves" eventually 30 stands
check "is released" weirctl release "$(of_loop .client)"
check "it ends when it is told to" finish_loop

restart() {
    kill -TERM "$agent" && { wait "$agent" || true; }
    sed -i 's/^hardwarePreemption.*/hardwarePreemption: true/' "$work/agent.yaml"
    start_agent
}
check "an agent with hardware preemption" restart
check "which works" eventually 30 works
check "a page for counts" new_page
check "a loop that never comes to a scheduling point" begin --kernel monopolist --page "$page" --blocks 1
check "runs" eventually 30 moves
check "can be stopped" eventually 30 is .hardwarePreemption
check "is held" weirctl hold "$(of_loop .client)" --for 60s
check "is stopped in the middle of its callback" eventually 30 stands
check "as weirctl says" is .stopped
check "and stays so" stands
check "is released" weirctl release "$(of_loop .client)"
check "goes on" eventually 30 moves
check "it is killed" kill_loop
check "and is gone" eventually 30 is_gone

# In the middle of input and output.
nothing_left() { [ "$(status '.clients | length')" = 0 ] && [ "$(status '.gpus[0].demand | add')" = 0 ]; }
head -c 50000000 /dev/zero >"$work/client/large"
sed -i 's/{uid: 65534, level: normal}/{uid: 65534, level: high}/' "$work/agent.yaml"
check "a loop of a high level copies it in small parts" begin --kernel copy_file --n 3000 --text "$work/client/large" \
    --text2 "$work/client/copy"
check "which goes on" eventually 30 test -s "$work/client/copy"
check "it is killed, too" kill_loop
check "and leaves no client and no demand" eventually 30 nothing_left
[ $failed -eq 0 ] || { tail -n 20 "$work"/*.log "$work/loop.json"; exit 1; }
