#!/bin/bash
# What run-tests.sh says last: each check that failed, with its test, and the counts.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
. e2e/tap.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# a_test NAME LINE...: a shell script of these lines.
a_test() {
    local name=$1
    shift
    printf '%s\n' '#!/bin/bash' "$@" >"$work/$name"
    chmod +x "$work/$name"
}
run_all() { # NAME...: the output is in $work/out
    # Not the lists of the run that this test is part of.
    B=$work JOBS=2 LONG_TESTS='' SERIAL_TESTS='' e2e/run-tests.sh "${@/#/shell:$work/}" >"$work/out" 2>&1
}
last() { # LINES
    tail -n "$1" "$work/out"
}

a_test good.sh 'echo "ok - one"' 'echo "ok 2 - two"'
a_test bad.sh 'echo "ok - one"' 'echo "not ok - the sum is right"' 'seq 100' 'echo "not ok 3 - not asked # SKIP"' \
    'echo "	not ok 4 - indented"' 'exit 1'
a_test silent.sh 'exit 7'

check "a good test passes" run_all good.sh
check "the counts are last" test "$(last 1)" = "2 passed, 0 failed"
check "nothing failed: no names" test "$(grep -c "$work/good.sh:" "$work/out")" -eq 0

check "one that fails fails" eval '! run_all bad.sh good.sh silent.sh'
check "the counts are last, after failures, too" test "$(last 1)" = "3 passed, 3 failed, 1 skipped"
check "each failed check is named in front of them, with its test" test "$(last 4 | head -n 3 | sort)" = "$(sort <<END
$work/bad.sh: not ok - the sum is right
$work/bad.sh: 	not ok 4 - indented
$work/silent.sh: exit status 7
END
)"
check "what was left out is none" test "$(grep -c "$work/bad.sh:.*SKIP" "$work/out")" -eq 0
exit $failed
