#!/bin/bash
# A loop beside an ordinary client of its level, under every policy: both go on, and their results are right. Then loops
# under a compute limit and under a memory limit, and what weirctl says a loop waits for.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
. e2e/standalone/machine.sh
prepare burst loop-runner
. e2e/loop/runner.sh
sed -i 's/    - {uid: 65534, level: low}/&\n    - {uid: 65532, level: low}\n    - {uid: 65531, level: low, computeLimit: 20}\n    - {uid: 65530, level: low, memory: 8Mi}/' \
    "$work/agent.yaml"
says() { # FILTER
    jq -e "$1" "$work/loop.json" >/dev/null
}
points=300000
sum=$((2 * 64 * (points * (points - 1) / 2)))

# A policy, and whether a loop must leave for a client of its level that has short work again and again.
policies() {
    cat <<'END'
hpf     leaves
whpf    leaves
ffs     leaves
static  may-leave
dynamic leaves
wfq     leaves
levels  stays
coexec  may-leave
END
}
every_policy_is_here() {
    diff <(sed -n 's/^POLICY(\(.*\))$/\1/p' agent/policy/policies.def) <(policies | cut -d' ' -f1)
}
launches() { status 'first(.clients[] | select(.command == "burst")) | .launches'; }
has_launched() { [ "$(launches)" -gt "$1" ]; }
left() { # HOW
    case $1 in
        leaves) says '.evictions > 0' ;;
        stays) says '.evictions == 0' ;;
        *) true ;;
    esac
}
check "every policy has its line" every_policy_is_here
check "the agent is up" start_agent
# Always with work, or soon again.
start_burst "$work/client" 65532 "an ordinary client of the loops' level" --kernels 20 --gap-min-us 100 --gap-max-us 1000
while read -r policy how; do
    check "policy $policy" weirctl policy "$policy"
    before=$(launches)
    check "$policy: a loop beside it" loop 65534 --kernel sums --n "$points"
    check "$policy: its sum is right" says ".out[0] == $sum and .result == 0"
    check "$policy: it $how" left "$how"
    check "$policy: the other client goes on" eventually 30 has_launched "$before"
done < <(policies)
stop_busy

check "a policy that holds" weirctl policy whpf
limited() { # FILTER
    status -e "first(.clients[] | select(.uid == 65531)) | $1" >/dev/null 2>&1
}
slow() {
    rm -f "$work/client/stop"
    loop 65531 --kernel spinner --n 1000000000000 --stop-file "$work/client/stop" &
    runner=$!
    clients[$runner]=loop
}
check "a loop with a compute limit" slow
check "is held back by gates" eventually 60 limited '.computeLimitBy == "gates" and .computeThrottledSeconds > 1'
check "it leaves for that" eventually 30 limited '.evictions > 10'
check "it runs all the same" eventually 30 limited '.computeSeconds > 0.2'
check "it is no overrun" limited '.state != "overruns"'
check "it ends when it is told to" finish_loop

check "a loop needs more memory than its limit" eval '! loop 65530 --kernel sums --n 10'
check "it is told so" grep -q "OUT_OF_MEMORY" "$work/loop.log"
check "with less it runs" eval 'new_page && loop 65530 --kernel tasks --n 10 --page "$page"'
check "its result is right" says '.out[0] == 22'

check "a loop waits for timers" begin --kernel timers --n 3600000000000
check "weirctl says so" eventually 30 is '.loopsWaitFor.timers > 0 and .loopsOnGpu == 0'
check "weirctl top, too" eventually 5 grep -q 'blocked timers:' <("$B/bin/weirctl" top --times 1 --socket "$work/control.sock")
check "it ends when it is told to" finish_loop
[ $failed -eq 0 ] || tail -n 20 "$work"/*.log "$work/loop.json"
exit $failed
