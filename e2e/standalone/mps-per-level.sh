#!/bin/bash
# Mode mps-per-level on the simulated GPU: programs under libweir join the server of their level, whatever they do to
# choose another one; each server hands its channel group to the agent; a LOW that is killed in mid-kernel does not harm
# HIGH; a hold of all of a server's clients stops the server.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
. e2e/standalone/machine.sh
hardware=true
prepare burst filler
export WEIR_SIM_SMS=2 WEIR_SIM_BLOCK_US=300 WEIR_SIM_SLICES=1
# The agent gives daemons no variables of its own.
cat >"$work/mps-control" <<END
#!/bin/sh
export WEIR_SIM_DIR=$work/sim WEIR_SIM_SMS=2 WEIR_SIM_SLICES=1
exec $(realpath "$B")/bin/sim-mps-control "\$@"
END
chmod 755 "$work/mps-control"
cat >>"$work/agent.yaml" <<END
mode: mps-per-level
mps: {dir: $work/m, program: $work/mps-control, check: 100ms, keep: false}
END
finish_agent() { # daemons end with the agent
    [ -z "$agent" ] || { kill "$agent"; wait "$agent"; } 2>/dev/null
    agent=
    finish
}
trap finish_agent EXIT

servers() { # JQ-FILTER
    status "[.gpus[0].servers[]?] | $1" -r
}
start_low() {
    governed 65534 filler --depth 4 --stop-file "$work/stop" --ready-file "$work/low/ready" >"$work/filler.log" 2>&1 &
    low=$!
    clients[$low]=filler
}
says() { # WANTED JQ-FILTER
    [ "$(servers "$2")" = "$1" ]
}

check "the agent is up" start_agent
check "no server runs yet" says 0 length
mkdir -m 777 "$work/low"
# A process does not wait for long until its level's server starts: on a busy machine it may come too late.
call_servers() {
    governed 0 burst --kernels 1 --requests 1 >"$work/first.log" 2>&1 &&
        governed 65534 burst --kernels 1 --requests 1 >>"$work/first.log" 2>&1
}
check "the first clients of two levels call their servers" call_servers
check "which come" eventually 60 says "0:true 2:true" 'sort_by(.level) | map("\(.level):\(.up)") | join(" ")'
start_busy
start_low
check "a low client is at work" eventually 60 test -e "$work/low/ready"
check "each has its level's server" eventually 60 says "0:1 2:1" 'sort_by(.level) | map("\(.level):\(.clients)") | join(" ")'
# Whether slices work depends on how busy this machine is.
check "which hands its channel group over" eventually 60 says "true true" 'map(.hardwarePreemption) | join(" ")'
check "both are clients of MPS" [ "$(status -c '[.clients[].concurrent]')" = '[true,true]' ]

low_says() { # JQ-FILTER
    status ".clients[] | select(.level == 0) | $1" -r
}
stands() { # no launch of the low client for a second
    local before
    before=$(low_says .launches) && sleep 1 && [ "$(low_says .launches)" = "$before" ]
}
moves() {
    ! stands
}
command_low() { # COMMAND ARGUMENT...
    "$B/bin/weirctl" --socket "$work/control.sock" "$1" "$(low_says .client)" "${@:2}" >/dev/null
}
check "hardware preemption works" eventually 30 status -e '.gpus[0].hardwarePreemption'
check "the low client is held" command_low hold --for 60s
check "which stops its server" eventually 10 says true '.[] | select(.level == 0) | .stopped // false'
check "so its kernel stands still" eventually 10 stands
check "the high one's server goes on" says false '.[] | select(.level == 2) | .stopped // false'
check "it is let go on" command_low release
check "and goes on" eventually 10 moves

kill -KILL "$(program_of "$low")"
wait "$low" 2>/dev/null
unset "clients[$low]"
check "the low one is killed in a kernel; its server has no client left" eventually 60 says 0 '.[] | select(.level == 0) | .clients'
rm -f "$work/low/ready"
start_low
check "another one can come" eventually 60 test -e "$work/low/ready"
stop_busy
check "and ends well" wait "$low"
unset "clients[$low]"
exit $failed
