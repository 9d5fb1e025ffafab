"""Each of the papers' kernels leaves a quarter of the SMs at a random moment (132 -> 100 on an H100), goes on on the others, and
comes back 30 us later: bench-kernels --groups, in one process, without Weir. The times are the host's, from its store
until the last worker is gone, and until all workers of the continuation have a ticket. Before that, the kernels run with
groups and without while nobody asks.

A worker that leaves runs the blocks of its tickets to their end. So the kernels whose tickets' blocks take TICKET_US at
most are judged once more by themselves. In a launch without a poller (preempt-abi.h), where all workers draw at the same
time, many draw once more while one polls. Launches that are asked while every worker runs its first ticket are judged like
all others, and counted once more. A kernel that ends before it is asked, in most of its launches, is asked more often; one
that was seen less than ten times all the same is named in `cut`."""

import math
import statistics

import forms
from report import at_most

SHOWS = "a part of the SMs: how soon each kernel leaves and comes back, and what groups cost while nobody asks"
PAPER = "FlexSched: 51 us mean"
BOUNDS = {
    "leave": at_most(60, " us"),
    "return": at_most(100, " us"),
    "cost": at_most(1.01),
    "worst cost": at_most(1.03),
}
BASELINES = ("native", "the same tickets without groups")
NEEDS = ("gpu",)
SIMULATED = True

LEFT, SIMULATED_LEFT = 32, 1  # SMs, of 132 and 2
# us that the blocks take which a worker may still run: tickets are chosen by the first, and kernels whose blocks are within
# the second are judged by themselves, too.
WANTED_US, TICKET_US = 20, 30
TRIALS, SIMULATED_TRIALS = 40, 2
LIMIT = 280  # seconds
# The p99 of TRIALS times is the longest. Kernels near a bound, and those seen too rarely, are measured again, more often.
MORE_TRIALS, NEAR, MORE_LIMIT = 200, 0.8, 30


def measured(bench, trials, limit, *options):
    left = SIMULATED_LEFT if bench.node.simulated else LEFT
    return forms.run_kernels(bench, "large", trials, limit, "--groups", str(left), *options)


def measure(bench):
    """(kernel, its variant with groups, without)"""
    if bench.node.simulated:
        return with_chosen(measured(bench, SIMULATED_TRIALS, LIMIT, "--check"))
    found = with_chosen(measured(bench, TRIALS, LIMIT, "--check"))
    unclear = sorted({(kernel["workload"], variant["parts"]) for kernel, variant, _ in found if is_near(kernel, variant) or is_rare(variant)})
    more = {}
    for workload, parts in unclear:
        again = measured(bench, MORE_TRIALS, MORE_LIMIT, "--only", workload, "--parts", str(parts), "--each")
        more |= {(forms.name_of(kernel), parts): times_of(variant) for kernel, variant, _ in with_chosen(again)}
    return [(kernel, variant | more.get((forms.name_of(kernel), variant["parts"]), {}), plain) for kernel, variant, plain in found]


def with_chosen(kernels):
    return [(kernel, *pair) for kernel in kernels if (pair := chosen(kernel))]


def times_of(variant):
    return {key: variant[key] for key in ("leave_us", "first_leave_us", "return_us") if key in variant}


def is_near(kernel, variant):
    parts = [variant[key]["p99"] / BOUNDS[key.removesuffix("_us")].limit for key in ("leave_us", "return_us") if key in variant]
    return max(parts, default=0) > NEAR and rest_us(kernel, variant) <= TICKET_US


def is_rare(variant):
    return any(variant.get(key, {}).get("n", 0) < forms.FEW for key in ("leave_us", "return_us"))


def rest_us(kernel, variant):
    """How long a worker may go on with blocks that it has tickets for."""
    return (variant["parts"] + variant["ahead"]) * kernel["block_us"]


def chosen(kernel):
    """(with groups, without): the largest tickets that are short enough; else the smallest. None: no such form."""
    groups = {v["parts"]: v for v in kernel["forms"] if v["groups"]}
    plain = {v["parts"]: v for v in kernel["forms"] if not v["groups"]}
    if not groups:
        return None
    short = [parts for parts, v in groups.items() if rest_us(kernel, v) <= WANTED_US]
    parts = max(short, default=min(groups))
    return groups[parts], plain[parts]


def judge_latest(bench, what, found, key, bound):
    """@found: (kernel, variant) of those that were seen often enough, the latest first."""
    if not found:
        bench.report.lacks(what, bound, "no kernel was long enough")
        return
    kernel, worst = found[0]
    in_time = sum(bound.allows(variant[key]["p99"]) for _, variant in found)
    median = statistics.median(variant[key]["p50"] for _, variant in found)
    named = f"{in_time} of {len(found)} kernels; median {median:.0f} us; the latest {forms.name_of(kernel)}, blocks {kernel['block_us']:.1f} us"
    bench.report.judge(what, worst[key]["p99"], bound, named)


def show_times(bench, found, key, bound):
    what, seen, rare = key.removesuffix("_us"), [], []
    for kernel, variant, _ in found:
        often = variant.get(key, {}).get("n", 0) >= forms.FEW
        (seen if often else rare).append((kernel, variant))
    seen.sort(key=lambda pair: -pair[1][key]["p99"])
    short = [pair for pair in seen if rest_us(*pair) <= TICKET_US]
    long = [pair for pair in seen if rest_us(*pair) > TICKET_US]
    judge_latest(bench, f"{what}: p99 of the latest", seen, key, bound)
    judge_latest(bench, f"{what}, tickets of {TICKET_US} us at most: p99 of the latest", short, key, bound)
    if rare:
        bench.report.cut(f"{what}: {len(rare)} of {len(found)} kernels seen less than {forms.FEW} times: {', '.join(forms.name_of(kernel) for kernel, _ in rare)}")
    for kernel, variant in short[:5]:
        bench.report.add(f"{what}: {forms.name_of(kernel)}", figure(kernel, variant, key))
    for kernel, variant in long:
        bench.report.add(f"{what}, tickets too long: {forms.name_of(kernel)}", figure(kernel, variant, key))


def judge_cost(bench, what, ratios):
    """@ratios: by kernel."""
    mean, worst = math.exp(statistics.fmean(math.log(ratio) for ratio in ratios.values())), max(ratios, key=ratios.get)
    bench.report.judge(f"cost, {what}, geometric mean", mean, BOUNDS["cost"], f"{len(ratios)} kernels; worst {ratios[worst]:.3f}x, {worst}")
    return worst


def figure(kernel, variant, key):
    of, first = variant[key], variant.get(f"first_{key}")
    asked = f", {first['n']} in their first blocks: {first['p50']:.0f}/{first['max']:.0f} us" if first else ""
    return f"{of['p50']:.0f}/{of['p99']:.0f}/{of['max']:.0f} us of {of['n']}{asked}, blocks {kernel['block_us']:.1f} us, parts {variant['parts']}"


def run(bench):
    bench.report.cut("one process, alone on the GPU: no other client waits for the SMs, and no way of sharing is a baseline")
    found = measure(bench)
    show_times(bench, found, "leave_us", BOUNDS["leave"])
    show_times(bench, found, "return_us", BOUNDS["return"])
    if not found:
        bench.report.failed("no kernel has the form")
        return
    judge_cost(bench, "against the same tickets without groups", {forms.name_of(k): v["us"] / p["us"] for k, v, p in found})
    native = {forms.name_of(k): v["ratio"] for k, v, _ in found}
    worst = judge_cost(bench, "against native", native)
    above = sum(not BOUNDS["worst cost"].allows(ratio) for ratio in native.values())
    bench.report.judge("cost, against native, the worst kernel", native[worst], BOUNDS["worst cost"], f"{worst}; {above} of {len(native)} above it")
