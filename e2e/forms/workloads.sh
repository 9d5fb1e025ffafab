#!/bin/bash
# Runs the papers' benchmarks with all kernels in each form, evicted at random moments. Results must be right.
# Kernels that need the host while they run are left out, because this launcher waits for each.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
# shellcheck source=e2e/simcuda/tests/scratch.sh
. e2e/simcuda/tests/scratch.sh

eaters='^(work-queue|polling-server|endless-simulation) '
names=$("$B/bin/kernels" --list | grep -vE "$eaters" | cut -d ' ' -f 1 | paste -sd ,)
for form in sliced persistent resumable; do
    FORMS_FORM=$form timeout 100 env LD_PRELOAD="$B/lib/evict.so" "$B/bin/kernels" \
        --class "${CLASS:-trivial}" --only "$names" >"$tmp/out" 2>&1
    status=$?
    for name in ${names//,/ }; do
        check "$name, $form: the result is right" grep -q "^$name: ok" "$tmp/out"
    done
    report $status "$form: ends well"
    check "$form: no kernel ran natively" grep -q '^forms: [1-9].* 0 native$' "$tmp/out"
done
check "kernels were evicted" grep -q '^forms: .* [1-9][0-9]* continuations' "$tmp/out"
exit $failed
