"""bench-kernels sets the demand word at 50 random moments of each kernel and measures until the kernel has left."""

import statistics

import forms
from report import at_most

SHOWS = "time from the demand until a kernel has left: every workload, 50 random moments"
PAPER = ""
BOUNDS = {
    "persistent, tiny blocks": at_most(25, " us"),
    "persistent, short blocks": at_most(60, " us"),
    "resumable, blocks of any length": at_most(40, " us"),
    "full GPU, 64 queued": at_most(40, " us"),
}
BASELINES = ("the kernel without a form, for its cost",)
NEEDS = ("gpu",)
SIMULATED = True

TINY_US, SHORT_US = 2.0, 20.0  # of a block
# Form, name, and length of blocks: longer than, and at most.
CLASSES = (
    ("persistent", "tiny blocks", 0, TINY_US),
    ("persistent", "short blocks", TINY_US, SHORT_US),
    ("resumable", "blocks of any length", 0, float("inf")),
)
FULL = 8 * 132  # blocks that fill the GPU


def judged(kernel, form, limit):
    """The variant for an operator who asks for @limit us: the cheapest that leaves in time, or the soonest if none does.
    None: the kernel does not have this form."""
    of = [v for v in kernel["forms"] if v["form"] == form and v.get("evictions", 0) >= forms.FEW]
    in_time = [v for v in of if v["delay_us"]["p99"] <= limit]
    if in_time:
        return min(in_time, key=lambda v: v["ratio"])
    return min(of, key=lambda v: v["delay_us"]["p99"], default=None)


def figure(variant):
    delay = variant["delay_us"]
    return f"{delay['p50']:.0f}/{delay['p99']:.0f} us, {variant['ratio']:.3f}x, parts {variant['parts']}"


def show_class(bench, kernels, form, what, low, high):
    bound = BOUNDS[f"{form}, {what}"]
    limit = bound.limit
    of = [(k, judged(k, form, limit)) for k in kernels if low < k["block_us"] <= high]
    found = sorted(((k, v) for k, v in of if v), key=lambda pair: -pair[1]["delay_us"]["p99"])
    if not found:
        bench.report.add(f"{form}, {what}", "no evictions")
        return
    late = [(k, v) for k, v in found if v["delay_us"]["p99"] > limit]
    (worst, variant), dearest = found[0], max(found, key=lambda pair: pair[1]["ratio"])
    cost = statistics.median(v["ratio"] for _, v in found)
    named = f"{len(found) - len(late)} of {len(found)} kernels; the latest {forms.name_of(worst)}: {figure(variant)}"
    cost = f"cost: median {cost:.3f}x, worst {dearest[1]['ratio']:.3f}x, {forms.name_of(dearest[0])}"
    cost += f"; of {sum(v['evictions'] + v['unseen'] for _, v in found)} evictions the delay of {sum(v['unseen'] for _, v in found)} was not seen"
    bench.report.judge(f"{form}, {what}: p99 of the latest", variant["delay_us"]["p99"], bound, f"{named}; {cost}")
    for kernel, late_variant in late:
        what_block = f"block {kernel['block_us']:.1f} us"
        bench.report.add(f"{form}, late: {forms.name_of(kernel)}, {what_block}", figure(late_variant))


def run(bench):
    for of in CLASSES:
        show_class(bench, forms.measured(bench), *of)
    for length in (5000, 0):
        forms.show_queue(bench, length, ["--blocks", str(FULL)] if not bench.node.simulated else [], BOUNDS["full GPU, 64 queued"])
