"""One client with Weir and one without work in turn, for 0.1 s each at --seconds 4: products of matrices, training steps,
replays of a graph, and a kernel of PTX. Hardware preemption is on, so the client has the slices of its level."""

import contextlib
import math
import statistics
import subprocess

from bursts import HIGH, LOW, TOP
from report import at_least

SHOWS = "throughput of a client that no other client disturbs, in turns with one without Weir"
PAPER = ""
BOUNDS = {"level 0": at_least(99.5), "top level": at_least(99.5)}
BASELINES = ("the same client without Weir",)
NEEDS = ("gpu", "pytorch", "root")
SIMULATED = False

# Turns of each client; the median of their ratios counts. Turns are short, because other users slow a shared machine
# down for seconds. More turns follow until it is certain on which side of the bound the median lies, or the median is as
# exact as EXACT, its standard error in per cent.
TURNS, TURNS_MOST = 24, 120
EXACT, CERTAIN = 0.15, 3  # CERTAIN: standard errors from the bound
TURNS_IDLE = 16
WORKLOADS = ("mm", "train", "graph", "ptx")
IDLE_GAP_US = "60000000"


@contextlib.contextmanager
def waiting_for_turns(bench, level, weir, workloads):
    """A client that works on command; it may not be ready yet."""
    argv = [*bench.low_argv(",".join(workloads)), "--turns"]
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


def in_turns(bench, plain, weir, workload, bound=None):
    """Rates of both clients. They work in turn, so that a change of the GPU or of the machine meets both. Without a bound:
    TURNS_IDLE turns."""
    rates = {plain: [], weir: []}
    for i in range(TURNS_MOST if bound else TURNS_IDLE):
        if bound and i >= TURNS and is_settled(percentages(rates[plain], rates[weir]), bound):
            break
        for client in (plain, weir) if i % 2 else (weir, plain):
            rates[client].append(turn(bench, client, workload))
    return rates[plain], rates[weir]


def is_settled(values, bound):
    error = uncertainty(values)
    return error <= EXACT or abs(statistics.median(values) - bound.limit) > CERTAIN * error


def percentages(base, rates):
    return [100 * rate / of for of, rate in zip(base, rates)]


def uncertainty(values):
    """The standard error of their median, if they are distributed normally: from the quartiles, which outliers do not
    move."""
    low, _, high = statistics.quantiles(values, n=4)
    return math.sqrt(math.pi / 2 / len(values)) * (high - low) / 1.349


def quartiles(rates):
    return " ".join(f"{rate:.2f}" for rate in statistics.quantiles(rates, n=4))


def compare_throughput(bench, plain, level, name, workloads):
    with waiting_for_turns(bench, level, True, workloads) as weir:
        weir.wait_ready()
        plain.wait_ready()
        known = next((c for c in bench.node.status() if c["pid"] == weir.process.pid), {})
        works = known.get("hardwarePreemption", False)
        bench.report.holds(f"hardware preemption, {name}", works, f"a slice of {known.get('sliceMicroseconds', '?')} us" if works else "no")
        for workload in workloads:
            base, rates = in_turns(bench, plain, weir, workload, BOUNDS[name])
            values = percentages(base, rates)
            value = statistics.median(values)
            certain = f"+- {uncertainty(values):.2f} by {len(values)} turns"
            baselines = f"{certain}; it/s: {quartiles(rates)}; without Weir {quartiles(base)}"
            bench.report.judge(f"throughput of {workload}, {name}", value, BOUNDS[name], baselines)
        if level == LOW:
            below_idle(bench, plain, weir, workloads)


def below_idle(bench, plain, weir, workloads):
    """For information: a client of a higher level is there and does nothing."""
    argv = bench.burst_argv(1, extra=("--gap-min-us", IDLE_GAP_US, "--gap-max-us", IDLE_GAP_US))
    client = bench.node.start("idle", argv, HIGH, True)
    client.wait_ready()
    for workload in workloads:
        value = statistics.median(percentages(*in_turns(bench, plain, weir, workload)))
        bench.report.add(f"throughput of {workload}, level 0 under an idle client", f"{value:.2f} %")
    client.kill()


def run(bench):
    bench.node.stop_mps()
    bench.node.ensure_agent()
    workloads = bench.part_of(WORKLOADS)
    with waiting_for_turns(bench, LOW, False, workloads) as plain:
        compare_throughput(bench, plain, LOW, "level 0", workloads)
        compare_throughput(bench, plain, TOP, "top level", workloads)
