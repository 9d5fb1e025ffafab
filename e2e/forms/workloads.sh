#!/bin/bash
# Runs the papers' benchmarks, kernels with masks of lanes that exit, and kernels for tensor cores, with all kernels in each form, evicted at random moments,
# from the whole GPU or a part of it. Results must be right.
# Kernels that need the host while they run are left out, because this launcher waits for each.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
# shellcheck source=e2e/simcuda/tests/scratch.sh
. e2e/simcuda/tests/scratch.sh

eaters='^(work-queue|polling-server|endless-simulation) '
run() { # PROGRAM FORM
    local names status
    names=$("$B/bin/$1" --list | grep -vE "$eaters" | cut -d ' ' -f 1 | paste -sd ,)
    FORMS_FORM=$2 timeout 100 env LD_PRELOAD="$B/lib/evict.so" "$B/bin/$1" \
        --class "${CLASS:-trivial}" --only "$names" --iterations "${ITERATIONS:-1}" >"$tmp/out" 2>&1
    status=$?
    for name in ${names//,/ }; do
        check "$name, $2: the result is right" grep -q "^$name: ok" "$tmp/out"
    done
    report $status "$1, $2: ends well"
    check "$1, $2: no kernel ran natively" grep -q '^forms: [1-9].* 0 native$' "$tmp/out"
}

for form in sliced persistent resumable; do
    run kernels $form
done
check "kernels were evicted" grep -q '^forms: .* [1-9][0-9]* continuations' "$tmp/out"
for form in persistent resumable; do # in larger grids: few leave a part of the SMs in small ones
    CLASS=${CLASS:-small} run kernels $form
    check "$form: kernels left a part of the SMs" grep -q '^forms: .* [1-9][0-9]* partial' "$tmp/out"
done
for form in sliced persistent resumable; do
    run masks $form
done
check "kernels with masks of lanes that exit were evicted" grep -q '^forms: .* [1-9][0-9]* continuations' "$tmp/out"
run tensor sliced
ITERATIONS=${ITERATIONS:-3} run tensor persistent
check "kernels for tensor cores were evicted" grep -q '^forms: .* [1-9][0-9]* continuations' "$tmp/out"
exit $failed
