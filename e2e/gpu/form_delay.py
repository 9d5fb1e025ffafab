"""Parts b and c: how soon kernels leave, from a plain store to the demand word on."""

import math

from sharing import LOW

TRIALS = 50
OVERHEAD_MAX = 1.03  # a form that costs more is not used
TINY_US, SHORT_US = 2.0, 20.0  # of a block
LIMITS = (("persistent", "tiny blocks", 0, TINY_US, 25), ("persistent", "short blocks", TINY_US, SHORT_US, 60),
          ("resumable", "blocks of any length", 0, float("inf"), 40))
FEW = 10  # evictions that say nothing of a p99
LENGTHS_US = (100, 200, 500, 1000, 2000, 0)  # 0: endless
QUEUE_LIMIT = 30


def soonest(kernel, form):
    """The variant that leaves soonest of those that are cheap enough; None: there is none."""
    cheap = [v for v in kernel["forms"] if v["form"] == form and v["ratio"] <= OVERHEAD_MAX and "delay_us" in v]
    return min(cheap, key=lambda v: v["delay_us"]["p99"], default=None)


def name_of(kernel):
    return f"{kernel['workload']}/{kernel['kernel']}"


def figure(variant):
    delay = variant["delay_us"]
    return f"{delay['p50']:.0f}/{delay['p99']:.0f} us, {variant['ratio']:.3f}x, parts {variant['parts']}"


def show_class(bench, kernels, form, what, low, high, limit):
    of = [(k, soonest(k, form)) for k in kernels if low < k["block_us"] <= high and any(v["form"] == form for v in k["forms"])]
    judged = [(k, v) for k, v in of if v and v["evictions"] >= FEW]
    late = [(k, v) for k, v in judged if v["delay_us"]["p99"] > limit]
    if judged:
        worst, variant = max(judged, key=lambda pair: pair[1]["delay_us"]["p99"])
        named = f"{len(judged)} kernels, the latest {name_of(worst)}: {figure(variant)}"
        bench.report.at_most("b", f"{form}, {what}: p99 of the latest", variant["delay_us"]["p99"], limit, " us", named)
    for kernel, variant in late:
        bench.report.add("b", f"{form}, late: {name_of(kernel)}, block {kernel['block_us']:.1f} us", figure(variant))
    costly = [name_of(k) for k, v in of if not v]
    if costly:
        bench.report.add("b", f"{form}, {what}: every variant costs more than {OVERHEAD_MAX}x", ", ".join(costly))


def measured(bench):
    """Every kernel in every form, as bench-kernels found it; once in a run."""
    if bench.kernels is None:
        node = bench.node
        node.stop_mps()
        argv = [node.bench("bench-kernels"), *node.sizes, "--trials", str(3 if node.simulated else TRIALS)]
        argv += ["--class", "trivial" if node.simulated else "small"]
        client = node.start("bench-kernels", argv, LOW, False, files=False)
        client.result(300)
        bench.kernels = client.json_lines()
    return bench.kernels


def measured_delay(bench, name, form, chunk):
    """p99 of the variant that is most like it, in us; None: there is none."""
    variants = [
        v for k in measured(bench) if name_of(k) == name for v in k["forms"] if v["form"] == form and "delay_us" in v
    ]
    nearest = min(variants, key=lambda v: abs(math.log2(v["parts"] / chunk)), default=None)
    return nearest and nearest["delay_us"]["p99"]


def part_b(bench):
    for limit in LIMITS:
        show_class(bench, measured(bench), *limit)


def part_c(bench):
    node = bench.node
    node.stop_mps()
    for length in LENGTHS_US:
        argv = [node.bench("bench-queue"), *node.sizes, *(["--length-us", str(length)] if length else [])]
        result = node.start("bench-queue", argv, LOW, False, files=False).result()
        what = f"64 blocks of {f'{length} us' if length else 'no end'}, 64 queued: p99"
        shown = f"p50 {result['p50']:.1f}, max {result['max']:.1f} us; {result['evicted']} evicted, {result['idle']} idle"
        bench.report.at_most("c", what, result["p99"], QUEUE_LIMIT, " us", shown)
