#!/bin/bash
# The papers' benchmarks on the simulated GPU: each has the right result, with inputs of every class, and
# notices when a launch is lost.
set -uo pipefail
cd "$(dirname "$0")/../../.." || exit
# shellcheck source=e2e/simcuda/tests/scratch.sh
. e2e/simcuda/tests/scratch.sh

kernels() { # OPTION...
    timeout 120 "$B/bin/kernels" "$@" >"$tmp/out" 2>&1
}

mapfile -t names < <("$B/bin/kernels" --list | cut -d ' ' -f 1)
check "all benchmarks are there" [ "${#names[@]}" -ge 38 ]

# All in one process each, as they share nothing but the context.
for class in small trivial; do
    kernels --class $class --seed 7
    status=$?
    for name in "${names[@]}"; do
        check "$name, $class: the result is right" grep -q "^$name: ok" "$tmp/out"
    done
    report $status "$class: ends well"
done

for name in "${names[@]}"; do
    for launch in 1 2; do
        FAULT_LAUNCH=$launch LD_PRELOAD=$B/lib/fault.so kernels --class trivial --iterations 2 \
            --only "$name"
        [ $? -eq 1 ] && grep -q "wrong result\|has ended\|ILLEGAL_ADDRESS" "$tmp/out"
        report $? "$name notices that launch $launch is lost"
    done
done

kernels --class trivial --time --iterations 2 --only canny,work-queue
jq -es 'length == 2 and .[0].rounds == 2 and (.[0].kernels | length) == 4 and
    all(.[].kernels[]; .median_us > 0)' "$tmp/out" >/dev/null
report $? "--time: a line of JSON for each benchmark, with its kernels"
cp "$tmp/out" "$tmp/before"
kernels --class trivial --time --only canny
check "--time: the hash of the results is the same each time" [ "$(jq -s '.[0].hash' "$tmp/before")" = "$(jq .hash "$tmp/out")" ]

kernels --only canny,cany
[ $? -eq 2 ]
report $? "a name that does not exist is refused"
kernels --class huge
[ $? -eq 2 ]
report $? "a class that does not exist is refused"
exit $failed
