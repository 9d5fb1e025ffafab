#!/bin/bash
# A kernel that runs natively when somebody above comes stays to its end: its state says so at once. One that never leaves
# the GPU for others is reported where no hardware preemption can stop it, and its process
# ended if the configuration says so: a loop whose callback does not return, and a kernel that is no loop; without
# hardware preemption, under MPS, and, for what it does in its own turns, with it. One that leaves is never reported.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
. e2e/standalone/machine.sh
hardware='' # agent_with
prepare burst counter filler loop-runner
. e2e/loop/runner.sh
# The agent gives daemons no variables of its own.
cat >"$work/mps-control" <<END
#!/bin/sh
export WEIR_SIM_DIR=$work/sim WEIR_SIM_SMS=2
exec $(realpath "$B")/bin/sim-mps-control "\$@"
END
chmod 755 "$work/mps-control"
sed -i 's/    - {uid: 65534, level: low}/&\n    - {uid: 65532, level: low}/' "$work/agent.yaml"
cp "$work/agent.yaml" "$work/agent.base"
finish_agent() { # daemons end with the agent
    [ -z "$agent" ] || { kill "$agent"; wait "$agent"; } 2>/dev/null
    agent=
    finish
}
trap finish_agent EXIT

agent_with() { # LINE...
    [ -z "$agent" ] || { kill -TERM "$agent"; wait "$agent"; }
    cp "$work/agent.base" "$work/agent.yaml"
    printf '%s\n' "$@" >>"$work/agent.yaml"
    start_agent
}
told() { grep -c "has not left the GPU" "$work/agent.log"; }
untold() { [ "$(told)" = 0 ]; }
is_told() { [ "$(status -r "$1")" = overruns ]; }
loop_is_told() { is_told 'first(.clients[] | select(.command == "loop-runner" and .uid == 65534)) | .state'; }
of_counter() { status -r "first(.clients[] | select(.command == \"counter\")) | $1"; }
counter_is() { [ "$(of_counter .state)" = "$1" ]; }
counter_is_told() { counter_is overruns; }
counter_stays() { [ "$(of_counter '.staysSeconds > 0.01')" = true ]; }
evictions_pass() { is ".evictions > $1"; }
# Its server ends its work before its process is killed: it may see that, and end by itself.
is_ended() {
    eventually 60 is_gone && wait "$runner" 2>/dev/null
    unset "clients[$runner]"
}
monopolist() {
    new_page && begin --kernel monopolist --page "$page" --blocks 1 && eventually 30 moves
}
# Leaves when it must, also in one long kernel.
good() {
    new_page && begin --kernel spinner --page "$page" --n 1000000000000 && eventually 30 moves
}
counter() {
    rm -f "$work/client/ready" "$page"
    touch "$page" && chmod 666 "$page"
    governed 65534 counter --file "$page" --seconds 600 --ready-file "$work/client/ready" >"$work/counter.log" 2>&1 &
    runner=$!
    clients[$runner]=counter
    eventually 30 test -e "$work/client/ready" && eventually 30 moves
}
neighbour() { # of the same level, always with work
    governed 65532 loop-runner --kernel spinner --n 1000000000000 --stop-file "$work/neighbour" >"$work/neighbour.log" 2>&1 &
    beside=$!
    clients[$beside]=neighbour
}
neighbour_ends() {
    touch "$work/neighbour"
    wait "$beside"
    unset "clients[$beside]"
}

check "an agent that reports nothing" agent_with 'hardwarePreemption: false' 'overruns: {action: ignore}'
check "a kernel that never ends runs natively while nobody is above" counter
check "which its state says" counter_is running
start_busy
check "when somebody comes, its state says that it stays" eventually 30 counter_is stays
check "and for how long" eventually 30 counter_stays
check "it is killed" kill_loop
stop_busy
rm -f "$work/stop" "$work/ready"

soon='overruns: {action: report, afterSeconds: 1}'
check "an agent without hardware preemption" agent_with 'hardwarePreemption: false' "$soon"
start_busy
check "a loop that leaves, below a busy client" good
check "which it does" eventually 60 evictions_pass 50
sleep 3
check "is not reported" untold
check "it ends when it is told to" finish_loop
check "a loop that never comes to a scheduling point" monopolist
check "is reported" eventually 60 loop_is_told
check "once" [ "$(told)" = 1 ]
check "weirctl says for how long" is '.overrunSeconds >= 1'
check "it is killed" kill_loop
check "a kernel that is no loop and never ends" counter
check "is reported, too" eventually 60 counter_is_told
sed -i 's/action: report/action: kill/' "$work/agent.yaml"
check "its process is ended when the configuration says so" ended_by_kill
check "the agent says so" grep -q "process .* is killed: its kernel did not leave the GPU" "$work/agent.log"
check "a loop that leaves" good
check "and does so" eventually 60 evictions_pass 50
sleep 3
check "is not ended" eventually 60 moves
check "it ends when it is told to" finish_loop
stop_busy

check "an agent with hardware preemption" agent_with "$soon"
check "which works" eventually 30 works
check "a loop that never comes to a scheduling point" monopolist
check "can be stopped" eventually 30 is .hardwarePreemption
check "it is held" weirctl hold "$(of_loop .client)" --for 60s
check "and stopped" eventually 30 stands
sleep 3
check "for that nobody is reported" untold
check "it is released" weirctl release "$(of_loop .client)"
check "another client of its level has work" neighbour
check "then it is reported for its own turns" eventually 60 loop_is_told
check "it is killed" kill_loop
check "the other one ends when it is told to" neighbour_ends

mps="mps: {dir: $work/m, program: $work/mps-control, check: 100ms, keep: false}"
mps_is_up() { [ -e "$(echo "$work"/m/*/ready)" ]; }
check "an agent of mode mps" agent_with 'mode: mps' "$mps" "$soon"
check "whose daemon is up" eventually 60 mps_is_up
CUDA_MPS_PIPE_DIRECTORY=$(echo "$work"/m/*/pipe)
export CUDA_MPS_PIPE_DIRECTORY
rm -f "$work/stop" "$work/ready"
start_busy
check "a loop that never comes to a scheduling point" monopolist
check "is a client of MPS" eventually 30 is .concurrent
check "it is reported" eventually 60 loop_is_told
sed -i 's/action: report/action: kill/' "$work/agent.yaml"
check "its process ends when the configuration says so" is_ended
check "by the agent" eventually 30 grep -q "process .* is killed: its kernel did not leave the GPU" "$work/agent.log"
stop_busy # its server has not failed
[ $failed -eq 0 ] || tail -n 20 "$work"/*.log "$work/loop.json"
exit $failed
