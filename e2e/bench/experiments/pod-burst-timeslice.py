"""As burst-timeslice does, with pods; their bounds are 3 % wider."""

import bursts
from report import at_most

SHOWS = "latency of a HIGH pod's bursts beside LOW pods that multiply matrices or train, under time-slicing"
PAPER = ""
BOUNDS = {"median against alone, mm": at_most(1.10).times(1.03), "median against alone, train": at_most(1.06).times(1.03)}
BASELINES = ("HIGH alone", "time-slicing")
NEEDS = ("gpu", "kubelet", "root", "pytorch")
SIMULATED = True


def run(bench):
    for workload in ("mm", "train"):
        bound = BOUNDS[f"median against alone, {workload}"]
        bursts.compare(bench, bursts.low_of(bench, workload), bound, priority=False)
