"""Parts f and g: what Weir costs a client that nobody preempts, and a launch."""

import statistics

from sharing import HIGH, LOW, TOP

ROUNDS = 3
WORKLOADS = ("mm", "train")
IDLE_GAP_US = "60000000"


def rate_once(bench, level, weir):
    argv = bench.low_argv(",".join(WORKLOADS), seconds=bench.seconds)
    result = bench.node.start("throughput", argv, level, weir).result()
    return {name: result[name]["rate"] for name in WORKLOADS}


def listed(rates):
    return " ".join(f"{rate:.2f}" for rate in rates)


def part_f(bench):
    """Interleaved, so that a GPU that gets warmer or slower does so for all alike."""
    bench.node.stop_mps()
    bench.node.ensure_agent()
    runs = [("without Weir", LOW, False), ("level 0", LOW, True), ("top level", TOP, True)]
    rates = {name: [] for name, _, _ in runs}
    for round_ in range(ROUNDS):
        for name, level, weir in runs[round_:] + runs[:round_]:
            rates[name].append(rate_once(bench, level, weir))
    for workload in WORKLOADS:
        of = {name: [rate[workload] for rate in rates[name]] for name in rates}
        base = statistics.median(of["without Weir"])
        for name, limit in (("level 0", 99.0), ("top level", 99.5)):
            value = 100 * statistics.median(of[name]) / base
            baselines = f"it/s: {listed(of[name])}; without Weir {listed(of['without Weir'])}"
            bench.report.at_least("f", f"throughput of {workload}, {name}", value, limit, baselines=baselines)
    part_f_idle(bench, rates["without Weir"])


def part_f_idle(bench, base):
    """For information: somebody above is there and does nothing."""
    idle = bench.burst_argv(1, extra=("--gap-min-us", IDLE_GAP_US, "--gap-max-us", IDLE_GAP_US))
    client = bench.node.start("idle", idle, HIGH, True)
    client.wait_ready()
    rates = rate_once(bench, LOW, True)
    client.kill()
    for workload in WORKLOADS:
        value = 100 * rates[workload] / statistics.median(rate[workload] for rate in base)
        bench.report.add("f", f"throughput of {workload}, level 0 below an idle client", f"{value:.2f} %")


def part_g(bench):
    bench.node.stop_mps()
    bench.node.ensure_agent()
    argv = [bench.node.bench("bench-launch"), *bench.node.sizes]
    runs = {False: [], True: []}
    for round_ in range(2 * ROUNDS):
        weir = round_ % 2 == 1
        runs[weir].append(bench.node.start("launch", argv, TOP, weir, files=False).result())
    for way in ("linked", "asked"):
        of = {weir: {q: [run[way][q] for run in runs[weir]] for q in ("median", "p99")} for weir in runs}
        added = {q: statistics.median(of[True][q]) - statistics.median(of[False][q]) for q in ("median", "p99")}
        names = {"linked": "cuLaunchKernel as linked", "asked": "from cuGetProcAddress"}
        baselines = f"ns: {listed(of[True]['median'])}; without Weir {listed(of[False]['median'])}"
        bench.report.at_most("g", f"added to a launch, {names[way]}", added["median"] / 1e3, 0.3, " us", baselines)
        bench.report.add("g", f"added to a launch, {names[way]}, p99", f"{added['p99'] / 1e3:.3f} us")
    part_g_gates(bench)


def part_g_gates(bench):
    """For information: what a gate costs the GPU, by the number of words that it waits for."""
    argv = [bench.node.bench("bench-gate"), *bench.node.sizes]
    waits = bench.node.start("gate", argv, TOP, False, files=False).result()["waits"]
    added = ", ".join(f"{(ns - waits[0]) / 1e3:.2f}" for ns in waits[1:])
    bench.report.add("g", "GPU time of an open gate of 1, 2, 3, 4 waits", f"{added} us")
