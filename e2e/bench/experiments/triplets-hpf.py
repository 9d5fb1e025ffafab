"""Three clients of one level under hpf: two small kernels are launched behind a large one, 100 us apart."""

import random
import statistics

import turnarounds
from papers import FLEP, LARGE, large, small
from report import at_least
from workers import SLOTS, sample

SHOWS = "triplets of one level under hpf: ANTT against MPS"
PAPER = "FLEP figure 12"
BOUNDS = {"ANTT, mean": at_least(6.6, "x")}
BASELINES = ("MPS", "time-slicing", "reordering without preemption", "shortest first without overhead as ideal")
PRINTED = (turnarounds.SWITCH,)
NEEDS = ("gpu", "mps", "root")
SIMULATED = True
TENANTS = SLOTS
MODES = ("mps", "timeslice")

TITLE = "ANTT under hpf against MPS, 28 triplets of one level"


def run(bench):
    numbers = random.Random(1)
    triplets = []
    while len(triplets) < turnarounds.ALL:
        a, b, c = numbers.sample(list(FLEP), 3)
        if a in (*LARGE, "VA", "MD"):
            triplets.append((large(a), small(b), small(c)))
    rows, note = turnarounds.co_runs(bench, TITLE, sample(triplets, turnarounds.budget(bench, "triplets")))
    bound = turnarounds.reachable(bench, BOUNDS["ANTT, mean"], statistics.fmean(r[5] for r in rows))
    bench.report.judge("hpf: ANTT improvement over MPS, mean of triplets", statistics.fmean(r[1] for r in rows), bound, note)
