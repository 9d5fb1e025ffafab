#!/bin/bash
# A client with a kernel that never leaves is stopped in hardware while it is held, and goes on afterwards; also when
# the agent is killed, stopped by a signal or upgraded meanwhile. A client that dies while it is stopped is gone at
# once. A client that passes by all gates is stopped, too. One that clears its hold word is seen, and one that lets its
# channel group go on by itself.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
. e2e/standalone/machine.sh
hardware=true
prepare counter filler
export WEIR_SIM_SMS=2 WEIR_SIM_SLICES=1 LD_LIBRARY_PATH=$PWD/$B/simcuda
mkdir -m 777 "$work/client"
page=$work/client/count

count() { od -An -tu4 -N4 "$page" | tr -d ' '; }
moves() { local before; before=$(count) && sleep 0.2 && [ "$(count)" != "$before" ]; }
stands() { ! moves; }
of_client() { status -r "first(.clients[] | select(.command == \"counter\")) | $1"; }
is_usable() { [ "$(of_client .hardwarePreemption)" = true ]; }
hold() { "$B/bin/weirctl" --socket "$work/control.sock" hold "$(of_client .client)" --for "$1"; }
release() { "$B/bin/weirctl" --socket "$work/control.sock" release "$(of_client .client)"; }
works() { [ "$(status '.gpus[0].hardwarePreemption')" = true ]; }
kept() { head -qn 1 "$work"/state/*/hardware; }
with_mps() { kept | grep -q " MPS$"; }
without_mps() { kept | grep -qv " MPS$"; }
state() { awk '{ print $3 }' "/proc/$(program_of "$counter")/stat"; }
is_frozen() { [ "$(state)" = T ]; }
is_awake() { [ "$(state)" != T ]; }
unseen() { ! grep -q "runs while it is stopped" "$work/agent.log"; }
killed() { # by SIGKILL; its shell says so
    wait "$counter"
    [ $? = 137 ] && unset "clients[$counter]"
}
is_gone() { [ "$(status '[.clients[] | select(.command == "counter")] | length')" = 0 ]; }

start_counter() { # OPTION...
    rm -f "$page" "$work/client/ready"
    touch "$page" && chmod 666 "$page"
    governed 65534 counter --file "$page" --seconds 600 --ready-file "$work/client/ready" "$@" >"$work/counter.log" 2>&1 &
    clients[$!]=counter
    counter=$!
    eventually 30 test -e "$work/client/ready" && eventually 30 moves
}
begin() { # OPTION...
    start_counter "$@" && eventually 30 is_usable
}

finish_counter() {
    kill -KILL "$(program_of "$counter")"
    wait "$counter"
    unset "clients[$counter]"
    eventually 30 is_gone
}

check "the agent is up" start_agent
check "the agent finds that hardware preemption works" eventually 30 works
check "a client with a kernel that never leaves" begin
check "it is held" hold 60s
check "it is stopped in the middle of its kernel" eventually 10 stands
check "and stays so" stands
check "it is released" release
check "it goes on" eventually 10 moves

check "it is held again" hold 60s
check "it is stopped again" eventually 10 stands
{ kill -KILL "$agent" && wait "$agent"; } 2>/dev/null
check "the agent is killed: it goes on" eventually 10 moves
check "another agent starts" start_agent
check "which knows from before that hardware preemption works" eventually 30 works
check "and the client" eventually 30 is_usable
check "it is held by the new one" hold 60s
check "and stopped" eventually 10 stands
kill -STOP "$agent"
check "the agent hangs: it goes on" eventually 10 moves
kill -CONT "$agent"
check "the agent is there again" eventually 10 status .clients
check "and stops it again" eventually 10 stands
check "without a report: the client did as it should" unseen
check "the client ends while it is stopped" finish_counter

check "a client that passes by all gates" begin --disobey gates
check "is held" hold 60s
check "is stopped" eventually 10 stands
check "and stays so" stands
check "it is released" release
check "it goes on" eventually 10 moves
check "it ends" finish_counter

check "a client that clears its hold word" begin --disobey hold
check "is held" hold 60s
check "is stopped" eventually 10 stands
check "the agent says why" grep -q "has cleared its hold word: it is stopped" "$work/agent.log"
check "it ends" finish_counter

# In the simulated driver a call is the process's own: with pauses between them, it is rarely stopped amid one.
check "a client that lets its channel group go on, again and again" begin --disobey stop --pause-us 2000
check "is held" hold 60s
check "is seen by the driver's count, and stopped by a signal" eventually 30 is_frozen
check "and its channel group is stopped, too" eventually 30 stands
check "the agent says why" grep -q "runs while it is stopped: it is stopped" "$work/agent.log"
check "it is released" release
check "it goes on" eventually 30 moves
check "by itself" is_awake
check "it is held again" hold 60s
check "and stopped by a signal" eventually 30 is_frozen
check "and in its kernel" eventually 30 stands
seen=$(grep -c "runs while it is stopped" "$work/agent.log")
sleep 1
check "without being seen to run again" test "$(grep -c "runs while it is stopped" "$work/agent.log")" = "$seen"
{ kill -KILL "$agent" && wait "$agent"; } 2>/dev/null
check "the agent is killed: it is awake without any" eventually 10 is_awake
check "and goes on" eventually 10 moves
check "another agent starts" start_agent
check "and has the client" eventually 30 is_usable
check "it is held again" hold 60s
check "and stopped by a signal" eventually 30 is_frozen
{ kill -KILL "$agent" && wait "$agent"; } 2>/dev/null
check "the agent is killed, and another one starts at once" start_agent
check "it is awake" eventually 10 is_awake
check "the client comes" eventually 30 is_usable
check "and is held by the new one" hold 60s
check "and stopped by a signal" eventually 30 is_frozen
sleep 1
check "and stays so" is_frozen
check "it is released" release
check "it goes on" eventually 30 moves
check "it ends" finish_counter

end_agent() { kill -TERM "$agent" && { wait "$agent" || true; }; }
restart() { end_agent && start_agent; }

check "a client whose agent is upgraded" begin
check "is held" hold 60s
check "is stopped" eventually 10 stands
check "the former agent ends" end_agent
check "it goes on without any" eventually 10 moves
check "the next agent starts" start_agent
check "and has the client" eventually 30 is_usable
check "it is held by the next one" hold 60s
check "and stopped" eventually 10 stands
check "it ends" finish_counter

check "a client that lets its channel group go on, before an upgrade" begin --disobey stop --pause-us 2000
check "is held" hold 60s
check "is stopped by a signal" eventually 30 is_frozen
check "its agent ends" end_agent
check "it is awake without any" eventually 10 is_awake
check "and goes on" eventually 10 moves
check "the next agent starts" start_agent
check "it ends" finish_counter

# Clients of a daemon have no channel groups of their own, so what was found there holds there only.
mkdir -p "$work/pipes" && touch "$work/pipes/control"
export CUDA_MPS_PIPE_DIRECTORY=$work/pipes
check "an agent where there is an MPS daemon" restart
check "tries again" eventually 30 with_mps
unset CUDA_MPS_PIPE_DIRECTORY
check "an agent where there is none" restart
check "tries again, too" eventually 30 without_mps

echo "disobedience: kill" >>"$work/agent.yaml"
check "an agent that kills" restart
check "finds that hardware preemption works" eventually 30 works
check "a client that lets its channel group go on" begin --disobey stop --pause-us 2000
check "is held" hold 60s
check "and killed" eventually 30 is_gone
check "by a signal" killed

sed -i 's/^hardwarePreemption: true/hardwarePreemption: false/' "$work/agent.yaml"
check "an agent that may not stop clients in hardware" restart
check "a client that passes by all gates" start_counter --disobey gates
check "is held" hold 60s
sleep 0.2
check "nothing else stops it" moves
check "it ends" finish_counter
exit $failed
