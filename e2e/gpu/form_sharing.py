"""Parts d and e: the latency of HIGH's bursts beside kernels that only leave by themselves."""

import sharing

P99_LIMIT = {"d": 1.05, "e": 1.25}
WARM_UP = 2.0  # seconds: LOW's kernel is measured, compiled, and its form chosen
# Waves of blocks in a kernel, and its length: 20 us and 5 ms a block.
LOWS = {"20 us blocks": (100, 2000), "5 ms blocks": (8, 40000)}


def filler(bench, name):
    waves, length_us = LOWS[name]
    if bench.node.simulated:
        waves, length_us = 2, length_us * 2 // waves
    argv = [bench.node.program("filler"), *bench.node.sizes, "--waves", str(waves)]
    argv += ["--length-us", str(length_us)]
    return sharing.Low(name, argv, "kernels", lambda result: result["kernels_per_second"], 0.2 if bench.node.simulated else WARM_UP)


def part_d(bench):
    bench.node.ensure_mps()
    for name in LOWS:
        sharing.compare(bench, "d", filler(bench, name), p99_limit=P99_LIMIT["d"])


def part_e(bench):
    bench.node.stop_mps()
    for name in LOWS:
        sharing.compare(bench, "e", filler(bench, name), p99_limit=P99_LIMIT["e"], priority=False)
