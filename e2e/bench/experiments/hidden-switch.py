"""HIGH's requests are one kernel of 175 us, beside torch.mm under time-slicing. Some time before the launch HIGH says that
it comes (weir_expect()), or it copies 2 MiB right before: how much of the switch is over when the kernel comes?"""

import time

import baselines
import bursts
import plain_slices
from clock import Clock
from report import at_most

SHOWS = "latency of a single kernel beside torch.mm under time-slicing, with and without a hint before the launch"
PAPER = ""
BOUNDS = {
    "median over alone": at_most(270, " us"),
    "p99 over alone": at_most(320, " us"),
    "median over alone, hint": at_most(100, " us"),
}
BASELINES = (
    "HIGH alone", "HIGH alone with Weir", "time-slicing", "MPS", "MPS with stream priority", "Weir without hardware preemption",
    "the hardware's slices without Weir", "the same wait without a hint",
)  # fmt: skip
NEEDS = ("gpu", "mps", "pytorch", "root")
SIMULATED = True

REQUESTS, WARM_UP = 200, 20
HINT_US, COPY_KIB = 500, 2048
BEHIND_COPY = "Weir, behind a copy of 2 MiB"
PRINTED = (plain_slices.NAME, f"Weir, hint {HINT_US} us before", BEHIND_COPY)  # with p99, which hints have no bound for
HINT, COPY = ("--hint-us", str(HINT_US)), ("--copy-kib", str(COPY_KIB))
WAYS = ("off", "demand")  # WEIR_EXPECT, besides the default (runtime-lib/gates/expect.h)
LEADS_US = (150, 200, HINT_US)


def high(bench, weir, extra=(), way=None):
    """A measured HIGH. @way: of WEIR_EXPECT; None: the default."""
    argv = [bench.node.program("burst"), *bench.node.sizes, "--kernels", "1", "--iterations", str(bench.iterations)]
    requests = 20 if bench.node.simulated else REQUESTS
    argv += ["--requests", str(requests), "--warm-up", str(WARM_UP), "--timed", *extra]
    return bench.node.start("high", argv, bursts.HIGH, weir, env={"WEIR_EXPECT": way} if way else {})


def launches(bench, client):
    known = next((c for c in bench.node.status() if c["pid"] == client.process.pid), {})
    return known.get("launches", 0), time.monotonic()


def run_alone(bench, extra=(), weir=False):
    """HIGH's figures, and the clock."""
    with Clock(bench.node.simulated) as clock:
        return {**high(bench, weir, extra).result(), "clock": clock.median}


def beside(bench, low, extra=(), way=None):
    """HIGH's figures, the clock, and LOW's launches a second meanwhile."""
    client = high(bench, True, extra, way)
    client.wait_ready()
    before, begin = launches(bench, low)
    with Clock(bench.node.simulated) as clock:
        result = {**client.result(), "clock": clock.median}
    after, end = launches(bench, low)
    return result, (after - before) / (end - begin)


def show(bench, what, result, alone, rate=0):
    median, p99 = result["median"] - alone["median"], result["p99"] - alone["p99"]
    rates = f", LOW {rate:.0f}/s" if rate else ""
    bench.report.add(what, f"{median:+.0f} us, p99 {p99:+.0f} us", baselines=f"{bursts.figures(result)}{rates}; {bursts.speeds(result, alone)}")
    return median, p99


def judge(bench, what, median, p99):
    bench.report.judge(f"{what}, median over alone", median, BOUNDS["median over alone"])
    bench.report.judge(f"{what}, p99 over alone", p99, BOUNDS["p99 over alone"])


def show_plain(bench, what, low, alone, weir=False, extra=()):
    """Beside @low, without what Weir does with the hardware."""
    with bench.node.running("low", low.argv, bursts.LOW, weir):
        show(bench, what, high(bench, weir, extra).result(), alone)


def show_baselines(bench, low, alone):
    with baselines.under_mps(bench.node):
        for name, options in baselines.MPS_WAYS.items():
            show_plain(bench, name, low, alone, extra=options)
    with baselines.gates_alone(bench.node):
        show_plain(bench, "Weir, gates alone", low, alone, weir=True)


def judge_plain(bench, low, alone):
    plain, rate = beside(bench, low)
    median, p99 = show(bench, "Weir", plain, alone, rate)
    judge(bench, "Weir", median, p99)
    less = bursts.slowed_us(plain, alone)
    if less is not None:
        judge(bench, "Weir, at the clock of HIGH alone", median - less, p99 - less)


def judge_hints(bench, low, alone):
    for way in WAYS:
        result, rate = beside(bench, low, HINT, way)
        show(bench, f"Weir, hint {HINT_US} us before, {way}", result, alone, rate)
    for lead in LEADS_US:
        what = f"Weir, hint {lead} us before"
        result, rate = beside(bench, low, ("--hint-us", str(lead)))
        median, _ = show(bench, what, result, alone, rate)
        if lead == HINT_US:  # sooner than a switch takes, a hint cannot hide all of it
            bench.report.judge(f"{what}, median over alone", median, BOUNDS["median over alone, hint"])


def add_copy(bench, low, alone):
    result, rate = beside(bench, low, COPY)
    show(bench, BEHIND_COPY, result, alone, rate)


# What HIGH does before each launch, and what is measured with it beside LOW.
PARTS = {"plain": ((), judge_plain), "hints": (HINT, judge_hints), "copy": (COPY, add_copy)}


def run(bench):
    bench.node.stop_mps()
    parts = bench.part_of(tuple(PARTS))
    alone = {part: run_alone(bench, PARTS[part][0]) for part in parts}
    low = bursts.low_of(bench, "mm")
    if "plain" in parts:
        bench.report.add("HIGH alone", bursts.figures(alone["plain"]))
        show_plain(bench, "time-slicing", low, alone["plain"])
        if baselines.wanted(bench):
            show_baselines(bench, low, alone["plain"])

    bench.node.ensure_agent()
    if "plain" in parts:
        with plain_slices.plain(bench.node):
            show_plain(bench, plain_slices.NAME, low, alone["plain"])
        show(bench, "Weir, HIGH alone", run_alone(bench, weir=True), alone["plain"])
    with bench.node.running("low", low.argv, bursts.LOW, True) as client:
        for part in parts:
            PARTS[part][1](bench, client, alone[part])
