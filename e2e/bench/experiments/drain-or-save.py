"""bench-kernels --leaving evicts each kernel at random moments, in three ways, in turn: its workers finish their blocks
(persistent), save them (resumable), or do what is sooner (resumable, as libweir launches it). A fourth way tells
apart what the choice costs and what the code costs: the code that may save, but finishes its blocks. A fifth saves, and
looks for the request as 0.1.0 did: all warps of a block at the same moment. Blocks of 5 us to 5 ms are compared with
pure forms that look as the choice does, and with those of 0.1.0.

A p99 of 50 delays is the longest of them, so a kernel that leaves neither sooner nor later in one way is above 1x half the
time. A kernel counts as later than the better pure form if its p99 is, and its delays as a whole are (Mann and Whitney's
test, one-sided, 5 % for all kernels together).

Two kinds of kernels are not judged. Those without safe points have the same code in all ways: their figures show what
chance does. And a launch that is over within the time in which a form has to leave needs none, and libweir gives it
none: radix_count takes 8 us natively, 11 in persistent and 24 in resumable, and leaves these after 13 and 21 us (H100,
9c16574). Their figures stand in a row of their own. Kernels of which nothing can be said stand in `cut`.

What the cheapest variant that leaves in time costs is not judged here: libweir need not choose it. `form-overhead` judges
its choice."""

import statistics
import typing

import forms
from report import at_most

SHOWS = "drain or save: how soon kernels leave against draining only and saving only, and the cost while nobody waits"
PAPER = "PEP figures 8 and 9"
BOUNDS = {
    "delay": at_most(1.0),
    "mixed lengths": at_most(0.8),
}
BASELINES = ("draining only", "saving only", "the kernel without a form")
NEEDS = ("gpu",)
SIMULATED = True

MIXED, MIXED_KERNELS = "mixed-lengths", ("mixed_rare", "mixed_tail")
CHANCE = 0.05  # of finding a kernel later that is not, all together
TRIALS, SIMULATED_TRIALS = 50, 2
LIMIT = 270  # seconds


class Ways(typing.NamedTuple):
    """A kernel's variants with one block per ticket."""

    drains: dict
    saves: dict
    saves_again: dict
    saves_together: dict  # looks as 0.1.0 did
    chooses: dict
    finishes: dict


def measure(bench):
    simulated = bench.node.simulated
    drain = ["--drain", "100000"] if simulated else []  # it is a thousand times slower
    return forms.run_kernels(bench, "small", SIMULATED_TRIALS if simulated else TRIALS, LIMIT, "--leaving", *drain)


def ways(kernel):
    """None: it does not have both forms."""
    single = [v for v in kernel["forms"] if v["parts"] == 1]
    drains = [v for v in single if v["form"] == "persistent"]
    saves = [v for v in single if v["form"] == "resumable" and v["saves"] and not v["together"]]
    together = [v for v in single if v["together"]]
    finishes = [v for v in single if v["finishes"]]
    chooses = [v for v in single if v["form"] == "resumable" and not v["saves"] and not v["finishes"]]
    return Ways(drains[0], *saves, *together, *chooses, *finishes) if drains and saves else None


def p99(variant):
    return variant["delay_us"]["p99"]


def with_ways(bench, kernels):
    """Pairs of a kernel and its ways, if each was evicted often enough. The others stand in `cut`."""
    pairs = [(kernel, ways(kernel)) for kernel in kernels]
    single = [forms.name_of(kernel) for kernel, of in pairs if not of]
    few = [forms.name_of(kernel) for kernel, of in pairs if of and not forms.was_evicted(bench, of)]
    for why, names in (("without both forms", single), (f"fewer than {forms.enough(bench)} evictions in one of the ways", few)):
        if names:
            bench.report.cut(f"{why}: {len(names)} of {len(kernels)} kernels: {', '.join(names)}")
    return [(kernel, of) for kernel, of in pairs if of and forms.was_evicted(bench, of)]


def can_save(of):
    return of.saves.get("blocks_saved", 0) > 0


def blocks(variant):
    saved, drained = variant.get("blocks_saved", 0), variant.get("blocks_drained", 0)
    return f"{saved} saved, {drained} finished"


def delays(of):
    others = f"draining {p99(of.drains):.0f}, saving {p99(of.saves):.0f} and {p99(of.saves_again):.0f}"
    others += f" (as 0.1.0 looks {p99(of.saves_together):.0f}), finishing with this code {p99(of.finishes):.0f}"
    medians = "/".join(f"{v['delay_us']['p50']:.0f}" for v in (of.chooses, of.drains, of.saves, of.finishes, of.saves_together))
    shown = f"{p99(of.chooses):.0f} us; {others}; medians {medians} us"
    return f"{shown}; blocks: {blocks(of.chooses)}; saving: {blocks(of.saves)}"


def against_better(of):
    return p99(of.chooses) / min(p99(of.drains), p99(of.saves))


def against_0_1_0(of):
    return p99(of.chooses) / min(p99(of.drains), p99(of.saves_together))


def are_later(delays, others):
    """The chance that delays of one kind are as late as @delays among @others: the normal approximation."""
    n, m = len(delays), len(others)
    above = sum((a > b) + (a == b) / 2 for a in delays for b in others)
    return statistics.NormalDist(n * m / 2, (n * m * (n + m + 1) / 12) ** 0.5).cdf(n * m - above)


def is_later(of, kernels):
    """Than the better pure form, beyond chance."""
    better = min(of.drains, of.saves, key=p99)
    return against_better(of) > 1 and are_later(of.chooses["delays_us"], better["delays_us"]) < CHANCE / kernels


def against_same_code(of):
    """Medians: fewer evictions than for a p99 tell the same."""
    return of.chooses["delay_us"]["p50"] / min(of.finishes["delay_us"]["p50"], of.saves["delay_us"]["p50"])


def show_mixed(bench, found):
    """Delays of kernels whose blocks differ in length."""
    mixed = {kernel["kernel"]: of for kernel, of in found if kernel["workload"] == MIXED}
    for name in MIXED_KERNELS:
        what = f"blocks of 5 us to 5 ms, {name}: p99 against the better pure form"
        if name not in mixed:
            bench.report.lacks(what, BOUNDS["mixed lengths"], "too few evictions")
            continue
        of = mixed[name]
        bench.report.judge(what, against_better(of), BOUNDS["mixed lengths"], delays(of))
        bench.report.judge(f"{what} of 0.1.0", against_0_1_0(of), BOUNDS["mixed lengths"], delays(of))


def show_delays(bench, found):
    """Delays of all other kernels against the better of the two pure forms."""
    found = [(k, w) for k, w in found if k["workload"] != MIXED]
    chance = [against_better(w) for _, w in found if not can_save(w)]
    if chance:
        shown = f"{len(chance)} kernels, {sum(ratio > BOUNDS['delay'].limit for ratio in chance)} above 1x"
        bench.report.add("p99 against the better of the same code, worst kernel", f"{max(chance):.3f}x", baselines=shown)
    short = [f"{forms.name_of(k)} {against_better(w):.2f}x" for k, w in found if can_save(w) and not forms.needs_form(k)]
    bench.report.add("kernels that need no form", f"{len(short)} kernels", baselines=", ".join(short))
    found = [(k, w) for k, w in found if can_save(w) and (forms.needs_form(k) or bench.node.simulated)]
    if not found:
        bench.report.add("p99 against the better pure form", "no evictions")
        return
    ratios = {forms.name_of(k): against_better(w) for k, w in found}
    noise = [p99(w.saves_again) / p99(w.saves) for _, w in found]
    sooner = sum(ratio <= BOUNDS["delay"].limit for ratio in ratios.values())
    later = {forms.name_of(k): against_better(w) for k, w in found if is_later(w, len(found))}
    worst = max(found, key=lambda pair: against_better(pair[1]))
    shown = f"{sooner} of {len(found)} kernels; {forms.name_of(worst[0])}: {delays(worst[1])}"
    shown += f"; saving against saving: {min(noise):.2f} to {max(noise):.2f}x"
    bench.report.add("p99 against the better pure form, worst kernel", f"{max(ratios.values()):.3f}x", baselines=shown)
    shown = ", ".join(f"{name} {ratio:.2f}x" for name, ratio in later.items())
    what = "p99 against the better pure form, worst of the kernels that leave later beyond chance"
    bench.report.judge(what, max(later.values(), default=1), BOUNDS["delay"], shown or f"none of {len(found)}")
    shown = f"saving against saving {statistics.median(noise):.3f}x"
    bench.report.add("the same, median of all kernels", f"{statistics.median(ratios.values()):.3f}x", baselines=shown)
    same = {forms.name_of(k): against_same_code(w) for k, w in found}
    least, most = min(same, key=same.get), max(same, key=same.get)
    shown = f"{least} {same[least]:.2f}x to {most} {same[most]:.2f}x"
    what = "median delay against the better of saving and finishing with the same code, median of all kernels"
    bench.report.add(what, f"{statistics.median(same.values()):.3f}x", baselines=shown)
    for kernel, of in sorted(found, key=lambda pair: -against_better(pair[1])):
        name = f"{forms.name_of(kernel)}, block {kernel['block_us']:.1f} us"
        bench.report.add(name, f"{against_better(of):.2f}x", baselines=delays(of))


def bytes_of(variant):
    """Of an eviction."""
    written = variant.get("blocks_saved", 0) * variant.get("block_bytes", 0)
    return written / (variant["evictions"] + variant["unseen"])


def show_bytes(bench, found):
    """What evictions save, against always saving: one of each kernel."""
    chosen, always = (sum(bytes_of(way(w)) for _, w in found) for way in (lambda w: w.chooses, lambda w: w.saves))
    shown = f"{chosen / 1e6:.1f} MB in one eviction of each kernel; if always saved {always / 1e6:.1f} MB"
    bench.report.add("bytes saved", f"{chosen / always:.3f}x" if always else "none", baselines=shown)


def show_cost(bench, kernels):
    """The cheapest variant that leaves in time, which is not one that only saves."""
    kernels = [kernel for kernel in kernels if kernel["workload"] != MIXED]
    least = {forms.name_of(kernel): forms.least_cost(bench, kernel) for kernel in kernels}
    late = [name for name, cost in least.items() if cost is None]
    dear = sorted(((cost, name) for name, cost in least.items() if cost is not None and not forms.LITTLE.allows(cost)), reverse=True)
    cheap = forms.count_cheap(least.values())
    shown = f"libweir need not choose it; {len(late)} never left within {forms.WITHIN_US} us: {', '.join(late) or 'none'}"
    what = f"kernels with a variant that leaves within {forms.WITHIN_US} us and costs {forms.LITTLE}"
    bench.report.add(what, f"{cheap} of {len(least)}", baselines=shown)
    shown = ", ".join(f"{name} {cost:.3f}x" for cost, name in dear)
    bench.report.add("the others", f"{len(dear)} kernels", baselines=shown)


def show_choice_cost(bench, kernels):
    """While nobody waits, a kernel that may choose does the same as one that always saves."""
    found = [w for k in kernels if (w := ways(k))]
    ratios = [w.chooses["ratio"] / statistics.mean((w.saves["ratio"], w.saves_again["ratio"])) for w in found]
    noise = [w.saves_again["ratio"] / w.saves["ratio"] for w in found]
    shown = f"worst {max(ratios):.3f}x; saving against saving {statistics.median(noise):.4f}x, worst {max(noise):.3f}x"
    what = "time while nobody waits, against kernels that always save: median"
    bench.report.add(what, f"{statistics.median(ratios):.4f}x", baselines=shown)


def run(bench):
    kernels = measure(bench)
    found = with_ways(bench, kernels)
    show_mixed(bench, found)
    show_delays(bench, found)
    show_bytes(bench, found)
    show_cost(bench, kernels)
    show_choice_cost(bench, kernels)
