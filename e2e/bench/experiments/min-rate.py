"""A latency-sensitive client keeps 0.5 to 0.9 of its speed alone (`weir.dev/min-rate`), and a partner below it gets what is
left: FlexSched's Canny kernel beside its six partners, as PTX; then products of matrices and training steps, whose
kernels are closed. Under MPS also a service beside a training step: bursts of a 20-block kernel, and ResNet-50. The
training step has all SMs, or a part of them (MPS's active thread percentage) and runs on while the service needs no more
than the others."""

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
BASELINES = ("each alone", "MPS or time-slicing", "no minimum rate")
NEEDS = ("gpu", "mps", "pytorch", "root")
SIMULATED = True
MODES = ("mps", "timeslice")
RATED = Tenant("rated", "high")
BOUNDED = Tenant("bounded", "low", sms=60)
TENANTS = (*SLOTS, RATED, Tenant("partner", "low"), BOUNDED, Tenant("plain-a", "low"), Tenant("plain-b", "low"))

PARTS = "ptx", "closed", "service"  # of --parts
RATES = (0.5, 0.6, 0.7, 0.8, 0.9)
PARTNERS_OF = {"mps": 6, "timeslice": 3}  # how many of them
SENSITIVE_US, PARTNER_US = 500, 2000  # of a launch
SETTLE, SECONDS = 0.3, 1.0  # of PTX: before the time that counts, and that
CLOSED = (("train", "mm"), ("mm", "train"))  # the sensitive one, its partner
CLOSED_SETTLE, CLOSED_SECONDS, ALONE = 0.5, 2, 1
SERVICE_RATE = 0.9
QUANTILES = (0.5, 0.9, 0.99)
BLOCKS, BLOCKS_US, BLOCKS_GAP_US = 20, 175, (1000, 2000)  # of the service's kernel; between its bursts
SERVICE_SECONDS, START, GAP_MS = 2.5, 2.5, 8  # of a measurement; until the burst program has started; between requests
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
            self.bench.report.judge(f"{self.what}, {rate}: short of it, worst: {worst}", max(short[worst], 0), BOUNDS["short of the rate"], f"has:partner {text}")
            mean = statistics.fmean(left for _, left in pairs.values())
            self.bench.report.judge(f"{self.what}, {rate}: the partner's part of its speed alone, mean", mean, BOUNDS[f"the partner's part at {rate}"])


# PTX


def rates_of(bench, mode, jobs):
    """Rounds a second of each job, when all run at the same time. The first SETTLE seconds do not count."""
    settle, seconds = length(bench, SETTLE), length(bench, SECONDS)
    ends = pool_of(bench).endless(mode, jobs, settle + seconds)
    return [(progress(e, (settle + seconds) * 1e9) - progress(e, settle * 1e9)) / seconds for e in ends]


def ptx(bench):
    pool = pool_of(bench)
    names = sample(PARTNERS, 1 if bench.node.simulated else PARTNERS_OF[bench.mode])
    if len(names) < len(PARTNERS):
        bench.report.cut(f"{len(names)} of {len(PARTNERS)} partners")
    high, base = job(SENSITIVE, SENSITIVE_US, RATED.name), {}
    for mode in (pool.base, "Weir"):
        pool.ensure(mode, [high, *(PARTNERS[name] for name in names)])
    high_alone, high_plain = (rates_of(bench, mode, [high])[0] for mode in ("Weir", pool.base))
    with Found(bench, f"PTX, {SENSITIVE}") as found:
        for name in names:
            low = PARTNERS[name]
            alone = [high_alone, rates_of(bench, "Weir", [low])[0]]
            plain = [high_plain, rates_of(bench, pool.base, [low])[0]]
            base[name] = [100 * r / a for r, a in zip(rates_of(bench, pool.base, [high, low]), plain)]
            for rate in (0, *RATES):
                set_rate(bench, rate)
                both = rates_of(bench, "Weir", [high, low])
                had, left = (100 * r / a for r, a in zip(both, alone))
                if rate:
                    found.add(rate, name, had, left, f"; the agent says {said(bench)}")
                else:
                    base[name] += [had, left]
            set_rate(bench, 0)
    text = ", ".join(f"{name} {a:.0f}:{b:.0f}, {c:.0f}:{d:.0f}" for name, (a, b, c, d) in base.items())
    bench.report.add(f"PTX, {SENSITIVE} and partner without a rate: {pool.base}, Weir", text)
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
        self.bounded = [loops.loop_of(bench, BOUNDED.name, ("train",))] if bench.mode == "mps" else []
        for loop in self.all:
            loop.wait_ready()
        for workload in workloads:
            self.steps[workload] = self.high.step_time(workload)

    @property
    def all(self):
        return [self.high, self.low, *self.plain, *self.bounded]

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
        self.network = self.node.start("requests", argv, RATED.name, True, stdin=subprocess.PIPE)
        self.network.wait_ready()

    def few_blocks(self):
        """ms by quantile, and when the first request came."""
        client = self.node.start("burst", self.burst, RATED.name, True)
        client.wait_ready()
        begin = time.monotonic()
        found = client.result()
        return {q: found[name] / 1e3 for q, name in zip(QUANTILES, ("median", "p90", "p99"))}, begin

    def requests(self, seconds):
        self.network.tell("single", seconds, GAP_MS)
        return self.network.answer(seconds + 60)

    def resnet(self):
        """The same, and p99 without what the program's thread lost to the host."""
        self.requests(NETWORK_SETTLE)
        begin, answer = time.monotonic(), self.requests(SERVICE_SECONDS)
        less = [ms - lost for ms, lost in zip(answer["ms"], answer["lost_ms"])]
        return {q: quantile(answer["ms"], q) for q in QUANTILES}, begin, quantile(less, 0.99)


class Way:
    """A way in which the service and LOW share the GPU. @loop: LOW."""

    def __init__(self, name, loop, yields, rate):
        self.name, self.loop, self.yields, self.rate = name, loop, yields, rate


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
    seen = Seen(scene.clock, *ask())
    seen.speed = way.loop.end().rate(seen.begin, seen.end)
    return seen


def judge_service(bench, scene):
    """LOW: a training step, on all SMs and on a part of them. Judged is what suits the service: few blocks find room beside
    a part of the SMs; ResNet-50 needs all of them now and then, and its processor leaves the GPU idle."""
    service, part = Service(bench), f"LOW on {BOUNDED.sms} % of the SMs"
    temporal = Way("temporal", scene.low, "whole", 0)
    turns = Way(f"rate {SERVICE_RATE}, LOW on all SMs", scene.low, "whole", SERVICE_RATE)
    spatial = Way(f"needed, {part}", scene.bounded[0], "needed", 0)
    both = Way(f"needed, rate {SERVICE_RATE}, {part}", scene.bounded[0], "needed", SERVICE_RATE)
    services = ((f"{BLOCKS} blocks", service.few_blocks, START, spatial), ("ResNet-50, batch 1", service.resnet, NETWORK_SETTLE, turns))
    for what, ask, start, judged in services:
        alone, found = Seen(scene.clock, *ask()), {}
        print(f"    {what}, median, p90, p99: alone {alone}", flush=True)
        for way in (temporal, turns, spatial, both):
            found[way] = beside(bench, scene, ask, way, start)
            print(f"    {what}, {way.name}: {found[way]}; the agent says {said(bench)}", flush=True)
        set_rate(bench, 0)
        p99s = {way: seen.times[0.99] / alone.times[0.99] for way, seen in found.items()}
        text = ", ".join(f"{way.name} {p99:.2f}x" for way, p99 in p99s.items() if way is not judged)
        what = f"{what}, LOW=train, {judged.name}"
        bench.report.judge(f"{what}: p99 against alone", p99s[judged], BOUNDS["service, p99"], text)
        if alone.less:
            bench.report.judge(f"{what}, less what its thread lost: p99 against alone", found[judged].less / alone.less, BOUNDS["service, p99"],
                               ", ".join(f"{way.name} {seen.less / alone.less:.2f}x" for way, seen in found.items() if way is not judged))  # fmt: skip
        if judged is spatial and alone.mhz and found[judged].mhz:  # a request is all kernels without accesses to memory
            slower = min(1, found[judged].mhz / alone.mhz)
            text = shown([found[judged].mhz]) + ", alone " + shown([alone.mhz])
            bench.report.judge(f"{what}, at the clock of HIGH alone: p99 against alone", p99s[judged] * slower, BOUNDS["service, p99"], text)
        text = ", ".join(f"{way.name} {seen.speed:.1f} it/s" for way, seen in found.items())
        speed = found[judged].speed / found[temporal].speed
        bench.report.judge(f"{what}: LOW's rate against temporal", speed, BOUNDS["service, LOW's rate"], text)
    service.network.leave()


def closed(bench, parts):
    with Clock() as clock:
        scene = Closed(bench, clock)
        try:
            if "closed" in parts:
                with bench.report.guard("closed"), Found(bench, "closed") as found:
                    measure_closed(bench, scene, found)
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


def measure_closed(bench, scene, found):
    way = "MPS" if bench.mode == "mps" else "time-slicing"
    for names in CLOSED:
        pair, seen = "+".join(names), []
        before = alone(scene, names)
        plain, _, _ = scene.together(*scene.plain, names)
        for rate in (0, *RATES):
            set_rate(bench, rate)
            seen.append((rate, *scene.together(scene.high, scene.low, names), said(bench)))
        set_rate(bench, 0)
        # A training step's processor is now and then too slow for the GPU, so before and after may differ.
        (free, speed), (others, _) = ([statistics.fmean(both) for both in zip(*two)] for two in zip(before, alone(scene, names)))
        text = [f"alone {free:.1f} and {others:.1f} % of the GPU's time, of it before {before[0][0]:.1f}", f"{way} {100 * plain[0] / free:.1f}:{100 * plain[1] / others:.1f}"]
        for rate, parts, rates, clocks, says in seen:
            had, left = 100 * parts[0] / free, 100 * parts[1] / others
            if rate:
                found.add(rate, pair, had, left, f"; by steps a second, whatever the clock, {100 * rates[0] / speed:.1f} %; {shown(clocks)}; the agent says {says}")
            else:
                text.append(f"Weir {had:.1f}:{left:.1f}")
        bench.report.add(f"closed, {pair} without a rate", "; ".join(text))


def run(bench):
    parts = bench.part_of(PARTS)
    if "ptx" in parts:
        with bench.report.guard("ptx"):
            ptx(bench)
    if parts != ["ptx"] and not bench.node.simulated:
        closed(bench, parts)
