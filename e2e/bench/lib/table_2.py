"""What there is to gain by running FlexSched's kernels (its table 2) in pairs on this GPU: each kernel with a part of its blocks, each
pair in a few configurations by hand, and how soon a queue of all can be done at these rates."""

import itertools
import random
import statistics

from coexec import FLEXSCHED, Pair, configurations, few, room
from pairings import least_time, time_by_rule

CONFIGURATIONS = 3  # of a pair
SECONDS, SKIPPED = 0.08, 0.03  # of each: those that count, and those before
PARTS = (0.25, 0.5, 0.75)  # of the blocks that an SM holds
LEAST = 0.05  # a kernel with a lower rate makes no progress
RULE_RUNS = 1000  # of FlexSched's rule for each first kernel, as in the paper

NOT_ALIKE = (
    "kernels of table 2 are compiled without contraction, and have no approximate divisions and square roots, so that results are the "
    "CPU's to the last bit: BS and the convolutions have more arithmetic than NVIDIA's samples"
)


def work_of(names, mean_ms):
    """ms of each kernel in a queue: as long beside each other as in the paper."""
    mean = statistics.fmean(FLEXSCHED[name][0] for name in names)
    return {name: mean_ms * FLEXSCHED[name][0] / mean for name in names}


def kind(name):
    """What the paper's GPU bounds it by: memory (MB), or computing (CB)."""
    return FLEXSCHED[name][1]


def measure_blocks(bench, kernels, names):
    """How fast each kernel is with a part of its blocks. One that waits for memory or for a unit of the SM needs few. One whose speed
    falls with each block has nothing to leave to another."""
    told = []
    for name in names:
        most = room([kernels.parts[name]], [0], 0)
        bounds = [(max(1, round(part * most)),) for part in PARTS]
        by = kernels.by_hand([kernels.plain[name]], dict.fromkeys(bounds), SECONDS, SKIPPED)
        told.append(f"{name} {kind(name)} {' '.join(f'{by[bound][0]:.2f}' for bound in bounds)}")
    bench.report.add(f"speed with {', '.join(f'{100 * part:.0f}' for part in PARTS)} % of the blocks that an SM holds", ", ".join(told))


def measure_pairs(kernels, names):
    pairs = []
    for both in itertools.combinations(names, 2):
        chosen = few(configurations([kernels.parts[name] for name in both]), CONFIGURATIONS)
        pair = Pair(both, kernels.by_hand([kernels.plain[name] for name in both], chosen, SECONDS, SKIPPED))
        print(f"    {pair}", flush=True)
        pairs += [pair] if pair.by else []
    return pairs


def report_pairs(bench, names, pairs):
    for name in names:
        own = sorted((pair for pair in pairs if name in pair.names), key=lambda pair: -pair.highest)
        told = ", ".join(f"{b if a == name else a} {pair.highest:.2f}" for pair in own for a, b in [pair.names])
        bench.report.add(f"{name}, {kind(name)}: best partner, over sequential", f"{own[0].highest:.2f}x", baselines=told)
    unlike = [pair.highest for pair in pairs if len(set(map(kind, pair.names))) > 1]
    bench.report.add(f"{len(pairs)} pairs of table 2, best of {CONFIGURATIONS} configurations, over sequential, mean",
                     f"{statistics.fmean(pair.highest for pair in pairs):.2f}x",
                     baselines=f"{len(unlike)} of a memory-bound and a compute-bound kernel {statistics.fmean(unlike):.2f}x")  # fmt: skip


def rates_of(pair):
    """In the best configuration in which both make progress; else they take turns."""
    found = [rates for _, rates in pair.by.values() if min(rates) >= LEAST]
    return dict(zip(pair.names, max(found, key=sum, default=(0.5, 0.5))))


def judge_plans(bench, ms, pairs):
    """How much sooner than in sequence the queue can be done. Returns it as text."""
    alone = sum(ms.values())
    plan = least_time(ms, [dict(zip(pair.names, rates)) for pair in pairs for _, rates in pair.by.values()])
    rates, kinds, chance = {frozenset(pair.names): rates_of(pair) for pair in pairs}, {name: kind(name) for name in ms}, random.Random(1)
    rule = statistics.fmean(time_by_rule(first, ms, kinds, rates, chance) for first in ms for _ in range(RULE_RUNS))
    best, by_rule = f"{alone / plan:.2f}x", f"{alone / rule:.2f}x"
    bench.report.add("best plan of pairs at these rates, over sequential", best, baselines=f"FlexSched's rule, if it need not search, {by_rule}")
    return f"at the rates of pairs by hand the best plan has {best} over sequential, FlexSched's rule {by_rule} without its searches"


def measure_what_there_is(bench, kernels, ms):
    """@ms: of each kernel in the queue. No policy may bound workers. Returns the best plan as text; empty: some kernels have no pairs."""
    bounded = [name for name in ms if kernels.parts[name]]
    measure_blocks(bench, kernels, bounded)
    pairs = measure_pairs(kernels, bounded)
    report_pairs(bench, bounded, pairs)
    complete = len(pairs) == len(ms) * (len(ms) - 1) // 2
    return judge_plans(bench, ms, pairs) if complete else ""
