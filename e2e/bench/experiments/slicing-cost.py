"""The papers' kernels in the form that leaves on demand, and cut into launches that last as long as that form takes to
leave: what each costs while nobody preempts."""

import math
import statistics

import forms
from papers import EFFISHA, FLEP
from report import at_least, at_most

SHOWS = "cost of forms that leave against slicing with the same delay"
PAPER = "FLEP figure 17, EffiSha figures 13, 14"
BOUNDS = {"FLEP": at_most(1.025), "EffiSha": at_most(1.04), "slicing costs more": at_least(1, "x")}  # what they reached
BASELINES = ("native kernels", "kernel slicing (PKM)")
NEEDS = ("gpu",)
SIMULATED = True

CHEAP = 1.01  # a variant that costs so much more than the cheapest may be chosen for the sake of its delay
DELAYS_US = (1000, 500, 250, 125, 62.5)  # EffiSha figure 14


def of_papers():
    """(paper, workload, kernel)."""
    yield from (("FLEP", workload, kernel) for workload, kernel, *_ in FLEP.values())
    yield from (("EffiSha", workload, kernel) for workload, kernel in EFFISHA)


def chosen(kernel):
    """The variant that leaves soonest among those that are nearly as cheap as the cheapest; None: none left."""
    leaving = [v for v in kernel["forms"] if v["form"] != "sliced" and v.get("evictions")]
    if not leaving:
        return None
    least = min(v["ratio"] for v in leaving)
    return min((v for v in leaving if v["ratio"] <= CHEAP * least), key=lambda v: v["delay_us"]["p50"])


def slicing(kernel, delay):
    """The ratio to native if each launch lasts @delay us at most: by what a further launch costs, least squares through the
    measured numbers of slices. None: it was not measured."""
    us = kernel["native_us"] / kernel["launches"]
    measured = [(v["parts"] - 1, v["ratio"] - 1) for v in kernel["forms"] if v["form"] == "sliced"]
    if not measured:
        return None
    each = sum(n * cost for n, cost in measured) / sum(n * n for n, _ in measured)
    return 1 + max(0, each) * (math.ceil(us / delay) - 1)


def mean(ratios):
    return math.exp(statistics.fmean(math.log(ratio) for ratio in ratios))


def run(bench):
    papers = list(of_papers())[:: 8 if bench.node.simulated else 1]
    for workload in dict.fromkeys(workload for _, workload, _ in papers):
        forms.measure(bench, "", "large", "--only", workload)
    found = {"FLEP": [], "EffiSha": []}
    by_delay = {delay: [] for delay in DELAYS_US}
    for paper, workload, name in papers:
        kernel = bench.kernels.get(("large", f"{workload}/{name}"))
        variant = kernel and chosen(kernel)
        sliced = variant and slicing(kernel, variant["delay_us"]["p50"])
        if not sliced:
            bench.report.add(f"{paper}: {workload}/{name}", "not compared", baselines="it ends too soon to be evicted, or has no slices")
            continue
        found[paper].append((variant["ratio"], sliced))
        for delay in DELAYS_US:
            by_delay[delay].append(slicing(kernel, delay))
        told = f"{variant['form']}, {variant['parts']} blocks a ticket, leaves in {variant['delay_us']['p50']:.0f} us; native {kernel['native_us'] / kernel['launches']:.0f} us"
        bench.report.add(f"{paper}: {workload}/{name}", f"{variant['ratio']:.3f}x, slicing {sliced:.3f}x", baselines=told)
    for paper, rows in found.items():
        if not rows:
            continue
        weir, sliced = (mean(ratios) for ratios in zip(*rows))
        told = f"{len(rows)} kernels; slicing with the same delay {sliced:.3f}x, up to {max(s for _, s in rows):.2f}x"
        bench.report.judge(f"{paper}'s kernels in the form that leaves, mean", weir, BOUNDS[paper], told)
        bench.report.judge(f"{paper}'s kernels: slicing against it, mean", sliced / weir, BOUNDS["slicing costs more"])
    text = ", ".join(f"{mean(ratios):.3f}x at {delay:g} us" for delay, ratios in by_delay.items() if ratios)
    bench.report.add("slicing by delay, mean", text)
