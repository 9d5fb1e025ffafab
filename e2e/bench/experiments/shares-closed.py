"""Two or three clients whose kernels have no PTX share the GPU by weight, through the hardware's slices: products of
matrices, training steps, replays of graphs. A share is a part of the GPU time that all got in the same second."""

import loops
from clock import Clock, shown
from node import Failure, Tenant
from report import at_least, at_most

SHOWS = "shares of closed kernels by weight, in each second, and what that costs"
PAPER = ""
BOUNDS = {"off the share, worst second": at_most(1, " points"), "sum against plain time-slicing": at_least(98)}
BASELINES = ("each alone", "time-slicing without Weir")
NEEDS = ("gpu", "pytorch", "root")
SIMULATED = True
NAMES = ("share-a", "share-b", "share-c")
PLAIN = ("plain-a", "plain-b", "plain-c")
TENANTS = tuple(Tenant(name, "normal") for name in (*NAMES, *PLAIN))

WORKLOADS = ("mm", "train", "graph")
PAIRS = ("mm", "train"), ("graph", "mm"), ("train", "graph")
RATIOS = (1, 1), (2, 1), (1, 3), (9, 1)
CASES = (
    (("mm", "mm"), (1, 1)),
    *((names, weights) for names in PAIRS for weights in RATIOS),
    (("mm", "train", "graph"), (1, 1, 1)),
)
UNIT = 10  # shares of weight 1
SETTLE, SECONDS = 3.0, 3  # before the seconds that count, and these
ALONE, PLAIN_SECONDS = 0.6, 2.0

SCHEDULING = "policy: wfq\n"  # a policy that weirctl sets ends when the configuration changes


class Shares:
    """@steps: by workload the GPU time of a step. @rates: steps a second alone. @plain: by workloads what time-slicing
    makes of them: the sum of rates against alone."""

    def __init__(self, bench, clock):
        self.bench, self.node, self.clock = bench, bench.node, clock
        real = not self.node.simulated
        self.workloads = WORKLOADS if real else ("filler",)
        loops.begin_node(bench, SCHEDULING)
        self.loops = [loops.loop_of(bench, name, self.workloads) for name in NAMES]
        self.plain_loops = [loops.loop_of(bench, name, self.workloads, weir=False) for name in PLAIN] if real else []
        self.steps, self.rates, self.plain = {}, {}, {}

    @property
    def all(self):
        return [*self.loops, *self.plain_loops]

    def measure_alone(self):
        """Each client and workload: libweir learns how long its kernels take."""
        for loop in self.loops:
            for workload in self.workloads:
                rate = loops.rate_alone(loop, workload, ALONE)
                self.rates[workload] = max(rate, self.rates.get(workload, 0))
        for workload in self.workloads:
            self.steps[workload] = self.loops[0].step_time(workload)
            text = f"a step takes {self.steps[workload]}"
            self.bench.report.add(f"{workload} alone", f"{self.rates[workload]:.1f} it/s", baselines=text)

    def measure_plain(self):
        for names in dict.fromkeys(names for names, _ in CASES) if self.plain_loops else ():
            progress, begin, end = loops.together(list(zip(self.plain_loops, names)), PLAIN_SECONDS)
            parts = self.parts(progress, names, begin + 0.2, end)
            self.plain[names] = sum(parts)
            text = ":".join(f"{100 * part / sum(parts):.1f}" for part in parts)
            used = f"{100 * self.used(progress, names, begin + 0.2, end):.1f} % of the GPU's time"
            self.bench.report.add(f"{'+'.join(names)}, time-slicing", text, baselines=f"sum {sum(parts):.3f} of alone; {used}")

    def parts(self, progress, names, begin, end):
        """The rates against those alone, whatever the clock."""
        return [p.rate(begin, end) / self.rates[w] for p, w in zip(progress, names)]

    def used(self, progress, names, begin, end):
        """The part of the time that the GPU worked for them."""
        return sum(p.rate(begin, end) * self.steps[w].at(p.piece_ms(begin, end)) for p, w in zip(progress, names)) / 1e3

    def set_weights(self, weights):
        self.node.change_tenants({name: {"share": UNIT * weight} for name, weight in zip(NAMES, (*weights, 1))})
        if not self.took_effect(weights):
            loops.begin_node(self.bench, SCHEDULING)
            if not self.took_effect(weights):
                raise Failure("the agent does not take the shares")

    def took_effect(self, weights):
        return all(
            loops.wait_known(self.bench, [loop], lambda known, w=weight: known["share"] == UNIT * w)
            for loop, weight in zip(self.loops, weights)
        )

    def slices(self, n):
        return ":".join(str(loops.known(self.bench, loop).get("sliceMicroseconds", "?")) for loop in self.loops[:n])

    def run(self, names, weights):
        what = f"{'+'.join(names)} {':'.join(str(weight) for weight in weights)}"
        self.set_weights(weights)
        before = self.slices(len(names))
        progress, begin, end = loops.together(list(zip(self.loops, names)), SETTLE + SECONDS + 0.1)
        counted = begin + SETTLE
        clocks = self.clock.windows(counted, SECONDS)
        rates = list(zip(*(p.windows(counted, SECONDS) for p in progress)))
        seconds = [shares(row) for row in zip(*(loops.used(p, self.steps[w], counted, SECONDS) for p, w in zip(progress, names)))]
        by_rate = [shares(rate / self.rates[w] for rate, w in zip(row, names)) for row in rates]
        first = shares(self.parts(progress, names, begin, begin + 1))
        text = f"{'; '.join(colons(row) for row in seconds)}; by rates {'; '.join(colons(row) for row in by_rate)}; {shown(clocks)}"
        text += f"; slices {before} us, then {self.slices(len(names))} us; first second by rates {colons(first)}"
        wanted = shares(weights)
        self.bench.report.judge(f"{what}, worst second", furthest(seconds, wanted), BOUNDS["off the share, worst second"], text)
        figure = f"{furthest(by_rate, wanted):.3f} points"
        self.bench.report.add(f"{what}, worst second by rates against alone, whatever the clock", figure)
        total = sum(self.parts(progress, names, counted, end))
        text = f"{total:.3f} of alone; {100 * self.used(progress, names, counted, end):.1f} % of the GPU's time"
        if names in self.plain:
            bound = BOUNDS["sum against plain time-slicing"]
            self.bench.report.judge(f"{what}, sum", 100 * total / self.plain[names], bound, text)
        else:
            self.bench.report.add(f"{what}, sum", text)


def shares(values):
    """Each in per cent of all."""
    values = list(values)
    return [100 * value / (sum(values) or 1) for value in values]


def furthest(seconds, wanted):
    return max(abs(part - want) for row in seconds for part, want in zip(row, wanted))


def colons(values):
    return ":".join(f"{value:.2f}" for value in values)


def run(bench):
    with Clock(bench.node.simulated) as clock:
        scene = Shares(bench, clock)
        try:
            for loop in scene.all:
                loop.wait_ready()
            measure(bench, scene)
        finally:
            bench.node.change_tenants({name: {"share": 0} for name in NAMES})
            loops.end_node(bench, scene.all)


def measure(bench, scene):
    if not loops.has_hardware(bench, scene.loops):
        return
    scene.measure_alone()
    scene.measure_plain()
    if bench.node.simulated:
        scene.run(("filler",) * 3, (1, 1, 2))  # all of them run all the time
        return
    for names, weights in CASES:
        scene.run(names, weights)
