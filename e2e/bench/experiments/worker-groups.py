"""Each of the papers' kernels leaves a quarter of the SMs at a random moment (132 -> 100 on an H100), goes on on the others, and
comes back 30 us later: bench-kernels --groups, in one process, without Weir. The times are the host's, from its store
until the last worker is gone, and until all workers of the continuation have a ticket. Before that, the kernels run with
groups and without while nobody asks.

A kernel is judged if the blocks of a worker's tickets take TICKET_US at most: a worker that leaves runs them to their end.
In a launch without a poller (preempt-abi.h), where all workers draw at the same time, many draw once more while one polls.
The others are shown, each with its times, and the judged row says how many there are. Launches that are asked while every
worker runs its first ticket are judged like all others, and counted once more."""

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
}
BASELINES = ("the same tickets without groups",)
NEEDS = ("gpu",)
SIMULATED = True

LEFT, SIMULATED_LEFT = 32, 1  # SMs, of 132 and 2
# us that the blocks take which a worker may still run: tickets are chosen by the first, and kernels are judged whose blocks
# are within the second.
WANTED_US, TICKET_US = 20, 30
TRIALS, SIMULATED_TRIALS = 40, 2
LIMIT = 280  # seconds
# The p99 of TRIALS times is the longest. Kernels near a bound are measured again, more often.
MORE_TRIALS, NEAR, MORE_LIMIT = 200, 0.8, 30


def measured(bench, trials, limit, *options):
    left = SIMULATED_LEFT if bench.node.simulated else LEFT
    return forms.run_kernels(bench, "large", trials, limit, "--groups", str(left), *options)


def measure(bench):
    """(kernel, its variant with groups, without)"""
    if bench.node.simulated:
        return with_chosen(measured(bench, SIMULATED_TRIALS, LIMIT, "--check"))
    found = with_chosen(measured(bench, TRIALS, LIMIT, "--check"))
    near = sorted({(kernel["workload"], variant["parts"]) for kernel, variant, _ in found if is_near(kernel, variant)})
    more = {}
    for workload, parts in near:
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


def show_times(bench, found, key, bound):
    """Kernels whose tickets are short enough are judged; the others have blocks that are too long, and leave as a whole."""
    seen = [(k, v) for k, v, _ in found if v.get(key, {}).get("n", 0) >= forms.FEW]
    short = [(k, v) for k, v in seen if rest_us(k, v) <= TICKET_US]
    long = [(k, v) for k, v in seen if rest_us(k, v) > TICKET_US]
    what = key.removesuffix("_us")
    if not short:
        bench.report.add(f"{what}: p99 of the latest", "no kernel was long enough")
        return
    late = sorted(short, key=lambda pair: -pair[1][key]["p99"])
    kernel, worst = late[0]
    in_time = sum(v[key]["p99"] <= bound.limit for _, v in short)
    median = statistics.median(v[key]["p50"] for _, v in short)
    named = f"{in_time} of {len(short)} kernels; median {median:.0f} us; the latest {forms.name_of(kernel)}, blocks {kernel['block_us']:.1f} us"
    named += f"; not judged: {len(long)} with blocks too long, {len(found) - len(seen)} seen less than {forms.FEW} times"
    bench.report.judge(f"{what}: p99 of the latest", worst[key]["p99"], bound, named)
    for k, v in late[:5]:
        bench.report.add(f"{what}: {forms.name_of(k)}", figure(k, v, key))
    for k, v in long:
        bench.report.add(f"{what}, blocks too long: {forms.name_of(k)}", figure(k, v, key))


def figure(kernel, variant, key):
    of, first = variant[key], variant.get(f"first_{key}")
    asked = f", {first['n']} in their first blocks: {first['p50']:.0f}/{first['max']:.0f} us" if first else ""
    return f"{of['p50']:.0f}/{of['p99']:.0f}/{of['max']:.0f} us of {of['n']}{asked}, blocks {kernel['block_us']:.1f} us, parts {variant['parts']}"


def run(bench):
    found = measure(bench)
    show_times(bench, found, "leave_us", BOUNDS["leave"])
    show_times(bench, found, "return_us", BOUNDS["return"])
    ratios = {forms.name_of(k): v["us"] / p["us"] for k, v, p in found}
    if not ratios:
        bench.report.failed("no kernel has the form")
        return
    mean, worst = math.exp(statistics.fmean(math.log(ratio) for ratio in ratios.values())), max(ratios, key=ratios.get)
    bench.report.judge("cost, geometric mean", mean, BOUNDS["cost"], f"{len(ratios)} kernels; worst {ratios[worst]:.3f}x, {worst}")
