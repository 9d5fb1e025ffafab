#!/bin/bash
# Usage: run-tests.sh KIND:PATH...
#
#   unit:PROGRAM   prints TAP or exits 0
#   fuzz:PROGRAM   runs over its corpus; fuzzes for FUZZ_SECONDS where it is a libFuzzer
#   shell:SCRIPT   prints TAP ("ok - what", "not ok - what"); $B is the build folder
#
# Runs JOBS tests at a time: those named in LONG_TESTS first, in its order, the others in the order given. Those named in
# SERIAL_TESTS run alone, after all others. Each test has its own TMPDIR, its own simulated GPUs (WEIR_SIM_DIR) and its own log.
# Prints one line when a test ends, the log of a failed test, the slowest tests, all checks that failed (a log that was cut
# still names them), and last `N passed, N failed`.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
passed=0 failed=0 skipped=0
limit=${TEST_TIMEOUT:-1200}
jobs=${JOBS:-$((4 * $(nproc)))} # most tests wait most of the time
main_build=${B:-build}
declare -A running=() # pid -> KIND:PATH
declare -A began=()   # pid -> second
scratch=$(mktemp -d "${TMPDIR:-/tmp}/weir-XXXXXX") # short: sockets below it have a limit of 107 characters
chmod 755 "$scratch"
times=$scratch/times
failures=$scratch/failures
started=0

# timeout gives each test a process group of its own and passes the signal on to it.
stop_tests() {
    local pid
    for pid in "${!running[@]}"; do pkill -TERM -P "$pid" timeout; done
    wait
    rm -rf "$scratch"
}
trap 'exit 130' INT TERM
trap stop_tests EXIT

corpus_of() { # fuzz-NAME
    local folder
    for folder in */tests/fuzz/corpus/"${1#fuzz-}" e2e/*/tests/fuzz/corpus/"${1#fuzz-}"; do
        [ ! -d "$folder" ] || echo "$folder"
    done
}

build_of() { # PATH
    case $1 in build*/*) echo "${1%%/*}" ;; *) echo "$main_build" ;; esac
}

log_of() { # PATH
    local name=${1#build*/*/}
    echo "$(build_of "$1")/logs/${name//\//-}.log"
}

run() { # KIND PATH FOLDER
    local name=${2##*/} corpus emulator=()
    export B CMOCKA_MESSAGE_OUTPUT=TAP TMPDIR=$3 WEIR_SIM_DIR=$3/sim
    B=$(build_of "$2")
    # Programs for arm64 run under qemu on other machines.
    [ "$B" != build-arm64 ] || emulator=(env EMULATOR=1 qemu-aarch64-static -L "$PWD/build/arm64-root")
    case $1 in
    unit | shell) timeout -k 10 "$limit" "${emulator[@]}" "$2" ;;
    fuzz)
        corpus=$(corpus_of "$name")
        if [ -z "$corpus" ]; then
            echo "$name has no corpus"
            return 1
        fi
        if grep -qa LLVMFuzzerRunDriver "$2"; then
            # New finds go to a scratch folder; the corpus is only read.
            mkdir -p "$B/logs/found-$name"
            timeout -k 10 "$limit" "$2" -max_total_time="${FUZZ_SECONDS:-10}" -timeout=120 -rss_limit_mb=4096 \
                -print_final_stats=1 "$B/logs/found-$name" "$corpus"
        else
            timeout -k 10 "$limit" "$2" "$corpus"
        fi
        ;;
    esac
}

start() { # KIND:PATH
    local folder=$scratch/$((started += 1)) log
    mkdir -m 777 "$folder" "$folder/sim"
    log=$(log_of "${1#*:}")
    mkdir -p "${log%/*}"
    run "${1%%:*}" "${1#*:}" "$folder" >"$log" 2>&1 </dev/null &
    running[$!]=$1
    began[$!]=$SECONDS
}

failed_checks() { # LOG
    grep -aE '^[[:space:]]*not ok( |$)' "$1" | grep -av '# SKIP'
}

judge() { # KIND:PATH STATUS SECONDS
    local path=${1#*:} status=$2 log skip good bad
    log=$(log_of "$path")
    # cmocka says "not ok N # SKIP" of what it skips.
    skip=$(grep -acE '^[[:space:]]*(not )?ok .*# SKIP' "$log")
    good=$(grep -aE '^[[:space:]]*ok( |$)' "$log" | grep -acv '# SKIP')
    bad=$(grep -aE '^[[:space:]]*not ok( |$)' "$log" | grep -acv '# SKIP')
    # A program that says nothing is one test; one that fails without saying where is one failure.
    if [ "$status" -eq 0 ] && [ $((good + bad + skip)) -eq 0 ]; then good=1; fi
    if [ "$status" -ne 0 ] && [ "$bad" -eq 0 ]; then bad=1; fi
    passed=$((passed + good)) failed=$((failed + bad)) skipped=$((skipped + skip))
    echo "$3 $path" >>"$times"
    printf '%-6s %-52s %3d passed %3d failed %4ds\n' "${1%%:*}" "$path" "$good" "$bad" "$3"
    if [ "$bad" -gt 0 ]; then
        echo "------ $log (exit status $status)"
        failed_checks "$log"
        { failed_checks "$log" | grep . || echo "exit status $status"; } | sed "s|^|$path: |" >>"$failures"
        grep -avE '^[[:space:]]*(not )?ok( |$)' "$log" | tail -n 60
        echo "------"
    fi
}

# Waits until one of the running tests ends.
reap() {
    local pid='' status test
    wait -n -p pid
    status=$?
    test=${running[$pid]}
    unset "running[$pid]"
    judge "$test" $status $((SECONDS - began[$pid]))
}

is_in() { # LIST KIND:PATH: the list names it by its path or by the last part of it
    [[ " $1 " == *" ${2##*/} "* || " $1 " == *" ${2#*:} "* ]]
}

long=() middle=() serial=()
for test in "$@"; do
    if is_in "${SERIAL_TESTS:-}" "$test"; then
        serial+=("$test")
    elif ! is_in "${LONG_TESTS:-}" "$test"; then
        middle+=("$test")
    fi
done
for name in ${LONG_TESTS:-}; do
    for test in "$@"; do
        if is_in "$name" "$test" && ! is_in "${SERIAL_TESTS:-}" "$test"; then long+=("$test"); fi
    done
done
for test in "${long[@]}" "${middle[@]}"; do
    while [ ${#running[@]} -ge "$jobs" ]; do reap; done
    start "$test"
done
while [ ${#running[@]} -gt 0 ]; do reap; done
for test in "${serial[@]}"; do
    start "$test"
    reap
done

echo "slowest: $(sort -rn "$times" | head -n 8 | awk '{ printf "%s%s %d s", sep, $2, $1; sep = ", " }')"
echo "all tests took $SECONDS s, $jobs at a time"
[ ! -s "$failures" ] || cat "$failures"
if [ "$skipped" -gt 0 ]; then
    echo "$passed passed, $failed failed, $skipped skipped"
else
    echo "$passed passed, $failed failed"
fi
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
