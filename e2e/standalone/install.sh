#!/bin/bash
# What `make install` puts into its folder works there: the agent finds weir-selftest and weir-compile, and programs run
# with the library.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
. e2e/standalone/machine.sh
hardware=true
prepare burst long-block
export WEIR_SIM_SMS=2 WEIR_SIM_BLOCK_US=50

check "make install" make -s install "B=$B" "PREFIX=$work/usr"
[ $failed -eq 0 ] || exit 1
B=$work/usr
cp "$work"/usr/lib/weir/*/libweir.so "$work/"
check "the agent is up" start_agent
start_busy
# On a busy machine the self-test may find that slices have no effect.
is_tested() { grep "hardware preemption" "$work/agent.log" >"$work/tested" && ! grep -q "weir-selftest:" "$work/tested"; }
check "it tests hardware preemption" eventually 60 is_tested
check "a program of a lower level runs" governed 65534 long-block --seconds 1
is_compiled() { [ -n "$(find "$work/state/cache" -type f -size +0 -print -quit)" ]; }
check "and its kernel is rewritten" eventually 60 is_compiled
stop_busy
[ $failed -eq 0 ] || tail -n 20 "$work"/*.log
exit $failed
