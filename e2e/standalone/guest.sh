#!/bin/bash
# Applications under libweir, held back again and again by a busy client above them: every value that they
# compute is still right, and they were held indeed. And a program that libweir meets without an agent,
# without a driver, or without any use of CUDA, runs as if it were not there.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
. e2e/standalone/machine.sh
prepare vector-add matrix-multiply reduction long-block kernels stream-order burst
export WEIR_SIM_SMS=2 WEIR_SIM_BLOCK_US=50

governed 65534 vector-add >"$work/log" 2>&1
say $? "no agent: the application runs"
! grep -q libweir "$work/log"
say $? "no agent: nothing is said about it"
LD_PRELOAD=$work/libweir.so /bin/true
say $? "no use of CUDA: a program runs"
LD_PRELOAD=$work/libweir.so WEIR_DRIVER=/nowhere "$work/bin/vector-add" >"$work/log" 2>&1
[ $? -ne 0 ] && grep -q '(100)' "$work/log"
say $? "no driver: the application is told that there is no device"

start_agent
say $? "the agent is up"
start_busy

for program in vector-add matrix-multiply reduction long-block; do
    governed 65534 "$program" --seconds 1 >"$work/$program.log" 2>&1
    say $? "$program below a busy client: every value is right"
done
governed 65534 kernels >"$work/kernels.log" 2>&1
say $? "the papers' benchmarks below a busy client: every value is right"
for seed in 1 2 $RANDOM; do
    governed 65534 stream-order --seed "$seed" >"$work/stream-order.log" 2>&1
    say $? "stream-order below a busy client, seed $seed: order is kept"
done
governed 0 stream-order --seed 4 >"$work/stream-order.log" 2>&1
say $? "stream-order beside an equal: order is kept"

governed 65534 stream-order --seconds 4 --seed 5 >"$work/held.log" 2>&1 &
held=$!
clients[$held]=stream-order
was_held() { [ "$(status '[.clients[] | select(.level == 0) | .waits] | add // 0')" -gt 0 ]; }
eventually 4 was_held
say $? "those below are held"
wait $held
say $? "and right all the same"

stop_busy
[ $failed -eq 0 ] || { tail -n 4 "$work"/*.log; exit 1; }
