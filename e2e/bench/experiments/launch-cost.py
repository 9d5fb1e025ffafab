"""cuLaunchKernel of an empty kernel, in batches that the driver can queue: through libweir and straight into the driver
in turn, in one process; and in processes with and without libweir in turn."""

import operator
import statistics

from bursts import TOP
from report import at_most

SHOWS = "what libweir adds to a launch"
PAPER = ""
BOUNDS = {"added": at_most(0.1, " us"), "between processes": at_most(0.3, " us")}
BASELINES = ("the driver's own function in the same process", "the same launches without Weir")
NEEDS = ("gpu",)
SIMULATED = True

ROUNDS = 9  # with and without Weir


def listed(rates):
    return " ".join(f"{rate:.2f}" for rate in rates)


def run(bench):
    bench.node.stop_mps()
    bench.node.ensure_agent()
    argv = [bench.node.bench("bench-launch"), *bench.node.sizes]
    runs = {False: [], True: []}
    for round_ in range(2 * ROUNDS):
        weir = round_ % 2 == 1
        runs[weir].append(bench.node.start("launch", argv, TOP, weir, files=False).result())
    show_added(bench, runs[True])
    for way in ("linked", "asked"):
        of = {weir: {q: [run[way][q] for run in runs[weir]] for q in ("median", "p99")} for weir in runs}
        # By neighbours: a host that changes its speed meanwhile would else count as libweir's cost.
        added = {q: statistics.median(map(operator.sub, of[True][q], of[False][q])) for q in ("median", "p99")}
        names = {"linked": "cuLaunchKernel as linked", "asked": "from cuGetProcAddress"}
        baselines = f"ns: {listed(of[True]['median'])}; without Weir {listed(of[False]['median'])}"
        what = f"added between processes, {names[way]}"
        bench.report.judge(what, added["median"] / 1e3, BOUNDS["between processes"], baselines)
        bench.report.add(f"{what}, p99", f"{added['p99'] / 1e3:.3f} us")
    show_gates(bench)


def show_added(bench, runs):
    """Each process has its own speed, by where its memory lies: only figures of one compare exactly."""
    added = [run["added"] for run in runs]
    baselines = f"ns: {listed(added)}; the driver's own {listed(run['driver']['median'] for run in runs)}"
    bench.report.judge("added to a launch", statistics.median(added) / 1e3, BOUNDS["added"], baselines)


def show_gates(bench):
    """For information: what a gate costs the GPU, by the number of words that it waits for."""
    argv = [bench.node.bench("bench-gate"), *bench.node.sizes]
    waits = bench.node.start("gate", argv, TOP, False, files=False).result()["waits"]
    added = ", ".join(f"{(ns - waits[0]) / 1e3:.2f}" for ns in waits[1:])
    bench.report.add("GPU time of an open gate of 1, 2, 3, 4 waits", f"{added} us")
