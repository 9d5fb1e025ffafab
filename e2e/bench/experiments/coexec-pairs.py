"""Pairs of a memory-bound and a compute-bound kernel run at the same time, each with a bounded number of blocks on an SM:
every configuration, by hand (`weirctl bound`)."""

import statistics

from coexec import COMPUTE, MEMORY, Kernels
from report import at_least
from workers import SLOTS

SHOWS = "kernels that run at the same time with bounded blocks on an SM: the best configuration of each pair, by brute force"
PAPER = "FlexSched figure 4"
BOUNDS = {"speed-up, mean": at_least(1.4, "x")}
BASELINES = ("sequential", "MPS", "slices")
NEEDS = ("gpu", "mps", "root")
SIMULATED = True
TENANTS = SLOTS


def run(bench):
    few = bench.node.simulated
    memory, compute = (("VA",), ("PF",)) if few else (tuple(MEMORY), tuple(COMPUTE))
    kernels = Kernels(bench, [*memory, *compute])
    bounded = [name for name in kernels.names if kernels.parts[name]]
    bench.report.holds("kernels whose blocks can be bounded", bool(bounded), f"{len(bounded)} of {len(kernels.names)}")
    pairs = [kernels.pair(a, b) for a in memory for b in compute if a in bounded and b in bounded]
    pairs = [pair for pair in pairs if pair.by]
    if not pairs:
        bench.report.failed("no pair fits on an SM")
        return
    mps, slices = (statistics.fmean(getattr(pair, way) for pair in pairs) for way in ("mps", "slices"))
    told = f"{len(pairs)} pairs; MPS {mps:.2f}x, slices {slices:.2f}x"
    bench.report.judge("best configuration over sequential, mean", statistics.fmean(p.highest for p in pairs), BOUNDS["speed-up, mean"], told)
    for name in bounded:
        best = max((p for p in pairs if name in p.names), key=lambda p: p.highest, default=None)
        if best:
            bench.report.add(f"{name}, best partner", f"{best.highest:.2f}x", baselines=str(best))
