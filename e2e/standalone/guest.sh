#!/bin/bash
# Applications under libweir beside a busy client of a higher level: they are held again and again, and every value
# that they compute is right. Without an agent, without a driver or without CUDA, a program runs as if libweir were
# not there.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
. e2e/standalone/machine.sh
prepare vector-add matrix-multiply reduction long-block kernels stream-order burst reopen
export WEIR_SIM_SMS=2 WEIR_SIM_BLOCK_US=50

governed 65534 vector-add >"$work/log" 2>&1
report $? "no agent: the application runs"
! grep -q libweir "$work/log"
report $? "no agent: nothing is said about it"
LD_PRELOAD=$work/libweir.so /bin/true
report $? "no use of CUDA: a program runs"
LD_PRELOAD=$work/libweir.so WEIR_DRIVER=/nowhere "$work/bin/vector-add" >"$work/log" 2>&1
[ $? -ne 0 ] && grep -q '(100)' "$work/log"
report $? "no driver: the application is told that there is no device"

check "the agent is up" start_agent
start_busy

# Not preloaded: dlclose() would unload the library, while its threads run.
reopened() {
    setpriv --reuid=65533 --regid=65533 --clear-groups env WEIR_DRIVER="$work/libcuda.so.1" \
        WEIR_SOCKET="$work/agent.sock" timeout -s KILL 100 "$work/bin/reopen" "$work/libweir.so"
}
check "a program closes the library, works on, and opens it again" reopened
check "it was a client" grep -q 'uid 65533 .*level normal' "$work/agent.log"

for program in vector-add matrix-multiply reduction long-block; do
    check "$program under a busy client: every value is right" governed 65534 "$program" --seconds 1
done
check "the papers' benchmarks under a busy client: every value is right" governed 65534 kernels
for seed in 1 2 $RANDOM; do
    check "stream-order under a busy client, seed $seed: order is kept" governed 65534 stream-order --seed "$seed"
done
check "stream-order beside a client of the same level: order is kept" governed 0 stream-order --seed 4

governed 65534 stream-order --seconds 4 --seed 5 >"$work/held.log" 2>&1 &
held=$!
clients[$held]=stream-order
was_held() { [ "$(status '[.clients[] | select(.level == 0) | .waits] | add // 0')" -gt 0 ]; }
check "clients of the lower level are held" eventually 4 was_held
check "and compute the right values" wait $held

stop_busy
# A client may end before the agent has looked at its group: that is another error.
! grep "channel group is not used: Bad file descriptor" "$work/agent.log"
report $? "the agent can use the clients' channel groups"
[ $failed -eq 0 ] || { tail -n 4 "$work"/*.log; exit 1; }
