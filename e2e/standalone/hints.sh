#!/bin/bash
# What programs may tell Weir (weir/weir.h). A client hints at its launches, beside a busy client of a lower level, in each
# way of WEIR_EXPECT: every value is right, and what keeps the GPU for expected launches runs there. Streams get lower
# levels at random, beside a busy client: order is kept, and nothing waits for itself.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
. e2e/standalone/machine.sh
prepare burst filler stream-order
export WEIR_SIM_SMS=2

hints() { # WAY [US]
    WEIR_LOG=debug WEIR_EXPECT=$1 governed 0 burst --kernels 2 --requests 40 --hint-us "${2:-150}" \
        --gap-min-us 500 --gap-max-us 2000 >"$work/$1.log" 2>&1
}
keeps() { # WAY
    grep -q 'the GPU can be kept' "$work/$1.log"
}
keeps_not() {
    ! keeps "$1"
}

# The header in strict C and C++, and the example as its comment says.
include=${CUDA_HOME:-build/cuda}/include
echo '#include <weir/weir.h>
int main(void) { return weir_available() + weir_expect(0, 1) + weir_set_priority(0, WEIR_LEVEL_LOW); }' >"$work/use.c"
compiles() { # COMPILER OPTION...
    "$@" -Wall -Wextra -Werror -pedantic -I runtime-lib/include -fsyntax-only "$work/use.c"
}
check "weir.h is C99" compiles gcc -std=c99
check "weir.h is C++11" compiles g++ -std=c++11 -x c++
check "the C example compiles" gcc -Wall -Werror -I runtime-lib/include -isystem "$include" -o "$work/bin/server" \
    runtime-lib/examples/server.c "$work/libcuda.so.1" -ldl
cp runtime-lib/examples/weir.py "$work/bin/" && chmod -R a+rX "$work/bin"

says() { # TEXT COMMAND...
    local text=$1
    shift
    "$@" >"$work/said.log" 2>&1 && grep -qx "$text" "$work/said.log"
}
without() { # COMMAND...
    LD_LIBRARY_PATH=$work "$@"
}
check "the C example runs without Weir" says 'requests announced: Function not implemented' without "$work/bin/server"
check "and the Python one" says 'expect: Function not implemented' without python3 "$work/bin/weir.py"
check "the C example runs without an agent" says 'level and hints count: no' governed 0 server

check "a hint without an agent changes nothing" hints kernel
check "the agent is up" start_agent
governed 65534 filler --depth 4 --ready-file "$work/sim/ready" --stop-file "$work/stop" >"$work/filler.log" 2>&1 &
filler=$!
clients[$filler]=filler
check "a busy client of a lower level is at work" eventually 30 test -e "$work/sim/ready"
check "the C example with an agent: its requests are announced" says 'requests announced: done' governed 0 server
check "and its stream has a level" grep -qx 'background at level low: done' "$work/said.log"
check "the Python example, too" says 'available: True' governed 0 weir.py
for way in off demand kernel; do
    check "WEIR_EXPECT=$way: every value is right" hints $way
done
for way in off demand; do check "WEIR_EXPECT=$way puts nothing into a stream" keeps_not $way; done
check "WEIR_EXPECT=kernel can keep the GPU" keeps kernel
check "hints well before the launches: every value is right" hints kernel 800
check "the worker keeps the GPU in time, or is late" grep -q 'an expected launch: ' "$work/kernel.log"
for seed in 1 2 $RANDOM; do
    check "stream-order at level 2, seed $seed: order is kept" governed 0 stream-order --seed "$seed"
done
touch "$work/stop"
check "the other client's values are right" wait $filler
rm "$work/stop"
start_busy
for seed in 3 4 $RANDOM; do
    check "stream-order at level 1 under a busy client, seed $seed: order is kept" governed 65533 stream-order --seed "$seed"
done
stop_busy
[ $failed -eq 0 ] || { tail -n 4 "$work"/*.log; exit 1; }
