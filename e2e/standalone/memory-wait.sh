#!/bin/bash
# Two clients whose limits add up to more than the simulated GPU has. The second one's allocation waits until the first one
# has ended, and gets the memory then. Without an agent it does not wait.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
. e2e/standalone/machine.sh
prepare hoard
export WEIR_SIM_MEMORY=256M
cat >>"$work/agent.yaml" <<END
    - {uid: 65532, level: low, memory: 160Mi}
    - {uid: 65531, level: low, memory: 160Mi}
memoryFull: wait
memoryWait: 10m
END

hoards() { # UID
    rm -rf "${work:?}/$1"
    mkdir -m 777 "$work/$1"
    governed "$1" hoard --state-file "$work/$1/state" --free-file "$work/$1/free" --stop-file "$work/stop" \
        --ready-file "$work/$1/ready" >"$work/hoard-$1.log" 2>&1 &
    clients[$!]="hoard of $1"
    pid=$!
}
# Its own limit refuses it.
full() { grep -q '^1[0-9][0-9] [1-9]' "$work/$1/state" 2>/dev/null; }
waits() { [ "$(status "[.clients[] | select(.uid == $1) | .memoryWaiting // 0] | add")" = "$2" ]; }
ended() { ! kill -0 "$1" 2>/dev/null; }

check "the agent is up" start_agent
hoards 65532
first=$pid
check "a client has what its limit allows" eventually 60 full 65532
hoards 65531
second=$pid
check "another one waits for the rest" eventually 60 waits 65531 1
[ ! -e "$work/65531/state" ]
report $? "and was not refused"
kill -KILL "$(program_of "$first")"
wait "$first" 2>/dev/null
unset "clients[$first]"
check "it has what its limit allows when the first one has ended" eventually 60 full 65531
check "and waits no more" eventually 60 waits 65531 0

hoards 65532
check "the next one waits" eventually 60 waits 65532 1
kill -KILL "$agent"
wait "$agent" 2>/dev/null
agent=
refused() { [ -e "$work/65532/state" ]; }
check "but not without an agent" eventually 60 refused
touch "$work/stop"
check "both end well" wait "$second" "$pid"
unset "clients[$second]" "clients[$pid]"
[ $failed -eq 0 ] || { tail -n 5 "$work"/*.log; exit 1; }
