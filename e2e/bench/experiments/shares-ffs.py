"""Clients run without end under `ffs`. Before they count they run in pieces of 1.4 s until forms are settled."""

import plot
import sharing
import turnarounds
from experiment import TIMESLICE
from papers import large, pairs, small
from report import at_most
from workers import SLOTS, Job, pool_of, sample

SHOWS = "endless co-runs under ffs at 2:1, 9:1, 1:1:1:1: shares of the work in windows of 1 s, and what is lost"
PAPER = "FLEP figures 13, 14"
BOUNDS = {"furthest from a share": at_most(sharing.LIMIT, " points"), "throughput lost": at_most(3.0, " %")}
BASELINES = ("MPS",)
NEEDS = ("gpu", "mps", "root")
SIMULATED = True
TENANTS = SLOTS
MODES = ("mps", "timeslice")


def run(bench):
    pool = pool_of(bench)
    chosen = sample(pairs(), turnarounds.budget(bench, "pairs at 2:1"))
    co_runs = [(f"{b} (small) 2:1 {a} (large)", [small(b), large(a)], [66, 33]) for a, b in chosen]
    sliced = bench.mode == TIMESLICE
    same_level = [Job("matrix-multiply", copy=i) for i in range(8 if sliced else 4)]
    co_runs += [("MM 9:1 MM", same_level[:2], [90, 10]), ("MM 1:1:1:1", same_level[:4], [25] * 4)]
    if sliced:
        co_runs.append(("MM, eight equal", same_level, [12] * 8))
    jobs = {job: None for _, of, _ in co_runs for job in of}
    pool.set_policy("ffs")
    for mode in ("MPS", "Weir"):
        pool.ensure(mode, jobs)
    window, seconds, first = (sharing.short(bench, some) for some in (1.0, sharing.SKIPPED + 2, sharing.SKIPPED + 1))
    found = []
    for what, of, shares in co_runs:
        windows, wanted = sharing.co_run(
            bench, what, of, shares, window if seconds > 1 else 0.1, "ffs", seconds, ("MPS",), first=first,
            queued_us=sharing.QUEUED_US if sliced else 0,
        )  # fmt: skip
        found.append((what, windows, wanted))
    note = f"{len(chosen)} of 28 pairs at 2:1"
    off = max(windows.worst(wanted) for _, windows, wanted in found)
    bench.report.judge("ffs: furthest from its share, 1 s windows", off, BOUNDS["furthest from a share"], note)
    good = sum(windows.worst(wanted) <= sharing.LIMIT for _, windows, wanted in found)
    bench.report.add("ffs: co_runs within 1 point in each window", f"{good} of {len(found)}")
    loss = sum(windows.loss for _, windows, _ in found) / len(found)
    bench.report.judge("ffs: throughput lost, mean", loss, BOUNDS["throughput lost"], note)
    worst = max(found, key=lambda one: one[1].loss)
    bench.report.add(f"ffs: throughput lost, worst: {worst[0]}", f"{worst[1].loss:.2f} %")
    if bench.plots:
        labels = [what for what, _, _ in found]
        series = {"share of the first": [w.mean(0) for _, w, _ in found], "target": [t[0] for _, _, t in found]}
        plot.bars(bench.plots / f"{bench.report.experiment}.svg", "Endless co-runs under ffs (FLEP fig. 13)", "% of the work", labels, series)
    for _, of, _ in co_runs:
        sharing.leave(pool, of)
