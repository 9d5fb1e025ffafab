"""Two or three clients whose kernels have no PTX share the GPU by weight, through the hardware's slices: products of
matrices, training steps, replays of graphs."""

import loops
from node import Failure, Tenant
from report import at_least, at_most

SHOWS = "shares of closed kernels by weight, in each second, and what that costs"
PAPER = ""
BOUNDS = {"off the share, worst second": at_most(1, " points"), "sum against plain time-slicing": at_least(98)}
BASELINES = ("each alone", "time-slicing without Weir")
NEEDS = ("gpu", "pytorch", "root")
SIMULATED = True
NAMES = ("share-a", "share-b", "share-c")
PLAIN = ("plain-a", "plain-b")
TENANTS = tuple(Tenant(name, "normal") for name in (*NAMES, *PLAIN))

WORKLOADS = ("mm", "train", "graph")
PAIRS = (("mm", "mm"), ("mm", "train"), ("graph", "mm"))  # of which plain time-slicing is measured
CASES = (
    (("mm", "mm"), (1, 1)),
    (("mm", "train"), (2, 1)),
    (("mm", "train"), (1, 3)),
    (("graph", "mm"), (9, 1)),
    (("mm", "train", "graph"), (1, 1, 1)),
)
UNIT = 10  # shares of weight 1
SETTLE, SECONDS = 3.0, 3  # before the seconds that count: the agent corrects the slices; and these
ALONE = 0.6

SCHEDULING = "policy: wfq\n"  # a policy that weirctl sets ends when the configuration changes


class Shares:
    def __init__(self, bench):
        self.bench, self.node = bench, bench.node
        real = not self.node.simulated
        self.workloads = WORKLOADS if real else ("filler",)
        loops.begin_node(bench, SCHEDULING)
        self.loops = [loops.loop_of(bench, name, self.workloads) for name in NAMES]
        self.plain_loops = [loops.loop_of(bench, name, self.workloads, weir=False) for name in PLAIN] if real else []
        self.busy, self.alone, self.plain = {}, {}, {}

    @property
    def all(self):
        return [*self.loops, *self.plain_loops]

    def measure_alone(self):
        """Each client and workload: libweir learns how long its kernels take."""
        for loop in self.loops:
            for workload in self.workloads:
                progress, begin, end = loops.together([(loop, workload)], ALONE)
                rate = progress[0].rate(begin, end)
                self.alone[workload] = max(rate, self.alone.get(workload, 0))
        for workload in self.workloads:
            self.busy[workload] = self.loops[0].busy_ms(workload)
            used = self.alone[workload] * self.busy[workload] / 10
            self.bench.report.add(f"{workload} alone", f"{self.alone[workload]:.1f} it/s", baselines=f"{used:.1f} % of the GPU's time")

    def measure_plain(self):
        for pair in PAIRS if self.plain_loops else ():
            progress, begin, end = loops.together(list(zip(self.plain_loops, pair)), 2.0)
            parts = [p.rate(begin + 0.2, end) / self.alone[w] for p, w in zip(progress, pair)]
            self.plain[pair] = sum(parts)
            text = ":".join(f"{100 * part / sum(parts):.1f}" for part in parts)
            self.bench.report.add(f"{'+'.join(pair)}, time-slicing", text, baselines=f"sum {sum(parts):.3f} of alone")

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
        used = [[rate / self.alone[w] for rate in p.windows(begin + SETTLE, SECONDS)] for p, w in zip(progress, names)]
        wanted = [100 * weight / sum(weights) for weight in weights]
        seconds = [[100 * part / (sum(row) or 1) for part in row] for row in zip(*used)]
        off = max(abs(part - want) for row in seconds for part, want in zip(row, wanted))
        text = "; ".join(":".join(f"{part:.2f}" for part in row) for row in seconds)
        text += f"; slices {before} us, then {self.slices(len(names))} us"
        first = [p.rate(begin, begin + 1) / self.alone[w] for p, w in zip(progress, names)]
        text += f"; first second {':'.join(f'{100 * part / (sum(first) or 1):.1f}' for part in first)}"
        text += f"; by GPU time {self.by_gpu_time(progress, names, begin + SETTLE, end)}"
        self.bench.report.judge(f"{what}, worst second", off, BOUNDS["off the share, worst second"], text)
        total = sum(p.rate(begin + SETTLE, end) / self.alone[w] for p, w in zip(progress, names))
        if names in self.plain:
            bound = BOUNDS["sum against plain time-slicing"]
            self.bench.report.judge(f"{what}, sum", 100 * total / self.plain[names], bound, f"{total:.3f} of alone")
        else:
            self.bench.report.add(f"{what}, sum", f"{total:.3f} of alone")

    def by_gpu_time(self, progress, names, begin, end):
        parts = [p.rate(begin, end) * self.busy[w] for p, w in zip(progress, names)]
        return ":".join(f"{100 * part / (sum(parts) or 1):.2f}" for part in parts)


def run(bench):
    shares = Shares(bench)
    try:
        for loop in shares.all:
            loop.wait_ready()
        measure(bench, shares)
    finally:
        bench.node.change_tenants({name: {"share": 0} for name in NAMES})
        loops.end_node(bench, shares.all)


def measure(bench, shares):
    if not loops.has_hardware(bench, shares.loops):
        return
    shares.measure_alone()
    shares.measure_plain()
    if bench.node.simulated:
        shares.run(("filler",) * 3, (1, 1, 2))  # all of them run all the time
        return
    for names, weights in CASES:
        shares.run(names, weights)
