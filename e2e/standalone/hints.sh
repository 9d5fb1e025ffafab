#!/bin/bash
# A client that hints at its launches, beside a busy client of a lower level, in each way of WEIR_EXPECT: every value is
# right, and what keeps the GPU for expected launches runs there.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
. e2e/standalone/machine.sh
prepare burst filler
export WEIR_SIM_SMS=2

hints() { # WAY
    WEIR_LOG=debug WEIR_EXPECT=$1 governed 0 burst --kernels 2 --requests 40 --hint-us 300 --gap-min-us 500 --gap-max-us 2000 \
        >"$work/$1.log" 2>&1
}
keeps() { # WAY
    grep -q 'the GPU can be kept' "$work/$1.log"
}
keeps_not() {
    ! keeps "$1"
}

check "a hint without an agent changes nothing" hints kernel
check "the agent is up" start_agent
governed 65534 filler --depth 4 --ready-file "$work/sim/ready" --stop-file "$work/stop" >"$work/filler.log" 2>&1 &
filler=$!
clients[$filler]=filler
check "a busy client of a lower level is at work" eventually 30 test -e "$work/sim/ready"
for way in off demand write memset kernel; do
    check "WEIR_EXPECT=$way: every value is right" hints $way
done
for way in off demand; do check "WEIR_EXPECT=$way puts nothing into a stream" keeps_not $way; done
for way in write memset kernel; do check "WEIR_EXPECT=$way can keep the GPU" keeps $way; done
touch "$work/stop"
check "the other client's values are right" wait $filler
[ $failed -eq 0 ] || { tail -n 4 "$work"/*.log; exit 1; }
