#!/bin/bash
# Experiments on the simulated GPU: each file declares all its fields, the results that are kept fit them, and every
# experiment of forms and sched that needs no real GPU runs, finds what must hold on any GPU, and leaves a JSON.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit

# shellcheck source=e2e/tap.sh
. e2e/tap.sh
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# In a folder that clients with other user ids may read.
mkdir -p "$tmp/node/lib"
cp -rL "$B/bin" "$B/bench" "$B/simcuda" "$B/simprograms" "$tmp/node"
cp "$B"/lib/{libweir,plain-slice}.so "$tmp/node/lib"
chmod -R a+rX "$tmp"

run() { # NAMES [OPTION...]
    timeout 300 e2e/bench/run "$@" --bundle "$tmp/node" --simulated --seconds 0.2 --out "$tmp/out"
}

is_listed() { # NAME
    grep -q "^$1 " "$tmp/list"
}

has_figures() { # NAME
    python3 -c '
import json, sys
record = json.load(open(sys.argv[1]))
assert record["experiment"] == sys.argv[2] and record["seconds"] >= 0 and record["rows"] and record["command"] and record["gpu"] == "simulated GPU"
assert all(row["verdict"] in ("PASS", "") for row in record["rows"])' "$tmp/out/$1.json" "$1"
}

refuses() { # ARGUMENT...
    ! e2e/bench/run "$@"
}

survives_second_sigterm() {
    PYTHONPATH=e2e/bench/lib python3 -c '
import os, signal, runner
signal.signal(signal.SIGTERM, runner.stop)
try:
    os.kill(os.getpid(), signal.SIGTERM)
except KeyboardInterrupt:
    os.kill(os.getpid(), signal.SIGTERM)
    raise SystemExit(0)
raise SystemExit(1)'
}

# Stolen time as /proc/stat tells it, and which requests it leaves out; the switches of an ideal beside these requests.
knows_thefts() {
    PYTHONPATH=e2e/bench/lib python3 -c '
import consolidation, ports, steal
line = "{} 9 0 9 9 0 0 0 {} 0 0"
before, after = (steal.parse(f"""{line.format("cpu", ticks)}
{line.format("cpu0", 4)}
{line.format("cpu7", ticks)}
intr 5 1""") for ticks in (7, 9))
assert before == {0: 4, 7: 7} and steal.parse("cpu 1 2 3") == {}
(theft,) = steal.between(before, after, 5.0, 5.01)
assert (theft.processor, theft.end, theft.ticks) == (7, 5.01, 2) and theft.begin <= 5.0 - 2 * steal.TICK
requests = [ports.Request(due, 20_000) for due in (4.9, 4.96, 5.0, 5.02)]
assert steal.without(requests, [theft]) == [requests[0], requests[3]] and steal.without(requests, []) == requests
apart, close = ports.Request(0, 1), [ports.Request(1, 1), ports.Request(1.005, 1), ports.Request(2, 1)]
periods = consolidation.busy_periods([[apart, *close[:1]], close[1:]], 0.01)
assert periods == [{0}, {0, 1}, {1}], periods
assert consolidation.switches([[[apart, *close[:1]], close[1:]]], 0.02) == [7 / 2, 3 / 2]
assert consolidation.switches([], 0.02) == [0, 0]'
}

all() { # SET EXPERIMENT...
    local set=$1 name
    shift
    check "$set: every experiment passes" run "$(tr ' ' , <<< "$*")"
    for name in "$@"; do check "$set: $name has figures" has_figures "$name"; done
}

check "every experiment declares its fields, and RESULTS.md is what the results make" e2e/bench/run --check
check "an unknown experiment is refused" refuses no-such-experiment
check "requests that stolen time overlaps are left out" knows_thefts
check "a second SIGTERM does not end what the first one began" survives_second_sigterm

judges() { # WHAT
    python3 e2e/bench/tests/rows.py "$1"
}
check "requests are left out where thefts overlap each other" judges leaves_out_what_was_stolen
check "form-overhead judges what libweir chose, the best choice beside it" judges judges_what_libweir_chose
check "the least cost is of a variant that leaves in time" judges knows_least_costs
check "drain-or-save names kernels with too few evictions" judges counts_kernels_without_delays
check "second-start judges the first rounds as they are, and names what is not measured" judges counts_the_first_rounds_as_they_are
check "programs judges HIGH beside each program that has its PTX with it" judges judges_programs_with_ptx
check "spatial: a negative loss is no gain" judges counts_losses
check "worker-groups judges every kernel, and names those seen too rarely" judges judges_every_kernel
check "coexec judges all pairs, by what was measured again" judges judges_all_pairs
check "coexec: the search ends when the configuration stays" judges knows_settled
check "min-rate: speed is steps a second, too" judges judges_steps
check "proactive has the kernels of PEP's table, and tells of its floor" judges tells_of_its_floor
check "enforced-hold judges the last motion of a kernel, and the worst client" judges judges_stops
check "mps-deaths judges the worst deaths, against no death as well" judges judges_the_worst_deaths
check "mps-deaths: all deaths must take place" judges counts_missing_deaths
check "mps-per-level judges graphs in ms as well" judges judges_graphs_in_ms
check "shares-wfq: each co-run has the bound of its own ideal" judges judges_each_co_run_by_its_own_ideal
check "p99 of several rounds is that of all their requests" judges takes_p99_of_all_requests
check "the witness of a fault is judged by the median" judges takes_the_median_of_faults
e2e/bench/run --list > "$tmp/list"
for set in first-light hardware slices first-launches forms sched sched-timeslice spatial min-rates coexec cluster node foreign mps; do
    check "run lists $set" e2e/bench/run "$set" --list
done
for file in e2e/bench/experiments/*.py; do
    check "run lists $(basename "$file" .py)" is_listed "$(basename "$file" .py)"
done

all first-light workloads-checked launch-cost
# Not burst-blocks-timeslice: the simulated GPU is always shared as by MPS.
all forms form-coverage form-leave-time queue-leave-time drain-or-save in-place form-overhead module-first-use transform-speed \
    results-under-eviction burst-blocks-mps
all forms tensor-cores
all hardware enforced-hold shares-closed compute-limit
all slices hidden-switch requests-timeslice
has_plain_slices() { # NAME
    jq -e '.rows | any(.what | contains("slices without Weir"))' "$tmp/out/$1.json"
}
for name in hidden-switch requests-timeslice; do
    check "slices: $name has the hardware's slices without Weir beside it" has_plain_slices "$name"
done
all first-launches first-launch second-start programs
shows() { # WORDS
    jq -e --arg words "$1" '.rows | any(.what | contains($words))' "$tmp/out/first-launch.json"
}
check "first-launch: what a shorter wait does stands beside the figures" shows "wait for 50 ms at most"
check "first-launch: and what a launch does that began before HIGH came" shows "began before HIGH came"
runs_part() {
    run second-start --parts triad && jq -e '.cut | contains("only triad")' "$tmp/out/second-start.json" &&
        jq -e '[.rows[].what] | any(contains("triad")) and (any(contains("stencil")) | not)' "$tmp/out/second-start.json"
}
check "first-launches: some programs of an experiment" runs_part
all sched shares-default shares-ffs shares-wfq simulator-accuracy pairs-priority launch-delay pairs-hpf triplets-hpf \
    evictions-by-priority slicing-cost latency-objectives servers-batch queue-dynamic prediction-error \
    speculative-demand proactive
runs_curves() {
    run spatial --only spatial --parts curves && test "$(jq '.rows | length' "$tmp/out/spatial.json")" = 4
}
all spatial spatial worker-groups
check "spatial: the curves alone, a row a pair" runs_curves
# What a run has found stands in its JSON at once, and is judged when it is interrupted.
has_row() { # WORDS
    jq -e --arg words "$1" '.rows | any(.what | contains($words))' "$tmp/cut/spatial.json"
}
survives_interruption() {
    e2e/bench/run spatial --only spatial --parts curves --bundle "$tmp/node" --simulated --seconds 0.2 --out "$tmp/cut" &
    local bench=$! i
    for ((i = 0; i < 1200; i++)); do
        has_row 'needed against the best number of SMs' 2>/dev/null && break
        kill -0 "$bench" || return 1
        sleep 0.05
    done
    jq -e '.cut | contains("it did not end")' "$tmp/cut/spatial.json" || return 1
    kill -TERM "$bench"
    wait "$bench"
    has_row 'the worst pair' && has_row interrupted && jq -e '.cut | contains("the curves of 1 of 2 pairs")' "$tmp/cut/spatial.json"
}
check "spatial: an interrupted run keeps and judges its figures" survives_interruption
all loops loop-points loop-ports loop-io loop-servers loop-servers-timeslice
judges_faults() { # EXPERIMENT MORE
    test "$(jq '[.rows[] | select(.bound == "must hold")] | length' "$tmp/out/$1.json")" = $((8 + $2))
}
check "loops: each fault around a server is judged" judges_faults loop-servers 0
check "loops: and without MPS, as the end of another server is" judges_faults loop-servers-timeslice 1
all min-rates min-rate min-rate-timeslice
all coexec coexec
runs_queue() {
    run coexec --only coexec --parts table-2 && test "$(jq '.rows | length' "$tmp/out/coexec.json")" = 5
}
plans_pairs() {
    PYTHONPATH=e2e/bench/lib python3 -c '
import random
from pairings import least_time, time_by_rule

three = dict.fromkeys("abc", 1)
pair = {"a": 0.8, "b": 0.8}
assert least_time(three, []) == 3 and abs(least_time(three, [pair]) - 2.25) < 1e-6
each = [dict.fromkeys(both, 0.75) for both in ("ab", "bc", "ca")]
assert abs(least_time(three, each) - 2) < 1e-6
loses = [{"a": 0.6, "b": 0.3}]
assert least_time(three, loses) == 3
rates = {frozenset(rates): rates for rates in each}
kinds = {"a": "MB", "b": "CB", "c": "CB"}
times = {round(time_by_rule("b", three, kinds, rates, random.Random(seed)), 6) for seed in range(9)}
assert times == {round(4 / 3 + 1, 6)}, times'
}
check "the best plan of pairs takes what saves time, and FlexSched takes unlike kernels" plans_pairs
check "coexec: the queue of table 2 alone" runs_queue
checks_together() {
    run coexec --only coexec --parts several &&
        jq -e '.rows | any((.what | contains("results are the CPU")) and (.figure | test("( [1-9][0-9]*){3} rounds")))' "$tmp/out/coexec.json"
}
check "coexec: results of kernels that run at the same time are compared" checks_together
all mps mps-deaths
# The others are the same code, and take as long again.
all sched-timeslice pairs-priority-timeslice shares-wfq-timeslice
# Only the kernels of our own.
check "foreign: every experiment passes" run foreign-kernels
check "there are plots" test -s "$tmp/out/plots/pairs-priority.svg"
exit "$failed"
