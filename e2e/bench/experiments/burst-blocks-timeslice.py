import blocks
import bursts
from report import at_most

SHOWS = "latency of HIGH's bursts beside 20 us blocks and 5 ms blocks, under time-slicing"
PAPER = ""
BOUNDS = {"p99 against alone": at_most(1.25)}
BASELINES = ("HIGH alone", "time-slicing")
NEEDS = ("gpu", "root")
SIMULATED = True


def run(bench):
    bench.node.stop_mps()
    for name in blocks.LOWS:
        bursts.compare(bench, blocks.filler(bench, name), p99_bound=BOUNDS["p99 against alone"], priority=False)
