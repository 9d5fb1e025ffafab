"""Parts a, g and t: what forms cost when nobody asks kernels to leave."""

import math
import statistics

from form_truth import input_class, modules
from sharing import LOW

ROUNDS = 3
WARM_UP = 1.0  # seconds of each benchmark: time to measure, compile and choose
MEAN_LIMIT, WORST_LIMIT = 1.01, 1.03
TARGET_US, TARGET_SHARE = 100, 90  # of the kernels, per cent
CACHED_LIMIT_MS = 2
CORPUS_MB = 50


def kernel_times(bench, weir):
    """Kernel to its median, and what libweir says of its choice."""
    node = bench.node
    warm_up = (0.1 if node.simulated else WARM_UP) if weir else 0
    argv = [node.program("kernels"), *node.sizes, "--time", *input_class(bench), "--warm-up", str(warm_up)]
    client = node.start("kernels", argv, LOW, weir, files=False, env={"WEIR_LOG": "debug"} if weir else None)
    client.result(300)
    lines = client.json_lines()
    times = {f"{line['workload']}/{k['name']}": k["median_us"] for line in lines for k in line["kernels"]}
    return times, (client.folder / "stderr").read_text(errors="replace")


def part_a(bench):
    """Interleaved, so that a GPU that gets warmer or slower does so for all alike."""
    node = bench.node
    node.stop_mps()
    node.ensure_agent()
    native, weir, log = [], [], ""
    for _ in range(1 if node.simulated else ROUNDS):
        native.append(kernel_times(bench, False)[0])
        times, log = kernel_times(bench, True)
        weir.append(times)
    ratios = {
        name: statistics.median(run[name] for run in weir) / statistics.median(run[name] for run in native)
        for name in native[0]
    }
    mean = math.exp(statistics.fmean(math.log(ratio) for ratio in ratios.values()))
    worst = max(ratios, key=ratios.get)
    bench.report.at_most("a", "kernel alone, geometric mean", mean, MEAN_LIMIT, baselines=f"{len(ratios)} kernels")
    bench.report.at_most("a", "kernel alone, worst", ratios[worst], WORST_LIMIT, baselines=worst)
    for name, ratio in ratios.items():
        if ratio > WORST_LIMIT:
            us = statistics.median(run[name] for run in native)
            bench.report.add("a", f"over {WORST_LIMIT}x: {name}", f"{ratio:.3f}x", baselines=f"native {us:.1f} us")


def part_g(bench):
    node = bench.node
    node.stop_mps()
    node.renew_agent()
    env = {"WEIR_SOCKET": str(node.socket)}
    client = node.start("bench-compile", [node.bench("bench-compile"), *node.sizes], LOW, False, files=False, env=env)
    client.result(300)
    rows = client.json_lines()
    cold, cached = [row["cold_ms"] for row in rows], [row["cached_ms"] for row in rows]
    slowest = max(rows, key=lambda row: row["cold_ms"])
    bench.report.add(
        "g", "first use of a module, cold", f"median {statistics.median(cold):.0f} ms, worst {max(cold):.0f} ms",
        baselines=f"{len(rows)} modules, {sum(row['kernels'] for row in rows)} kernels; {slowest['module']}",
    )
    bench.report.at_most("g", "first use of a module, from the cache, worst", max(cached), CACHED_LIMIT_MS, " ms")
    load = [row["load_ms"] for row in rows]
    bench.report.add("g", "loading its objects", f"median {statistics.median(load):.1f} ms, worst {max(load):.1f} ms")


def part_t(bench):
    node = bench.node
    corpus = max(modules(bench), key=lambda path: path.stat().st_size)
    argv = [node.bench("bench-transform"), str(corpus), str(2 if node.simulated else CORPUS_MB)]
    client = node.start("bench-transform", argv, LOW, False, files=False)
    client.result(120)
    for line in client.output.splitlines():
        bench.report.add("t", *line.split(None, 1), baselines=corpus.name)
