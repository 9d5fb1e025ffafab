"""Parts b and c: how soon kernels leave, from a plain store to the demand word on."""

import math
import statistics

from node import Failure
from sharing import LOW

TRIALS = 50
ROUNDS = 5  # that say what a variant costs
TINY_US, SHORT_US = 2.0, 20.0  # of a block
# Form, blocks longer than and at most, us to leave.
LIMITS = (
    ("persistent", "tiny blocks", 0, TINY_US, 25),
    ("persistent", "short blocks", TINY_US, SHORT_US, 60),
    ("resumable", "blocks of any length", 0, float("inf"), 40),
)
FEW = 10  # evictions that say nothing of a p99
FULL = 8 * 132  # blocks that fill the GPU
LENGTHS_US = (100, 200, 500, 1000, 2000, 0)  # 0: endless
QUEUE_LIMIT = 30


def judged(kernel, form, limit):
    """What an operator gets who asks for @limit us: of the variants that leave so soon the cheapest, or the one that
    leaves soonest if none does; None: the kernel does not have this form."""
    of = [v for v in kernel["forms"] if v["form"] == form and v.get("evictions", 0) >= FEW]
    in_time = [v for v in of if v["delay_us"]["p99"] <= limit]
    if in_time:
        return min(in_time, key=lambda v: v["ratio"])
    return min(of, key=lambda v: v["delay_us"]["p99"], default=None)


def name_of(kernel):
    return f"{kernel['workload']}/{kernel['kernel']}"


def figure(variant):
    delay = variant["delay_us"]
    return f"{delay['p50']:.0f}/{delay['p99']:.0f} us, {variant['ratio']:.3f}x, parts {variant['parts']}"


def show_class(bench, kernels, form, what, low, high, limit):
    of = [(k, judged(k, form, limit)) for k in kernels if low < k["block_us"] <= high]
    found = sorted(((k, v) for k, v in of if v), key=lambda pair: -pair[1]["delay_us"]["p99"])
    if not found:
        bench.report.add("b", f"{form}, {what}", "no evictions")
        return
    late = [(k, v) for k, v in found if v["delay_us"]["p99"] > limit]
    (worst, variant), dearest = found[0], max(found, key=lambda pair: pair[1]["ratio"])
    cost = statistics.median(v["ratio"] for _, v in found)
    named = f"{len(found) - len(late)} of {len(found)} kernels; the latest {name_of(worst)}: {figure(variant)}"
    cost = f"cost: median {cost:.3f}x, worst {dearest[1]['ratio']:.3f}x, {name_of(dearest[0])}"
    cost += f"; of {sum(v['evictions'] + v['unseen'] for _, v in found)} evictions the delay of {sum(v['unseen'] for _, v in found)} was not seen"
    bench.report.at_most(
        "b", f"{form}, {what}: p99 of the latest", variant["delay_us"]["p99"], limit, " us", f"{named}; {cost}"
    )
    for kernel, late_variant in late:
        what_block = f"block {kernel['block_us']:.1f} us"
        bench.report.add("b", f"{form}, late: {name_of(kernel)}, {what_block}", figure(late_variant))


def measured(bench):
    """Every kernel in every form, as bench-kernels found it with small inputs; once in a run."""
    if not bench.kernels:
        for form in ("persistent", "resumable"):
            measure(bench, form, "small")
    return [kernel for (input_class, _), kernel in bench.kernels.items() if input_class == "small"]


def measure(bench, form, input_class, *options):
    """What it found before it failed, if it did, counts as well."""
    node = bench.node
    node.stop_mps()
    argv = [node.bench("bench-kernels"), *node.sizes, "--trials", str(3 if node.simulated else TRIALS)]
    argv += ["--iterations", str(ROUNDS), *options]
    argv += ["--form", form, "--class", "trivial" if node.simulated else input_class]
    client = node.start("bench-kernels", argv, LOW, False, files=False)
    try:
        client.result(120)
    except Failure as error:
        client.kill()
        bench.report.failed("b", f"{form}: {error}")
    for kernel in client.json_lines():
        key = input_class, name_of(kernel)
        bench.kernels.setdefault(key, {**kernel, "forms": []})["forms"] += kernel["forms"]


def with_delays(kernels, name, form):
    """Of the kernel called @name, in whatever workload: pairs of it and a variant of which delays are known."""
    of = [k for k in kernels if k["kernel"] == name.split("/")[1]]
    return [(k, v) for k in of for v in k["forms"] if v["form"] == form and v.get("evictions", 0) >= FEW]


def measured_delay(bench, name, form, chunk, us, blocks):
    """p99 of the variant that is most like it, in us, and as much more or less as @chunk blocks take if all @blocks of
    them take @us. Of kernels that are over before anybody can ask with small inputs: with large ones. None: there is
    none."""
    found = with_delays(measured(bench), name, form)
    if not found and ("large", name) not in bench.kernels:
        measure(bench, form, "large", "--only", name.split("/")[0])
    found = found or with_delays(bench.kernels.values(), name, form)
    if not found:
        return None
    kernel, nearest = min(found, key=lambda pair: abs(math.log2(pair[1]["parts"] / chunk)))
    block_us = us * min(1, kernel["resident"] / blocks)
    longer = 0 if form == "resumable" else block_us - kernel["block_us"]
    return max(nearest["delay_us"]["p99"] + chunk * longer, block_us if form == "persistent" else 0)


def part_b(bench):
    for limit in LIMITS:
        show_class(bench, measured(bench), *limit)
    for length in (5000, 0):
        show_queue(bench, "b", length, ["--blocks", str(FULL)] if not bench.node.simulated else [], 40)


def show_queue(bench, part, length, options, limit):
    """@length: us of a block, 0: without end."""
    node = bench.node
    node.stop_mps()
    argv = [node.bench("bench-queue"), *node.sizes, *(["--length-us", str(length)] if length else []), *options]
    result = node.start("bench-queue", argv, LOW, False, files=False).result()
    what = f"{result['blocks']} blocks of {f'{length} us' if length else 'no end'}, 64 queued, resumable: p99"
    shown = f"p50 {result['p50']:.1f}, max {result['max']:.1f} us; {result['evicted']} evicted, {result['idle']} idle"
    bench.report.at_most(part, what, result["p99"], limit, " us", shown)


def part_c(bench):
    for length in LENGTHS_US[::5] if bench.node.simulated else LENGTHS_US:
        show_queue(bench, "c", length, [], QUEUE_LIMIT)
