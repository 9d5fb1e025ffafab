"""A client may have 10, 30 or 70 % of the GPU's time: products of matrices, training steps, replays of a graph, and a
kernel of PTX. Nobody else wants the GPU; then a client of the same level does, and then one above."""

import statistics

import bursts
import loops
from clock import Clock, shown
from node import Failure, Tenant
from report import at_least, at_most

SHOWS = "a compute limit holds in each second, for closed kernels and graphs too, and disturbs nobody"
PAPER = ""
LIMITS = (10, 30, 70)
LOST = 3  # points that another client may have less than all that the limited one leaves, or than half
HIGH_BOUND = at_most(1.05)
BOUNDS = {
    "off the limit, worst second": at_most(2, " points"),
    "off the limit, beside another": at_most(2, " points"),
    **{f"a client beside one of {percent} %": at_least(max(100 - percent, 50) - LOST) for percent in LIMITS},
    "HIGH beside a limited client, against no limit": HIGH_BOUND,
}
BASELINES = ("the same without a limit", "HIGH beside it without a limit")
NEEDS = ("gpu", "pytorch", "root")
SIMULATED = True
TENANTS = (Tenant("limited", "low"), Tenant("unlimited", "low"))

WORKLOADS = ("mm", "train", "graph", "ptx")
PARTS = LIMITED, BESIDE, ABOVE = "limited", "beside", "above"  # of --parts: the limited client; another one; HIGH
SETTLE, SECONDS = 0.6, 2  # before the seconds that count, and these
TIMES = 3  # that another client runs beside the limited one: their mean counts
ALONE = 1.2
REQUESTS, HIGH_SECONDS = 150, 4  # of HIGH; and how long the limited client runs meanwhile

SCHEDULING = "policy: wfq\n"  # a policy that weirctl sets ends when the configuration changes


class Limits:
    """@steps: by workload the GPU time of a step. @rates: steps a second alone."""

    def __init__(self, bench, clock):
        self.bench, self.node, self.clock = bench, bench.node, clock
        self.workloads = WORKLOADS if not self.node.simulated else ("filler",)
        loops.begin_node(bench, SCHEDULING)
        self.limited = loops.loop_of(bench, "limited", self.workloads)
        self.other = loops.loop_of(bench, "unlimited", self.workloads[:1])
        self.all = [self.limited, self.other]
        self.steps, self.rates = {}, {}

    def set(self, percent):
        self.node.change_tenants({"limited": {"limit": percent}})
        if not self.took_effect(percent):  # the agent did not see the file
            loops.begin_node(self.bench, SCHEDULING)
            if not self.took_effect(percent):
                raise Failure(f"the agent does not limit the client to {percent} %")

    def took_effect(self, percent):
        return loops.wait_known(self.bench, [self.limited], lambda known: known.get("computeLimit", 0) == percent)

    def measure_alone(self, workloads):
        for workload in workloads:
            step = self.steps[workload] = self.limited.step_time(workload)
            progress, begin, end = loops.together([(self.limited, workload)], ALONE)
            rate = self.rates[workload] = progress[0].rate(begin, end)
            text = f"{rate:.1f} it/s, {rate * step.ms / 10:.1f} % as if at the full clock; a step takes {step}; {shown([self.clock.mean(begin, end)])}"
            self.bench.report.add(f"{workload}, no limit", f"{rate * step.at(progress[0].piece_ms(begin, end)) / 10:.1f} % used", baselines=text)

    def run(self, workload, percent):
        progress, begin, _ = loops.together([(self.limited, workload)], SETTLE + SECONDS + 0.1)
        begin += SETTLE
        rates, clocks = progress[0].windows(begin, SECONDS), self.clock.windows(begin, SECONDS)
        used = loops.used(progress[0], self.steps[workload], begin, SECONDS)
        full = [rate * self.steps[workload].ms / 10 for rate in rates]
        by_rate = 100 * sum(rates) / len(rates) / self.rates[workload]
        text = f"seconds: {seconds_of(used)} %; at the full clock {seconds_of(full)} %; {shown(clocks)}; {by_rate:.1f} % of the rate without"
        off = max(abs(each - percent) for each in used)
        self.bench.report.judge(f"{workload} at {percent} %, worst second", off, BOUNDS["off the limit, worst second"], text)
        off = max(abs(each - percent) for each in full)
        self.bench.report.add(f"{workload} at {percent} %, worst second, as if at the full clock", f"{off:.3f} points")

    def beside(self, workload):
        """The per cent of the GPU's time that the limited one has beside the other, and that the other has."""
        both = [(self.limited, workload), (self.other, self.workloads[0])]
        progress, begin, _ = loops.together(both, SETTLE + SECONDS + 0.1)
        parts = [loops.used(each, self.steps[of], begin + SETTLE, SECONDS) for each, (_, of) in zip(progress, both)]
        return [sum(seconds) / len(seconds) for seconds in parts]

    def beside_again(self, workload):
        """The same, each as a list."""
        return list(zip(*(self.beside(workload) for _ in range(TIMES if not self.node.simulated else 1))))

    def high(self, workload):
        self.limited.begin(workload, HIGH_SECONDS if not self.node.simulated else 0.1)
        argv = self.bench.burst_argv(REQUESTS if not self.node.simulated else 10, HIGH_SECONDS)
        result = self.node.start("high", argv, "high", True).result()
        self.limited.end(120)
        return result


def seconds_of(values):
    return " ".join(f"{value:.2f}" for value in values)


def run(bench):
    with Clock(bench.node.simulated) as clock:
        limits = Limits(bench, clock)
        try:
            for loop in limits.all:
                loop.wait_ready()
            measure(bench, limits)
        finally:
            bench.node.change_tenants({"limited": {"limit": 0}})
            loops.end_node(bench, limits.all)


def measure(bench, limits):
    if not loops.has_hardware(bench, [limits.limited]):
        return
    parts = bench.part_of(PARTS)
    limits.measure_alone(limits.workloads)
    free = {workload: limits.beside_again(workload) for workload in limits.workloads if BESIDE in parts}
    high = {workload: limits.high(workload) for workload in limits.workloads if ABOVE in parts}
    for percent in LIMITS if not bench.node.simulated else (30,):
        limits.set(percent)
        for workload in limits.workloads if LIMITED in parts else ():
            limits.run(workload, percent)
        by = loops.known(bench, limits.limited).get("computeLimitBy", "nothing")
        bench.report.holds(f"what upholds {percent} %", by == "hardware", by)
        for workload, parts_free in free.items():
            judge_beside(bench, limits, workload, percent, parts_free)
        for workload, high_free in high.items():
            judge_high(bench, limits, workload, percent, high_free)


def judge_beside(bench, limits, workload, percent, free):
    """@free: of beside_again() without a limit."""
    limited, other = limits.beside_again(workload)
    both, both_free = (sum(map(statistics.fmean, parts)) for parts in ((limited, other), free))
    text = f"{seconds_of(other)} %, together {both:.2f} %; without a limit {seconds_of(free[0])} and {seconds_of(free[1])} %, together {both_free:.2f} %"
    bound = BOUNDS[f"a client beside one of {percent} %"]
    bench.report.judge(f"a client beside {workload} at {percent} %", statistics.fmean(other), bound, f"{text}; {LOST} points may be lost")
    if percent < 50:  # with more, two equal clients do not reach it
        off = max(abs(part - percent) for part in limited)
        bench.report.judge(f"{workload} at {percent} % beside it", off, BOUNDS["off the limit, beside another"], f"{seconds_of(limited)} %")


def judge_high(bench, limits, workload, percent, free):
    """@free: of high() without a limit."""
    result = limits.high(workload)
    for figure in ("median", "p99"):
        text = f"{bursts.figures(result)}; without a limit {bursts.figures(free)}"
        bench.report.judge(f"HIGH beside {workload} at {percent} %, {figure}", result[figure] / free[figure], HIGH_BOUND, text)
