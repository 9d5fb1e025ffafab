"""A latency-sensitive client keeps 0.5 to 0.9 of its speed alone (`weir.dev/min-rate`), and a partner below it gets what is
left: FlexSched's Canny kernel beside its six partners, as PTX; then products of matrices and training steps, whose
kernels are closed. Under MPS also a service beside a training step: bursts of a 20-block kernel, and ResNet-50. The
training step has all SMs, or a part of them (MPS's active thread percentage) and runs on while the service needs no more
than the others."""

import copy
import dataclasses
import statistics
import subprocess
import time

import loops
from clock import Clock, shown
from coexec import KERNELS
from experiment import PROGRAMS
from node import Tenant
from report import at_least, at_most
from servers import length, quantile
from workers import SLOTS, Job, pool_of, progress, sample

SHOWS = "a minimum rate of 0.5 to 0.9 of the speed alone is met, and the partner gets the rest; PTX and closed kernels"
PAPER = "FlexSched table 4"
BOUNDS = {
    "short of the rate": at_most(2, " points"),
    **{f"the partner's part at {rate}": at_least(part) for rate, part in ((0.5, 31), (0.6, 23), (0.7, 16), (0.8, 9), (0.9, 1))},
    "service, p99": at_most(1.1),
    "service, LOW's rate": at_least(1.3, "x"),
}
BASELINES = ("each alone", "MPS or time-slicing", "MPS with stream priority", "no minimum rate")
NEEDS = ("gpu", "mps", "pytorch", "root")
SIMULATED = True
MODES = ("mps", "timeslice")
RATED = Tenant("rated", "high")
BOUNDED = Tenant("bounded", "low", sms=60)
TENANTS = (*SLOTS, RATED, Tenant("partner", "low"), BOUNDED, Tenant("plain-a", "low"), Tenant("plain-b", "low"))

PARTS = "ptx", "closed", "service"  # of --parts
RATES = (0.5, 0.6, 0.7, 0.8, 0.9)
SENSITIVE_US, PARTNER_US = 500, 2000  # of a launch
SETTLE, SECONDS = 0.3, 1.0  # of PTX: before the time that counts, and that
CLOSED = (("train", "mm"), ("mm", "train"), ("graph", "mm"))  # the sensitive one, its partner
CLOSED_SETTLE, CLOSED_SECONDS, ALONE = 0.5, 2, 1
SERVICE_RATE = 0.9
QUANTILES = (0.5, 0.9, 0.99)
BLOCKS, BLOCKS_US, BLOCKS_GAP_US = 20, 175, (1000, 2000)  # of the service's kernel; between its bursts
SERVICE_SECONDS, START, GAP_MS = 2.5, 2.5, 8  # of a measurement; until the burst program has started; between requests
LEAVES_OUT = (
    "a partner's part is of its speed alone, not of the blocks on an SM as in FlexSched's table 4: under a minimum rate both take turns; of its "
    "four Canny kernels GCEDD alone; no slices"
)
NETWORK_SETTLE = 2.5  # of requests before that: with `needed` it finds out whether a part of the SMs will do


def job(name, us, tenant=""):
    workload, kernel = KERNELS[name]
    return Job(workload, kernel=kernel, us=us, tenant=tenant)


SENSITIVE = "GCEDD"
PARTNERS = {name: job(name, PARTNER_US) for name in ("MM", "VA", "BS", "RED", "PF", "HST")}


def change(bench, key, value, of):
    """Changes the rated client, and waits until the agent has read it. @of: the value in the agent's status of a client."""
    bench.node.change_until(RATED.name, key, value, lambda: all(of(client) == value for client in rated(bench)))


def set_rate(bench, rate):
    """Sets its minimum rate; 0: none."""
    change(bench, "rate", rate, lambda client: client.get("minRate", 0))


def set_yield(bench, yields):
    """Sets what lower levels leave to it."""
    change(bench, "yields", yields, lambda client: client["yield"])


def rated(bench):
    """The agent's status of the client at level high."""
    return [client for client in bench.node.status() if client["level"] == 2]


def said(bench):
    return " ".join(f"{client['minRateAttained']:.3f}" if "minRateAttained" in client else "?" for client in rated(bench))


class Found:
    """By rate and pair: what the sensitive client had of its speed alone, what its partner had of its own; per cent. What there is
    is judged at the end of a `with` statement, whatever ends it."""

    def __init__(self, bench, what):
        self.bench, self.what, self.rows = bench, what, {}

    def add(self, rate, pair, had, left, more=""):
        self.rows.setdefault(rate, {})[pair] = (had, left)
        self.bench.report.add(f"{self.what}, {pair}, {rate}: has", round(had, 1), " %", baselines=f"the partner {left:.1f} %{more}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for rate, pairs in self.rows.items():
            short = {pair: 100 * rate - had for pair, (had, _) in pairs.items()}
            worst = max(short, key=short.get)
            text = ", ".join(f"{pair} {had:.1f}:{left:.1f}" for pair, (had, left) in pairs.items())
            self.bench.report.judge(f"{self.what}, {rate}: short of it, worst: {worst}", short[worst], BOUNDS["short of the rate"], f"has:partner {text}")
            mean, least = (of(left for _, left in pairs.values()) for of in (statistics.fmean, min))
            bound = BOUNDS[f"the partner's part at {rate}"]
            self.bench.report.judge(f"{self.what}, {rate}: the partner's part of its speed alone, mean", mean, bound, f"least {least:.1f} %")


# PTX


@dataclasses.dataclass
class Rates:
    """Rounds a second of each job, when all ran at the same time: @settled: without the first SETTLE seconds, @begun: with them."""

    settled: list
    begun: list


def rates_of(bench, mode, jobs, priorities=()):
    settle, seconds = length(bench, SETTLE), length(bench, SECONDS)
    ends = pool_of(bench).endless(mode, jobs, settle + seconds, priorities)
    done = [(progress(e, settle * 1e9), progress(e, (settle + seconds) * 1e9)) for e in ends]
    return Rates([(end - begin) / seconds for begin, end in done], [end / (settle + seconds) for _, end in done])


def shown_base(had, left):
    return f"{had:.0f}:{left:.0f}"


def without_rate(bench, jobs):
    """What both have of their speed alone without Weir; as text."""
    pool = pool_of(bench)
    plain = [rates_of(bench, pool.base, [one]).settled[0] for one in jobs]
    ways = {pool.base: ()} | ({"MPS + stream priority": (1, 0)} if pool.base == "MPS" else {})
    parts = {way: [100 * r / a for r, a in zip(rates_of(bench, pool.base, jobs, priorities).settled, plain)] for way, priorities in ways.items()}
    return ", ".join(f"{way} {shown_base(*both)}" for way, both in parts.items())


def ptx(bench):
    pool = pool_of(bench)
    names = sample(PARTNERS, 1 if bench.node.simulated else len(PARTNERS))
    high, base = job(SENSITIVE, SENSITIVE_US, RATED.name), {}
    for mode in (pool.base, "Weir"):
        pool.ensure(mode, [high, *(PARTNERS[name] for name in names)])
    high_alone = rates_of(bench, "Weir", [high]).settled[0]
    with Found(bench, f"PTX, {SENSITIVE}") as found:
        for name in names:
            low = PARTNERS[name]
            alone = [high_alone, rates_of(bench, "Weir", [low]).settled[0]]
            base[name] = without_rate(bench, [high, low])
            for rate in (0, *RATES):
                set_rate(bench, rate)
                both = rates_of(bench, "Weir", [high, low])
                had, left = (100 * r / a for r, a in zip(both.settled, alone))
                if rate:
                    begun = 100 * both.begun[0] / high_alone
                    found.add(rate, name, had, left, f"; with the first {SETTLE:g} s it has {begun:.1f} %, the agent says {said(bench)}")
                else:
                    base[name] += f", Weir {shown_base(had, left)}"
            set_rate(bench, 0)
    bench.report.add(f"PTX, {SENSITIVE} and partner without a rate", "; ".join(f"{name}: {text}" for name, text in base.items()))
    pool.leave_all()


# Closed kernels


class Closed:
    """Loops of closed kernels. @steps: GPU time of a step, by workload."""

    def __init__(self, bench, clock):
        self.clock, self.steps = clock, {}
        workloads = tuple(dict.fromkeys(w for pair in CLOSED for w in pair))
        bench.node.share_gpu(bench.mode == "mps")
        self.high = loops.loop_of(bench, RATED.name, workloads)
        self.low = loops.loop_of(bench, "partner", workloads)
        self.plain = [loops.loop_of(bench, name, workloads, weir=False) for name in ("plain-a", "plain-b")]
        self.prior = [loops.loop_of(bench, "plain-a", workloads, weir=False, priority=True)] if bench.mode == "mps" else []
        self.bounded = [loops.loop_of(bench, BOUNDED.name, ("train",))] if bench.mode == "mps" else []
        for loop in self.all:
            loop.wait_ready()
        for workload in workloads:
            self.steps[workload] = self.high.step_time(workload)

    @property
    def all(self):
        return [self.high, self.low, *self.plain, *self.prior, *self.bounded]

    def used(self, runs, settle, seconds):
        """Per cent of the GPU's time that each had, at the clock of the time; and steps a second."""
        done, begin, _ = loops.together(runs, settle + seconds + 0.1)
        begin += settle
        slower = self.clock.slower(begin, seconds)
        parts = [statistics.fmean(loops.used(p, self.steps[w], begin, seconds, slower)) for p, (_, w) in zip(done, runs)]
        return parts, [p.rate(begin, begin + seconds) for p in done], self.clock.windows(begin, seconds)

    def together(self, high, low, names):
        return self.used([(high, names[0]), (low, names[1])], CLOSED_SETTLE, CLOSED_SECONDS)


class Service:
    """The programs that answer requests, as the rated client."""

    def __init__(self, bench):
        self.bench, self.node = bench, bench.node
        argv = [self.node.program("burst"), "--gpu", "--size", str(BLOCKS), "--calibrate", "--length-us", str(BLOCKS_US)]
        iterations = self.node.start("calibrate", argv, RATED.name, False).result()
        self.burst = bench.burst_argv(1 << 40, SERVICE_SECONDS, ("--size", str(BLOCKS), "--iterations", str(int(iterations)),
                                      "--gap-min-us", str(BLOCKS_GAP_US[0]), "--gap-max-us", str(BLOCKS_GAP_US[1])))  # fmt: skip
        argv = ["python3", str(PROGRAMS / "high.py"), "single"]
        self.networks = {weir: self.node.start("requests", [*argv, *([] if weir else ["--priority"])], RATED.name, weir, stdin=subprocess.PIPE)
                         for weir in (True, False)}  # fmt: skip
        for client in self.networks.values():
            client.wait_ready()

    def few_blocks(self, weir=True):
        """ms by quantile, and when the first request came. @weir: without it HIGH has stream priority."""
        client = self.node.start("burst", [*self.burst, *([] if weir else ["--priority"])], RATED.name, weir)
        client.wait_ready()
        begin = time.monotonic()
        found = client.result()
        return {q: found[name] / 1e3 for q, name in zip(QUANTILES, ("median", "p90", "p99"))}, begin

    def requests(self, seconds, weir):
        client = self.networks[weir]
        client.tell("single", seconds, GAP_MS)
        return client.answer(seconds + 60)

    def resnet(self, weir=True):
        """The same, and p99 without what the program's thread lost to the host."""
        self.requests(NETWORK_SETTLE, weir)
        begin, answer = time.monotonic(), self.requests(SERVICE_SECONDS, weir)
        less = [ms - lost for ms, lost in zip(answer["ms"], answer["lost_ms"])]
        return {q: quantile(answer["ms"], q) for q in QUANTILES}, begin, quantile(less, 0.99)


class Way:
    """A way in which the service and LOW share the GPU. @loop: LOW. @weir: the service has it."""

    def __init__(self, name, loop, yields, rate, weir=True):
        self.name, self.loop, self.yields, self.rate, self.weir = name, loop, yields, rate, weir


class Seen:
    """@times: the service's ms by quantile, @less: p99 without what its thread lost, 0: not known, @mhz: the clock meanwhile,
    @speed: LOW's steps a second; 0: no LOW."""

    def __init__(self, clock, times, begin, less=0):
        self.times, self.less, self.begin, self.end, self.speed = times, less, begin, time.monotonic(), 0
        self.mhz = clock.mean(self.begin, self.end)

    def __str__(self):
        return f"{' '.join(f'{ms:.2f}' for ms in self.times.values())} ms, {shown([self.mhz])}, LOW {self.speed:.1f} it/s"


def beside(bench, scene, ask, way, start):
    """What is seen of the service and LOW when both are at work."""
    set_rate(bench, way.rate)
    set_yield(bench, way.yields)
    way.loop.begin("train", start + SERVICE_SECONDS + 0.5)
    seen = Seen(scene.clock, *ask(way.weir))
    seen.speed = way.loop.end().rate(seen.begin, seen.end)
    return seen


def middle(seen):
    """One whose times are the medians of @seen: alone, a few requests of the program's processor decide about p99."""
    one = copy.copy(seen[0])
    one.times = {q: statistics.median(each.times[q] for each in seen) for q in QUANTILES}
    one.less, one.mhz = statistics.median(each.less for each in seen), statistics.fmean(each.mhz for each in seen)
    return one


def in_turn(bench, scene, what, ask, start, ways):
    """(alone, before each way; what is seen by way)"""
    alone, found = [], {}
    for way in ways:
        set_rate(bench, 0)
        alone.append(Seen(scene.clock, *ask()))
        print(f"    {what}, median, p90, p99: alone {alone[-1]}", flush=True)
        found[way] = beside(bench, scene, ask, way, start)
        print(f"    {what}, {way.name}: {found[way]}; the agent says {said(bench)}", flush=True)
    set_rate(bench, 0)
    return alone, found


def compared(ways, figures, judged):
    """As text, what is seen in the ways that are not judged."""
    return ", ".join(f"{way.name} {figures[way]:.2f}x" for way in ways if way is not judged)


def judge_service(bench, scene):
    """LOW: a training step, on all SMs and on a part of them. Judged is what suits the service: few blocks find room beside
    a part of the SMs; ResNet-50 needs all of them now and then, and its processor leaves the GPU idle."""
    service, part = Service(bench), f"LOW on {BOUNDED.sms} % of the SMs"
    priority = Way("MPS + stream priority", scene.plain[1], "whole", 0, weir=False)
    temporal = Way("temporal", scene.low, "whole", 0)
    turns = Way(f"rate {SERVICE_RATE}, LOW on all SMs", scene.low, "whole", SERVICE_RATE)
    spatial = Way(f"needed, {part}", scene.bounded[0], "needed", 0)
    both = Way(f"needed, rate {SERVICE_RATE}, {part}", scene.bounded[0], "needed", SERVICE_RATE)
    services = (
        (f"{BLOCKS} blocks", service.few_blocks, START, "all requests count", spatial),
        ("ResNet-50, batch 1", service.resnet, NETWORK_SETTLE, f"requests of the first {NETWORK_SETTLE:g} s do not count", turns),
    )
    for what, ask, start, counts, judged in services:
        times, found = in_turn(bench, scene, what, ask, start, (priority, temporal, turns, spatial, both))
        alone = middle(times)
        p99s = {way: seen.times[0.99] / alone.times[0.99] for way, seen in found.items()}
        text = f"{compared(found, p99s, judged)}; {counts}; ms alone, before each: {' '.join(f'{one.times[0.99]:.2f}' for one in times)}"
        what = f"{what}, LOW=train, {judged.name}"
        bench.report.judge(f"{what}: p99 against alone", p99s[judged], BOUNDS["service, p99"], text)
        if alone.less:
            less = {way: seen.less / alone.less if seen.less else 0 for way, seen in found.items()}
            bench.report.judge(f"{what}, less what its thread lost: p99 against alone", less[judged], BOUNDS["service, p99"], compared(found, less, judged))
        if judged is spatial and alone.mhz and found[judged].mhz:  # a request is all kernels without accesses to memory
            slower = min(1, found[judged].mhz / alone.mhz)
            text = shown([found[judged].mhz]) + ", alone " + shown([alone.mhz])
            bench.report.judge(f"{what}, at the clock of HIGH alone: p99 against alone", p99s[judged] * slower, BOUNDS["service, p99"], text)
        text = ", ".join(f"{way.name} {seen.speed:.1f} it/s" for way, seen in found.items())
        speed = found[judged].speed / found[temporal].speed
        bench.report.judge(f"{what}: LOW's rate against temporal", speed, BOUNDS["service, LOW's rate"], text)
    for client in service.networks.values():
        client.leave()


def closed(bench, parts):
    with Clock() as clock:
        scene = Closed(bench, clock)
        try:
            if "closed" in parts:
                with bench.report.guard("closed"), Found(bench, "closed") as found, Found(bench, "closed, steps a second") as by_steps:
                    measure_closed(bench, scene, found, by_steps)
            if "service" in parts and bench.mode == "mps":
                with bench.report.guard("service"):
                    judge_service(bench, scene)
        finally:
            bench.node.change_tenants({RATED.name: {"rate": 0}})
            loops.end_node(bench, scene.all)


def alone(scene, names):
    """(part of the GPU's time, steps a second) of each loop while it runs alone."""
    found = [scene.used([(loop, name)], CLOSED_SETTLE, ALONE) for loop, name in zip((scene.high, scene.low), names)]
    return [(parts[0], rates[0]) for parts, rates, _ in found]


@dataclasses.dataclass
class ClosedSeen:
    """With a rate: parts of the GPU's time, steps a second, the clock, and what the agent says."""

    rate: float
    parts: list
    steps: list
    clocks: list
    says: str


def measure_pair(bench, scene, names):
    """Returns ((part of the GPU's time, steps a second) of each alone, what was seen without a rate, with each); and as text, what
    was seen without Weir."""
    before = alone(scene, names)
    ways = {"MPS" if bench.mode == "mps" else "time-slicing": scene.plain} | {"MPS + stream priority": [one, scene.plain[1]] for one in scene.prior}
    plain = {way: scene.together(*two, names)[0] for way, two in ways.items()}
    seen = []
    for rate in (0, *RATES):
        set_rate(bench, rate)
        seen.append(ClosedSeen(rate, *scene.together(scene.high, scene.low, names), said(bench)))
    set_rate(bench, 0)
    # A training step's processor is now and then too slow for the GPU, so before and after may differ.
    both = [[statistics.fmean(two) for two in zip(*each)] for each in zip(before, alone(scene, names))]
    (free, _), (others, _) = both
    text = [f"alone {free:.1f} and {others:.1f} % of the GPU's time, of it before {before[0][0]:.1f}"]
    text += [f"{way} {100 * parts[0] / free:.1f}:{100 * parts[1] / others:.1f}" for way, parts in plain.items()]
    return both, seen, text


def measure_closed(bench, scene, found, by_steps):
    """@found, @by_steps: by GPU time at the clock of the time, and by steps a second, which a partner at the board's power limit lowers."""
    for names in CLOSED:
        pair = "+".join(names)
        ((free, speed), (others, low_speed)), seen, text = measure_pair(bench, scene, names)
        for one in seen:
            had, left = 100 * one.parts[0] / free, 100 * one.parts[1] / others
            if one.rate:
                found.add(one.rate, pair, had, left, f"; {shown(one.clocks)}; the agent says {one.says}")
                by_steps.add(one.rate, pair, 100 * one.steps[0] / speed, 100 * one.steps[1] / low_speed)
            else:
                text.append(f"Weir {had:.1f}:{left:.1f}")
        bench.report.add(f"closed, {pair} without a rate", "; ".join(text))


def run(bench):
    parts = bench.part_of(PARTS)
    bench.report.cut(LEAVES_OUT + ("; time-slicing is min-rate-timeslice's" if bench.mode == "mps" else ""))
    if "ptx" in parts:
        with bench.report.guard("ptx"):
            ptx(bench)
    if parts != ["ptx"] and not bench.node.simulated:
        closed(bench, parts)
