"""Parts f and g: what Weir costs a client that nobody preempts, and a launch."""

import contextlib
import math
import statistics
import subprocess

from sharing import HIGH, LOW, TOP

ROUNDS = 3
# Of each of two clients; the median of their ratios counts. They are short, for there are seconds in which a
# machine that others use as well is slow, and there are more of them until the median is as exact as that.
TURNS, TURNS_MOST = 80, 240
TURNS_IDLE = 24
EXACT = 0.2  # its standard error, per cent
WORKLOADS = ("mm", "train")
IDLE_GAP_US = "60000000"


@contextlib.contextmanager
def waiting_for_turns(bench, level, weir):
    """A client that works only when it is told to; it is not ready yet."""
    argv = [*bench.low_argv(",".join(WORKLOADS)), "--turns"]
    client = bench.node.start("throughput", argv, level, weir, stdin=subprocess.PIPE)
    try:
        yield client
        client.leave()
    finally:
        client.kill()


def turn(bench, client, workload):
    seconds = bench.seconds / 40
    client.tell(workload, seconds)
    return client.answer(seconds + 60)[workload]["rate"]


def in_turns(bench, plain, weir, workload, turns, most):
    """Rates of both, which work one after the other, so that whatever else happens to the GPU or the machine
    happens to both."""
    rates = {plain: [], weir: []}
    for i in range(most):
        if i >= turns and uncertainty(percentages(rates[plain], rates[weir])) <= EXACT:
            break
        for client in (plain, weir) if i % 2 else (weir, plain):
            rates[client].append(turn(bench, client, workload))
    return rates[plain], rates[weir]


def percentages(base, rates):
    return [100 * rate / of for of, rate in zip(base, rates)]


def uncertainty(values):
    """The standard error of their median, if they lie about it as normal ones do: by their quartiles, which outliers
    do not move."""
    low, _, high = statistics.quantiles(values, n=4)
    return math.sqrt(math.pi / 2 / len(values)) * (high - low) / 1.349


def quartiles(rates):
    return " ".join(f"{rate:.2f}" for rate in statistics.quantiles(rates, n=4))


def listed(rates):
    return " ".join(f"{rate:.2f}" for rate in rates)


def compare_throughput(bench, plain, level, name, limit):
    with waiting_for_turns(bench, level, True) as weir:
        weir.wait_ready()
        plain.wait_ready()
        for workload in WORKLOADS:
            base, rates = in_turns(bench, plain, weir, workload, TURNS, TURNS_MOST)
            values = percentages(base, rates)
            value = statistics.median(values)
            certain = f"+- {uncertainty(values):.2f} by {len(values)} turns"
            baselines = f"{certain}; it/s: {quartiles(rates)}; without Weir {quartiles(base)}"
            bench.report.at_least("f", f"throughput of {workload}, {name}", value, limit, baselines=baselines)
        if level == LOW:
            below_idle(bench, plain, weir)


def below_idle(bench, plain, weir):
    """For information: somebody above is there and does nothing."""
    argv = bench.burst_argv(1, extra=("--gap-min-us", IDLE_GAP_US, "--gap-max-us", IDLE_GAP_US))
    client = bench.node.start("idle", argv, HIGH, True)
    client.wait_ready()
    for workload in WORKLOADS:
        value = statistics.median(percentages(*in_turns(bench, plain, weir, workload, TURNS_IDLE, TURNS_IDLE)))
        bench.report.add("f", f"throughput of {workload}, level 0 below an idle client", f"{value:.2f} %")
    client.kill()


def part_f(bench):
    bench.node.stop_mps()
    bench.node.ensure_agent()
    with waiting_for_turns(bench, LOW, False) as plain:
        compare_throughput(bench, plain, LOW, "level 0", 99.0)
        compare_throughput(bench, plain, TOP, "top level", 99.5)


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
