"""LOW trains a transformer without a pause; HIGH sends bursts of 20 kernels of 175 us."""

import bursts
from report import at_most

SHOWS = "latency of HIGH's bursts beside a training step, under MPS"
PAPER = ""
BOUNDS = {"median against alone": at_most(1.06), "p99 against alone": at_most(1.15)}
BASELINES = ("HIGH alone", "MPS", "MPS with stream priority")
NEEDS = ("gpu", "mps", "pytorch", "root")
SIMULATED = True


def run(bench):
    bench.node.ensure_mps()
    bursts.compare(bench, bursts.low_of(bench, "train"), *BOUNDS.values())
