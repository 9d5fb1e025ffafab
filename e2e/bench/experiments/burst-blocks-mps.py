import blocks
import bursts
from report import at_most

SHOWS = "latency of HIGH's bursts beside 20 us blocks and 5 ms blocks, under MPS"
PAPER = ""
BOUNDS = {"p99 against alone": at_most(1.05)}
BASELINES = ("HIGH alone", "MPS", "MPS with stream priority")
NEEDS = ("gpu", "mps", "root")
SIMULATED = True


def run(bench):
    bench.node.ensure_mps()
    for name in blocks.LOWS:
        bursts.compare(bench, blocks.filler(bench, name), p99_bound=BOUNDS["p99 against alone"])
