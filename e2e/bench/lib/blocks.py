"""LOW clients whose kernels leave only by themselves: their blocks are short or long."""

import bursts

WARM_UP = 2.0  # seconds in which LOW's kernel is measured and compiled, and its form chosen


# Waves of blocks in a kernel, and its length: 20 us and 5 ms a block.
LOWS = {"20 us blocks": (100, 2000), "5 ms blocks": (8, 40000)}


def filler(bench, name):
    waves, length_us = LOWS[name]
    if bench.node.simulated:
        waves, length_us = 2, length_us * 2 // waves
    argv = [bench.node.program("filler"), *bench.node.sizes, "--waves", str(waves)]
    argv += ["--length-us", str(length_us)]
    return bursts.Low(name, argv, "kernels", lambda result: result["kernels_per_second"], 0.2 if bench.node.simulated else WARM_UP)
