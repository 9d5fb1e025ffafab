"""HIGH's bursts and graphs of ResNet-50 beside torch.mm and a training step with an MPS server for each level, judged
against time-slicing of the same run."""

import json
import time

import bursts
import inference
from level_servers import levels
from report import at_most

SHOWS = "latency beside mm and a training step with an MPS server for each level"
PAPER = ""
WITHIN = at_most(1.05)
BOUNDS = {
    "bursts against time-slicing": WITHIN,
    "graphs against time-slicing, each against HIGH alone": WITHIN,
    "graphs against time-slicing, in ms": WITHIN,
    "HIGH alone against time-slicing": WITHIN,
}
BASELINES = ("HIGH alone", "time-slicing + Weir")
NEEDS = ("gpu", "mps", "pytorch", "root")
SIMULATED = True

WORKLOADS = ("mm", "train")
GRAPH_PAIRS, GRAPH_SECONDS = 3, 1.5


def servers(bench):
    """Level to what the agent says of its server."""
    said = json.loads(bench.node.weirctl("status", "--json"))
    return {server["level"]: server for gpu in said["gpus"] for server in gpu.get("servers", ())}


def is_sliced(known):
    """LOW's is short, HIGH's is long."""
    slices = [server.get("sliceMicroseconds", 0) for _, server in sorted(known.items())]
    return len(slices) == 2 and all(s["hardwarePreemption"] for s in known.values()) and slices[0] < 1000 < slices[1]


def show_servers(bench, low):
    """Each client is in its level's server, and the servers have their slices."""
    with bench.node.running(f"low-{low.name}-seen", low.argv, bursts.LOW, True) as client:
        high = bench.node.start("high-seen", bench.burst_argv(1 << 40), bursts.HIGH, True)
        high.wait_ready()
        end, known = time.monotonic() + 20, {}
        while time.monotonic() < end:
            known = servers(bench)
            concurrent = {c["pid"]: c["concurrent"] for c in bench.node.status()}
            joined = len(known) == 2 and all(s["clients"] for s in known.values()) and all(concurrent.values())
            if joined and (bench.node.simulated or is_sliced(known)):
                break
            time.sleep(0.2)
        high.stop()
        high.result()
    told = ", ".join(
        f"level {level}: {s['clients']} clients, {s.get('sliceMicroseconds', 'no')} us" for level, s in sorted(known.items())
    )
    bench.report.holds("a server for each level", len(known) == 2 and all(s["up"] for s in known.values()), told)
    both = concurrent.get(client.process.pid) and concurrent.get(high.process.pid)
    bench.report.holds("both are clients of MPS", bool(both), str(both))
    if not bench.node.simulated:
        bench.report.holds("the agent sets the servers' slices", is_sliced(known), told)


def measure(bench, what, alone):
    """Workload to HIGH's figures beside it, with Weir, and to inference.Pairs of graphs."""
    found = {}
    for workload in WORKLOADS:
        rounds, rate, _ = bursts.beside(bench, bursts.low_of(bench, workload), True, ((),) * bursts.ROUNDS)
        found[workload] = bursts.middle(rounds)
        bursts.show(bench, f"{what}, LOW={workload}", found[workload], alone)
        bench.report.add(f"{what}, LOW={workload}, LOW's rate", f"{rate:.1f}/s")
    with inference.clients(bench, True, ("graph",), WORKLOADS) as both:
        graphs = {workload: inference.pairs(both, "graph", workload, GRAPH_PAIRS, GRAPH_SECONDS) for workload in WORKLOADS}
    for workload, pairs in graphs.items():
        bench.report.add(f"{what}, graph, LOW={workload}", f"{pairs.median:.3f}x, p99 {pairs.p99:.2f}x", baselines=str(pairs))
    return found, graphs


def judge(bench, what, own, sliced, shown):
    """@own, @sliced: (median, p99) with a server for each level, and with time-slicing."""
    for name, value, other in zip(("median", "p99"), own, sliced):
        bench.report.judge(f"{what}, {name} against time-slicing", value / other, WITHIN, shown)


def both(figures):
    return figures["median"], figures["p99"]


def judge_graphs(bench, workload, own, sliced):
    """@own, @sliced: inference.Pairs. HIGH alone may be slower in its server, so ratios to it are not all."""
    what, shown = f"graph, LOW={workload}", f"{own}; time-slicing {sliced}"
    judge(bench, what, (own.median, own.p99), (sliced.median, sliced.p99), shown)
    judge(bench, f"{what}, in ms", *(both(inference.figures(of.beside)) for of in (own, sliced)), shown)
    judge(bench, f"graph alone, before LOW={workload}", *(both(inference.figures(of.alone)) for of in (own, sliced)), shown)


def run(bench):
    node = bench.node
    node.stop_mps()
    alone = bench.burst(False)
    bench.report.add("HIGH alone", "1.000x", baselines=bursts.figures(alone))
    node.ensure_agent()
    sliced_alone = bench.burst(True)
    bursts.show(bench, "time-slicing, HIGH alone with Weir", sliced_alone, alone)
    sliced, sliced_graphs = measure(bench, "time-slicing + Weir", alone)
    with levels(bench):
        show_servers(bench, bursts.low_of(bench, WORKLOADS[0]))
        own = bench.burst(True)
        bursts.show(bench, "a server for each level, HIGH alone with Weir", own, alone)
        found, graphs = measure(bench, "a server for each level + Weir", alone)
    judge(bench, "burst alone", both(own), both(sliced_alone), bursts.figures(own))
    for workload in WORKLOADS:
        judge(bench, f"burst, LOW={workload}", both(found[workload]), both(sliced[workload]), bursts.figures(found[workload]))
        judge_graphs(bench, workload, graphs[workload], sliced_graphs[workload])
