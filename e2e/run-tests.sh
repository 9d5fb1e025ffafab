#!/bin/bash
# Usage: run-tests.sh KIND:PATH...
#
#   unit:PROGRAM   prints TAP or exits 0
#   fuzz:PROGRAM   run over its corpus; real fuzzing for a few seconds where it is a libFuzzer
#   shell:SCRIPT   prints TAP ("ok - what", "not ok - what"); $B is the build folder
#
# One line for each, the log of those that fail, and a last line `N passed, N failed`.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
passed=0 failed=0 skipped=0
limit=${TEST_TIMEOUT:-900}
main_build=${B:-build}

corpus_of() { # fuzz-NAME
    local folder
    for folder in */tests/fuzz/corpus/"${1#fuzz-}" e2e/*/tests/fuzz/corpus/"${1#fuzz-}"; do
        [ ! -d "$folder" ] || echo "$folder"
    done
}

run() { # KIND PATH
    local name=${2##*/}
    case $1 in
    unit) timeout -k 10 "$limit" "$2" ;;
    shell) timeout -k 10 "$limit" "$2" ;;
    fuzz)
        local corpus
        corpus=$(corpus_of "$name")
        if [ -z "$corpus" ]; then
            echo "$name has no corpus"
            return 1
        fi
        if grep -qa LLVMFuzzerRunDriver "$2"; then
            # New finds go to a scratch folder; the corpus is only read.
            mkdir -p "$logs/found-$name"
            timeout -k 10 "$limit" "$2" -max_total_time="${FUZZ_SECONDS:-10}" -rss_limit_mb=4096 \
                -print_final_stats=1 "$logs/found-$name" "$corpus"
        else
            timeout -k 10 "$limit" "$2" "$corpus"
        fi
        ;;
    esac
}

for test in "$@"; do
    kind=${test%%:*} path=${test#*:}
    case $path in build*/*) B=${path%%/*} ;; *) B=$main_build ;; esac
    export B CMOCKA_MESSAGE_OUTPUT=TAP
    logs=$B/logs
    mkdir -p "$logs"
    log=$logs/${path##*/}.log
    began=$SECONDS
    run "$kind" "$path" >"$log" 2>&1 </dev/null
    status=$?
    # cmocka says "not ok N # SKIP" of what it skips.
    skip=$(grep -acE '^[[:space:]]*(not )?ok .*# SKIP' "$log")
    good=$(grep -aE '^[[:space:]]*ok( |$)' "$log" | grep -acv '# SKIP')
    bad=$(grep -aE '^[[:space:]]*not ok( |$)' "$log" | grep -acv '# SKIP')
    # A program that says nothing is one test; one that fails without saying where is one failure.
    if [ "$status" -eq 0 ] && [ $((good + bad + skip)) -eq 0 ]; then good=1; fi
    if [ "$status" -ne 0 ] && [ "$bad" -eq 0 ]; then bad=1; fi
    passed=$((passed + good)) failed=$((failed + bad)) skipped=$((skipped + skip))
    printf '%-6s %-52s %3d passed %3d failed %4ds\n' "$kind" "$path" "$good" "$bad" $((SECONDS - began))
    if [ "$bad" -gt 0 ]; then
        echo "------ $log (exit status $status)"
        grep -avE '^[[:space:]]*ok( |$)' "$log" | tail -n 60
        echo "------"
    fi
done
if [ "$skipped" -gt 0 ]; then
    echo "$passed passed, $failed failed, $skipped skipped"
else
    echo "$passed passed, $failed failed"
fi
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
