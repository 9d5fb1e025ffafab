"""LOW multiplies matrices, then trains; HIGH sends bursts of 20 kernels of 175 us. There is no MPS daemon."""

import bursts
from report import at_most

SHOWS = "latency of HIGH's bursts beside torch.mm and a training step, under time-slicing"
PAPER = ""
BOUNDS = {"median against alone, mm": at_most(1.40), "median against alone, train": at_most(1.15)}
BASELINES = ("HIGH alone", "time-slicing")
NEEDS = ("gpu", "pytorch", "root")
SIMULATED = True


def run(bench):
    bench.node.stop_mps()
    for workload in ("mm", "train"):
        bound = BOUNDS[f"median against alone, {workload}"]
        bursts.compare(bench, bursts.low_of(bench, workload), bound, priority=False)
