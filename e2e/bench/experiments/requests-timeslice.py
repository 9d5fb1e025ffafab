"""HIGH answers requests under time-slicing, beside torch.mm and a training step: a CUDA graph of ResNet-50 (about 1 ms),
the same network called eagerly, and 8 tokens of a small Llama. Alone and beside LOW are measured in turn. The baselines
are the graph's; with less than 2 s a measurement only the hardware's slices are one, and the graph has one turn."""

import baselines
import inference
import plain_slices
from clock import Clock
from report import at_most

SHOWS = "latency of requests of networks beside torch.mm and a training step, under time-slicing"
PAPER = ""
BOUNDS = {
    "graph, mm: median": at_most(1.28), "graph, mm: p99": at_most(1.35),
    "graph, train: median": at_most(1.15), "graph, train: p99": at_most(1.2),
    "eager, median of pairs": at_most(1.1), "llama, median of pairs": at_most(1.1),
}  # fmt: skip
BASELINES = (
    "the same client alone, in turn", "time-slicing", "MPS", "MPS with stream priority", "Weir without hardware preemption",
    "the hardware's slices without Weir",
)  # fmt: skip
PRINTED = (plain_slices.NAME,)
NEEDS = ("gpu", "mps", "pytorch", "root")
SIMULATED = True

LOWS = ("mm", "train")
GRAPH_SECONDS, SECONDS = 2.0, {"eager": 0.4, "llama": 0.6}
# The host's speed changes within seconds, and with it single pairs, by a quarter and more: many short turns.
EAGER_PAIRS = 21
PAIRS, SHORT_PAIRS = 3, 1


def lows(bench):
    return LOWS[: 1 if bench.node.simulated else None]


def show_graph(bench, mode, both, n):
    """Workload to Pairs, without a bound."""
    found = {low: inference.pairs(both, "graph", low, n, GRAPH_SECONDS) for low in lows(bench)}
    for low, pairs in found.items():
        bench.report.add(f"{mode}, graph, LOW={low}", f"{pairs.median:.3f}x, p99 {pairs.p99:.2f}x", baselines=str(pairs))
    return found


def baseline(bench, mode, weir, priority=False):
    with inference.clients(bench, weir, ("graph",), lows(bench), priority) as both:
        show_graph(bench, mode, both, 1)


def judge_graph(bench, both, n):
    for low in lows(bench):
        with Clock(bench.node.simulated) as clock:
            pairs = inference.pairs(both, "graph", low, n, GRAPH_SECONDS)
        bounds, what = [BOUNDS[f"graph, {low}: {figure}"] for figure in ("median", "p99")], f"Weir, graph, LOW={low}"
        bench.report.judge(f"{what}, median", pairs.median, bounds[0], str(pairs))
        bench.report.judge(f"{what}, p99", pairs.p99, bounds[1])
        # LOW at the power limit lowers the clock for HIGH, too.
        if found := pairs.at_clock_alone(clock):
            median, p99, speeds = found
            bench.report.judge(f"{what}, at the clock of HIGH alone, median", median, bounds[0], speeds)
            bench.report.judge(f"{what}, at the clock of HIGH alone, p99", p99, bounds[1])


def judge(bench, both, names, n):
    """@n: pairs of graphs."""
    if "graph" in names:
        judge_graph(bench, both, n)
    for name in SECONDS:
        for low in lows(bench) if name in names else ():
            pairs = inference.pairs(both, name, low, 1 if bench.node.simulated else EAGER_PAIRS, SECONDS[name])
            what = f"Weir, {name}, LOW={low}, median of {len(pairs.medians)} pairs"
            bench.report.judge(what, pairs.median, BOUNDS[f"{name}, median of pairs"], str(pairs))
    bench.report.holds("results are the same", both.wrong == 0, f"{both.wrong} wrong")


def show_baselines(bench):
    baseline(bench, "time-slicing", False)
    with baselines.under_mps(bench.node):
        for name, options in baselines.MPS_WAYS.items():
            baseline(bench, name, False, priority=bool(options))
    with baselines.gates_alone(bench.node):
        baseline(bench, "Weir, gates alone", True)


def graph_pairs(bench):
    """How many; shows the baselines of graphs, if there is time."""
    if not baselines.wanted(bench):
        bench.report.cut(f"graphs: {SHORT_PAIRS} pair, not {PAIRS}, and no baseline of plain time-slicing")
        return SHORT_PAIRS
    show_baselines(bench)
    return PAIRS


def run(bench):
    bench.node.stop_agent()
    bench.node.stop_mps()
    names = bench.part_of(("graph", *SECONDS))
    n = graph_pairs(bench) if "graph" in names else 0
    bench.node.ensure_agent()
    if "graph" in names:
        with plain_slices.plain(bench.node):
            baseline(bench, plain_slices.NAME, False)
    with inference.clients(bench, True, names, lows(bench)) as both:
        judge(bench, both, names, n)
