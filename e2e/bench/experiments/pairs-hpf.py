"""Two clients of one level under hpf: a small kernel is launched 100 us behind a large one. Forms settle first."""

import statistics

import turnarounds
from papers import FLEP, SHORT, large, small
from report import at_least, at_most
from workers import SLOTS, sample

SHOWS = "pairs of one level under hpf: ANTT and STP against MPS"
PAPER = "FLEP figures 10, 11"
BOUNDS = {"ANTT, mean": at_least(8, "x"), "STP lost, mean": at_most(3, " %")}
BASELINES = ("MPS", "time-slicing", "reordering without preemption", "shortest first without overhead as ideal")
PRINTED = (turnarounds.SWITCH,)
NEEDS = ("gpu", "mps", "root")
SIMULATED = True
TENANTS = SLOTS
MODES = ("mps", "timeslice")

TITLE = "ANTT under hpf against MPS, 28 pairs of one level"


def run(bench):
    of = [(large(a), small(b)) for b in SHORT for a in FLEP if a != b]
    rows, note = turnarounds.co_runs(bench, TITLE, sample(of, turnarounds.budget(bench, "pairs")))
    bound = turnarounds.reachable(bench, BOUNDS["ANTT, mean"], statistics.fmean(r[5] for r in rows))
    bench.report.judge("hpf: ANTT improvement over MPS, mean", statistics.fmean(r[1] for r in rows), bound, note)
    best = max(rows, key=lambda r: r[1])
    bench.report.add(f"hpf: the best, {best[0]}", f"{best[1]:.2f}x")
    bound = turnarounds.reachable(bench, BOUNDS["STP lost, mean"], statistics.fmean(r[6] for r in rows))
    bench.report.judge("hpf: STP lost against MPS, mean", statistics.fmean(r[2] for r in rows), bound)
