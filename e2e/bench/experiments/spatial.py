"""HIGH launches kernels of a few blocks above LOW's large ones. LOW leaves the whole GPU (temporal preemption, `yield:
whole`), or only what HIGH needs (spatial, `yield: needed`): places of blocks that end, for short kernels, or SMs.
First the trivial kernels of FLEP at a steady pace; then the same with more and more SMs left to them; then a
service: bursts of a 20-block kernel, and ResNet-50. At last the same bursts of a pod that asks for neither: it finds out
by itself which of both does, and the next process of it knows."""

import dataclasses
import datetime
import importlib.util
import pathlib
import statistics
import subprocess
import time

import papers
import plot
import ports
from experiment import PROGRAMS
from node import Failure, Tenant
from report import at_least, at_most
from servers import length, quantile
from workers import DEPTH, LEAD, MS, SLOTS, Job, pool_of, progress

SHOWS = "kernels of a few blocks above large ones: LOW leaves the SMs that they need, or the whole GPU"
PAPER = "FLEP figures 15, 16"
BOUNDS = {
    "less overhead, mean": at_least(31), "less overhead, best": at_least(41), "HIGH's time, mean": at_most(1.03),
    "needed against the best": at_most(1.03), "20 blocks, p99": at_most(1.1), "20 blocks, LOW's rate": at_least(1.3, "x"),
    "ResNet-50, p99": at_most(1.1), "ResNet-50, LOW's rate": at_least(1.3, "x"),
    "default, HIGH": at_most(1.03), "default, tried": at_most(1.0, " %"),
}  # fmt: skip
BASELINES = ("LOW alone", "HIGH alone", "MPS", "temporal preemption")
WAYS = "MPS", "temporal", "spatial"
NEEDS = ("gpu", "mps", "root")
SIMULATED = True

WHOLE, NEEDED = Tenant("leave-whole", "high", yields="whole"), Tenant("leave-needed", "high", yields="needed")
ITSELF = Tenant("finds-out", "high")
TENANTS = (*SLOTS, WHOLE, NEEDED, ITSELF)
PARTS = PAIRS, CURVES, SERVICE, NETWORKS, DEFAULT = "pairs", "curves", "service", "networks", "default"  # of --parts

TRIVIAL_US = 1  # a mark in a job: one pass, however long it takes
EVERY_MS, SECONDS = 0.4, 0.3  # from one launch of HIGH to the next; of a measurement
SETTLE = 0.15  # seconds before that: LOW finds out by looking what HIGH needs, and launches that it had queued end;
COMPARES = 0.9  # and HIGH finds out what is the fastest for it, if LOW is to leave what it needs
TAILS = 0.1  # of HIGH's times: the shortest and the longest that do not count
LOWS = tuple(papers.FLEP)  # each beside each other one
SERVED = 2  # of these, as many run below the services
SHOWN = (("NN", "PF"), ("MD", "CFD"))  # HIGH, LOW: of the curve
SMS = 5, 10, 40, 132  # left to HIGH; an H100 or H200 has 132
POINT, POINT_SETTLE = 0.1, 0.1  # seconds of a measurement of the curve; before that, while launches that LOW had queued end
ASK = 0.1  # seconds until the agent has taken what HIGH asks for, at most on average
QUEUED = 2  # rounds of LOW
AGAIN = 3  # further measurements of `needed` and the two best points
CLEAR = 1.1  # the best other point against `needed`: chance makes no such difference
SWEEP_SECONDS = 275  # of all curves: no further pair is begun later
BLOCKS, BLOCKS_US = 20, 175  # of the service's kernel
BLOCKS_SECONDS, WARM_UP = 3.2, 320  # of a measurement; requests of it that do not count: in 1.3 s HIGH finds out what is the fastest for it (H100)
SLOWEST = 5  # requests that are told
GAP_MS, REQUESTS_SECONDS, TURNS = 8, 1.0, 6  # of requests: alone and in each way, in turns, since the host varies
REQUESTS_COMPARE, REQUESTS_SETTLE = 3.5, 0.3  # before the first spatial ones: HIGH finds out whether a part of the SMs will do; before others
AROUND = 0.5  # seconds of LOW's work behind the service beside it
FIND_SECONDS = 60  # of a service that finds out by itself whether it needs the whole GPU


class Places:
    """Processors of the main threads of HIGH and of LOW, whichever is at work. A launch and its end take HIGH's about half of a
    trivial kernel's time, and more where it shares a core."""

    def __init__(self, bench):
        self.of = [] if bench.node.simulated else ports.processors(2)
        if self.of:
            bench.report.add("processors of HIGH's and LOW's threads", " ".join(map(str, self.of)))

    def ensure(self, pool, mode, jobs, is_low=False):
        pool.ensure(mode, jobs)
        for job in jobs if self.of else ():
            ports.pin(pool.workers[mode, job].client, self.of[is_low])


def trivial(pool, name, tenant=""):
    workload, kernel, *_ = papers.FLEP[name]
    pool.passes[kernel, TRIVIAL_US] = 1
    return Job(workload, size="trivial", tenant=tenant, kernel=kernel, us=TRIVIAL_US, brief=True)


def typical(times):
    """The mean without both tails. A median would hide that each fifth launch waits: of about 45 clients of one MPS server
    some wait up to a millisecond, once in each 2 ms (H100)."""
    cut = int(TAILS * len(times))
    return statistics.fmean(sorted(times)[cut : len(times) - cut])


def beside(bench, mode, low, high, seconds=SECONDS, settle=SETTLE):
    """HIGH's time in us (None: no HIGH) and LOW's rounds a second, both at work for @settle and then @seconds."""
    settle = settle if high and mode == "Weir" and not bench.node.simulated else 0
    seconds = length(bench, seconds)
    begin, end = settle * 1e9, (settle + seconds) * 1e9
    rounds = [(high, ("rounds", 0, int(EVERY_MS * MS), int(end / EVERY_MS / MS), 0))] if high else []
    answers = pool_of(bench).ask(mode, [(low, ("endless", 0, int(end), DEPTH, 0)), *rounds], settle + seconds)
    rate = (progress(answers[0]["ends"], end) - progress(answers[0]["ends"], begin)) / seconds
    times = [(done - launch) / 1e3 for launch, done in answers[1]["rounds"] if launch >= begin] if high else []
    return (typical(times) if times else None), rate


def pairs(bench, places, lows, highs):
    """Yields (LOW, rows by HIGH of (HIGH's us: MPS, temporal, spatial; LOW's overhead: the same)). Each pair is reported at once.
    Without Weir one LOW is there at a time: a server has 48 clients at most."""
    pool = pool_of(bench)
    places.ensure(pool, "MPS", [jobs[0] for jobs in highs.values()])
    for a, low in lows.items():
        places.ensure(pool, "MPS", [low], True)
        plain, alone = beside(bench, "MPS", low, None)[1], beside(bench, "Weir", low, None)[1]
        rows = {}
        for b, jobs in highs.items():
            if b == a:
                continue
            both = [beside(bench, mode, low, job) for mode, job in zip(("MPS", "Weir"), jobs)]
            both.append(beside(bench, "Weir", low, jobs[2], settle=SETTLE + COMPARES))
            lost = [1 - rate / of for (_, rate), of in zip(both, (plain, alone, alone))]
            rows[b] = [us for us, _ in both], lost
            told = ", ".join(f"{mode} {us:.0f} us and {100 * part:.1f} %" for mode, us, part in zip(WAYS, rows[b][0], lost))
            bench.report.add(f"{a}_{b}: LOW's loss, spatial", round(100 * lost[2], 1), " %", baselines=f"HIGH's time and LOW's loss: {told}")
        yield a, rows
        pool.leave("MPS", [low])
        evictions = pool.clients([low])[0]["evictions"]
        print(f"    {a}: {evictions} evictions so far", flush=True)
    pool.leave("MPS", [jobs[0] for jobs in highs.values()])


def measure_pairs(bench, places, lows, highs):
    """What there is is judged, whatever ends the measurements."""
    found = {}
    try:
        for a, rows in pairs(bench, places, lows, highs):
            found[a] = rows
    finally:
        if len(found) < len(lows):
            bench.report.cut(f"the pairs of {len(found)} of {len(lows)} LOWs")
        if found:
            judge_pairs(bench, found)


def judge_pairs(bench, found):
    """As in FLEP's figure 15: the mean over all HIGH, for each LOW."""
    lost = {a: [statistics.fmean(row[1][i] for row in rows.values()) for i in range(3)] for a, rows in found.items()}
    less = {a: 100 * (1 - spatial / temporal) if temporal > 0 else 0 for a, (_, temporal, spatial) in lost.items()}
    told = "; ".join(f"{a}: MPS {100 * m:.1f} %, temporal {100 * t:.1f} %, spatial {100 * s:.1f} %" for a, (m, t, s) in lost.items())
    bench.report.judge("overhead of spatial against temporal preemption: less, mean", statistics.fmean(less.values()), BOUNDS["less overhead, mean"], told)
    best = max(less, key=less.get)
    bench.report.judge(f"the same, best: {best}", less[best], BOUNDS["less overhead, best"])
    times = {f"{a}_{b}": us for a, rows in found.items() for b, (us, _) in rows.items()}
    slower = {pair: us[2] / us[1] for pair, us in times.items()}
    worst = max(slower, key=slower.get)
    told = f"worst {worst} {slower[worst]:.3f}x: {times[worst][2]:.0f} us, temporal {times[worst][1]:.0f} us, MPS {times[worst][0]:.0f} us"
    bench.report.judge("HIGH's time, spatial against temporal, mean", statistics.fmean(slower.values()), BOUNDS["HIGH's time, mean"], told)
    if bench.plots:
        series = {mode: [100 * lost[a][i] for a in lost] for i, mode in ((1, "temporal"), (2, "spatial"))}
        plot.bars(bench.plots / f"{bench.report.experiment}.svg", "Overhead of preemption (FLEP fig. 15)", "%", list(lost), series)


def ask_for(bench, job, yields):
    """The tenant of @job's client asks lower levels for that from here on."""
    bench.node.change_until(job.tenant, "yields", yields, lambda: pool_of(bench).clients([job])[0]["yield"] == yields)


@dataclasses.dataclass
class Curve:
    """HIGH's time in us by what it asks for: a number of SMs, `needed`, `whole`. @again: what was measured again, and judges.
    Not `whole`, temporal preemption: lower levels read one word less then before they leave."""

    times: dict
    again: tuple

    @property
    def ratio(self):
        return self.times["needed"] / min(self.times[name] for name in self.again)


class Sweep:
    """One HIGH beside one LOW. A single client asks for this and for that in turn while LOW is at work all the time: clients
    differ by a tenth whatever they ask for, and a host is slow now and then."""

    def __init__(self, bench, low, job):
        self.bench, self.low, self.job = bench, low, job
        short = bench.node.simulated
        self.compares, self.asking, self.settle, self.point = (0, 1.0, 0, 0.3) if short else (COMPARES, ASK, POINT_SETTLE, POINT)
        self.turns = 1 if short else AGAIN

    def ask(self, name, settle):
        """Returns the time, of the monotonic clock, in which HIGH's launches count."""
        ask_for(self.bench, self.job, str(name))
        since = time.monotonic_ns() + int(settle * 1e9)
        until = since + int(self.point * 1e9)
        time.sleep((until - time.monotonic_ns()) / 1e9)
        return since, until

    def measure(self, names, first):
        """HIGH's times by name: the median of as many as it is in @names. @first: seconds before the first counts."""
        seconds = first + len(names) * (self.asking + self.settle + self.point)
        high, low = (pool_of(self.bench).workers["Weir", job].client for job in (self.job, self.low))
        begin = time.monotonic_ns() + LEAD
        low.tell("endless", begin, begin + int(seconds * 1e9), QUEUED, 0)
        high.tell("rounds", begin, int(EVERY_MS * MS), int(seconds * 1e3 / EVERY_MS), 0)
        spans = [(name, *self.ask(name, self.settle + (LEAD / 1e9 + first if not i else 0))) for i, name in enumerate(names)]
        rounds = high.answer(seconds + 60)["rounds"]
        low.answer(seconds + 60)
        found = {}
        for name, since, until in spans:
            times = [(done - launch) / 1e3 for launch, done in rounds if since <= begin + launch < until]
            if not times:
                raise Failure(f"{self.job} beside {self.low}: no launches while it asked for {name}")
            found.setdefault(name, []).append(typical(times))
        return {name: statistics.median(seen) for name, seen in found.items()}

    def curve(self, numbers):
        """@numbers: of SMs. All once, then `needed` and the two best others in turn: the best of several times is low by
        chance. Not where `needed` is the best by far."""
        times = self.measure(["needed", *numbers, "whole"], self.compares)
        others = sorted(numbers, key=times.get)
        if times["needed"] * CLEAR < times[others[0]]:
            return Curve(times, ("needed",))
        again = ("needed", *others[:2])
        return Curve(times | self.measure([name for turn in range(self.turns) for name in again[:: -1 if turn % 2 else 1]], 0), again)


def sweep(bench, lows, highs, numbers):
    """As in FLEP's figure 16, each pair. @highs: jobs of clients that ask for `needed`."""
    curves, until = {}, time.monotonic() + SWEEP_SECONDS
    asked = [(a, b) for b in sorted(highs, key=lambda b: b not in dict(SHOWN)) for a in lows if a != b]
    try:
        for a, b in asked:
            if time.monotonic() > until:
                break
            found = curves[a, b] = Sweep(bench, lows[a], highs[b]).curve(numbers)
            told = ", ".join(f"{name} {us:.1f} us" + "*" * (name in found.again) for name, us in found.times.items())
            bench.report.add(f"{a}_{b}: needed against the best number of SMs", round(found.ratio, 3), "x", baselines=f"{told}; *: medians")
    finally:
        if len(curves) < len(asked):
            bench.report.cut(f"the curves of {len(curves)} of {len(asked)} pairs; none is begun after {SWEEP_SECONDS} s")
        if curves:
            judge_curves(bench, curves, numbers)


def judge_curves(bench, curves, by_sms):
    """@curves: by (LOW, HIGH)."""
    ratios = {pair: found.ratio for pair, found in curves.items()}
    bound = BOUNDS["needed against the best"]
    within, worst = sum(ratio <= bound.limit for ratio in ratios.values()), max(ratios, key=ratios.get)
    told = f"{within} of {len(ratios)} pairs within; mean {statistics.fmean(ratios.values()):.3f}x; worst {'_'.join(worst)}"
    bench.report.judge("needed against the best number of SMs, the worst pair", ratios[worst], bound, told)
    if bench.plots:
        shown = {f"{a}_{b}": [found.times["needed"] / found.times[n] for n in by_sms] for (a, b), found in curves.items() if (b, a) in SHOWN}
        plot.lines(bench.plots / f"{bench.report.experiment}-sms.svg", "HIGH's speed-up by SMs left to it (FLEP fig. 16)", "x", by_sms, shown)


class Around:
    """LOW at work, and its rate while the body of a `with` statement runs."""

    def __init__(self, pool, low, seconds):
        self.low, self.seconds, self.rate = pool.workers["Weir", low].client, seconds, 0
        self.begin = time.monotonic_ns() + LEAD
        self.low.tell("endless", self.begin, self.begin + int(seconds * 1e9), DEPTH, 0)

    def __enter__(self):
        self.since = max(time.monotonic_ns(), self.begin)
        return self

    def __exit__(self, *_):
        until = time.monotonic_ns()
        ends = self.low.answer(self.seconds + 60)["ends"]
        done = progress(ends, until - self.begin) - progress(ends, self.since - self.begin)
        self.rate = done / ((until - self.since) / 1e9)


def slowest(log):
    """Of a log of requests, as text: when (UTC) and us. They tell whether libweir compared something just then."""
    requests = sorted((tuple(map(float, line.split())) for line in log.read_text().splitlines()), key=lambda request: -request[1])
    return ", ".join(f"{datetime.datetime.fromtimestamp(at, datetime.timezone.utc):%H:%M:%S.%f} {us:.0f}" for at, us in requests[:SLOWEST])


def burst(bench, pool, tenant, low, extra, seconds=BLOCKS_SECONDS, at_end=None):
    """The result of bursts of few blocks, and LOW's rounds a second beside them; @low: None: alone. @at_end: while they end."""
    seconds = length(bench, seconds)
    blocks, warm_up = (2, 0) if bench.node.simulated else (BLOCKS, WARM_UP)
    log = pathlib.Path(ports.files(bench)) / f"{tenant.name}-{time.monotonic_ns()}.log"
    extra = ("--size", str(blocks), "--warm-up", str(warm_up), "--gap-min-us", "1000", "--gap-max-us", "2000", "--log", str(log), *extra)
    client = bench.node.start("burst", bench.burst_argv(1 << 40, seconds, extra), tenant.name, True)
    client.wait_ready()
    if not low:
        return client.result() | {"slowest": slowest(log)}, 0
    with Around(pool, low, seconds + AROUND) as around:
        if at_end:
            time.sleep(0.9 * seconds)
            at_end()
        result = client.answer(seconds + 60)
    client.wait_end(60)
    return result | {"slowest": slowest(log)}, around.rate


def judge_service(bench, what, low, alone, rates, p99s, bound_p99, bound_rate, told=""):
    """@rates, @p99s: temporal, spatial."""
    shown = f"alone {alone:.1f}/s, temporal {rates[0]:.1f}/s, spatial {rates[1]:.1f}/s"
    bench.report.judge(f"{what}, LOW={low}: HIGH's p99 against alone", p99s[1], bound_p99, f"temporal {p99s[0]:.2f}x{told}")
    bench.report.judge(f"{what}, LOW={low}: LOW's rate against temporal", rates[1] / rates[0], bound_rate, shown)


def calibrated(bench):
    """Iterations of the service's kernel."""
    if bench.node.simulated:
        return 16
    argv = [bench.node.program("burst"), "--gpu", "--size", str(BLOCKS), "--calibrate", "--length-us", str(BLOCKS_US)]
    return int(bench.node.start("calibrate", argv, WHOLE.name, False).result())


def few_blocks(bench, lows):
    """A service with a kernel of BLOCKS blocks: each launched, and a request's kernels in a graph."""
    pool, iterations = pool_of(bench), calibrated(bench)
    free = {a: beside(bench, "Weir", low, None)[1] for a, low in lows.items()}
    for what, graph in ((f"{BLOCKS} blocks", ()), (f"{BLOCKS} blocks in a graph", ("--replays",))):
        extra = ("--iterations", str(iterations), *graph)
        alone, _ = burst(bench, pool, NEEDED, None, extra)
        for a, low in lows.items():
            both = [burst(bench, pool, tenant, low, extra) for tenant in (WHOLE, NEEDED)]
            p99s = [result["p99"] / alone["p99"] for result, _ in both]
            rates = [max(rate, 1e-9) for _, rate in both]
            told = f"; us of {both[1][0]['requests']} requests: alone {alone['median']:.0f}/{alone['p99']:.0f}, the slowest {both[1][0]['slowest']}"
            judge_service(bench, what, a, free[a], rates, p99s, BOUNDS["20 blocks, p99"], BOUNDS["20 blocks, LOW's rate"], told)


def by_itself(bench, lows):
    """The service without a yield: what it finds out, what that costs while it does, and what a second process of it has."""
    pool, extra = pool_of(bench), ("--iterations", str(calibrated(bench)))
    for a, low in lows.items():
        said = []

        def look():
            said.extend(client for client in bench.node.status() if client["yield"] == "auto" and client["level"])

        finding, rate = burst(bench, pool, ITSELF, low, extra, FIND_SECONDS, look)
        ways = {tenant.name: burst(bench, pool, tenant, low, extra) for tenant in (WHOLE, NEEDED, ITSELF)}
        whole, settled = (ways[tenant.name] for tenant in (WHOLE, ITSELF))
        told = ", ".join(f"{name} {result['median']:.0f}/{result['p99']:.0f} us and {of:.1f}/s" for name, (result, of) in ways.items())
        told += f"; while it finds out {finding['median']:.0f}/{finding['p99']:.0f} us and {rate:.1f}/s"
        found = said[0] if said else {"yieldFound": "?", "yieldTriedLaunches": 0, "yieldLostSeconds": 0, "launches": 1}
        bench.report.add(f"default, LOW={a}: it finds that this does", found["yieldFound"], baselines=f"medians, p99s, LOW's rates: {told}")
        for which in ("median", "p99"):
            bench.report.judge(f"default, LOW={a}: HIGH's {which} against whole", settled[0][which] / whole[0][which], BOUNDS["default, HIGH"])
            bench.report.judge(f"default, LOW={a}: the same, while it finds out", finding[which] / whole[0][which], BOUNDS["default, HIGH"])
        tried = 100 * found["yieldTriedLaunches"] / max(1, found["launches"])
        bench.report.judge(f"default, LOW={a}: launches tried with less", tried, BOUNDS["default, tried"], f"lost {found['yieldLostSeconds']:.3f} s at most")
        bench.report.add(f"default, LOW={a}: LOW's rate against whole", round(settled[1] / max(whole[1], 1e-9), 2), "x")


class Requests:
    """Requests of one way: the ms of each, without and with what HIGH's thread lost to the host; LOW's rates beside them."""

    def __init__(self):
        self.times, self.less, self.rates = [], [], []

    def take(self, client, seconds):
        client.tell("single", seconds, GAP_MS)
        answer = client.answer(seconds + 60)
        self.times += answer["ms"]
        self.less += [ms - lost for ms, lost in zip(answer["ms"], answer["lost_ms"])]

    def take_beside(self, pool, client, low, settle):
        around = Around(pool, low, settle + REQUESTS_SECONDS + AROUND)
        Requests().take(client, settle)
        with around:
            self.take(client, REQUESTS_SECONDS)
        self.rates.append(max(around.rate, 1e-9))

    @property
    def p99(self):
        return quantile(self.times, 0.99)

    @property
    def p99_less(self):
        return quantile(self.less, 0.99)


def network_clients(bench):
    """ResNet-50, batch 1, called eagerly: temporal, spatial."""
    argv = ["python3", str(PROGRAMS / "high.py"), "single"]
    return [bench.node.start("requests", argv, tenant.name, True, stdin=subprocess.PIPE) for tenant in (WHOLE, NEEDED)]


def network(bench, a, low, clients):
    """Requests of a network beside one LOW."""
    pool, what = pool_of(bench), "ResNet-50, batch 1"
    free, alone, both = beside(bench, "Weir", low, None)[1], Requests(), (Requests(), Requests())
    for turn in range(TURNS):
        alone.take(clients[0], REQUESTS_SECONDS)
        for client, way in zip(clients, both):
            compares = client is clients[1] and not turn
            way.take_beside(pool, client, low, REQUESTS_COMPARE if compares else REQUESTS_SETTLE)
    rates = [statistics.fmean(way.rates) for way in both]
    judge_service(bench, what, a, free, rates, [way.p99 / alone.p99 for way in both], BOUNDS["ResNet-50, p99"], BOUNDS["ResNet-50, LOW's rate"])
    temporal, spatial = (way.p99_less / alone.p99_less for way in both)
    told = f"temporal {temporal:.2f}x; n={len(both[1].times)}; medians, p99: " + ", ".join(
        f"{statistics.median(way.less):.2f}/{way.p99_less:.2f} of {statistics.median(way.times):.2f}/{way.p99:.2f} ms" for way in (alone, *both))  # fmt: skip
    bench.report.judge(f"{what}, LOW={a}, less what its thread lost: HIGH's p99 against alone", spatial, BOUNDS["ResNet-50, p99"], told)


def networks(bench, lows):
    clients = network_clients(bench)
    for client in clients:
        client.wait_ready()
    for a, low in lows.items():
        network(bench, a, low, clients)
    for client in clients:
        client.leave()


def few_beside_large(bench, lows, parts):
    """FLEP's pairs, the curves by SMs, or both."""
    pool, short = pool_of(bench), bench.node.simulated
    of = ("NN", "MD") if short else tuple(papers.FLEP)
    highs = {b: [trivial(pool, b, copy) for copy in ("", WHOLE.name, NEEDED.name)] for b in of}
    governed = [job for jobs in highs.values() for job in jobs[1 if PAIRS in parts else 2 :]]
    places = Places(bench)
    places.ensure(pool, "Weir", list(lows.values()), True)
    places.ensure(pool, "Weir", governed)
    leaving = sum(client["leavesPart"] for client in pool.clients(lows.values()))
    bench.report.holds("LOW may leave a part of the GPU", leaving == len(lows), f"{leaving} of {len(lows)} clients")
    if PAIRS in parts:
        with bench.report.guard(PAIRS):
            measure_pairs(bench, places, lows, highs)
    if CURVES in parts:
        with bench.report.guard(CURVES):
            sweep(bench, lows, {b: jobs[2] for b, jobs in highs.items()}, (1, 2) if short else SMS)
    pool.leave("Weir", governed)


def run(bench):
    pool, short = pool_of(bench), bench.node.simulated
    parts = bench.part_of(PARTS)
    few = PAIRS in parts or CURVES in parts
    lows = {a: papers.large(a) for a in LOWS[: 1 if short else None if few else SERVED]}
    pool.ensure("Weir", list(lows.values()))
    if few:
        with bench.report.guard("kernels of few blocks"):
            few_beside_large(bench, lows, parts)
    some = dict(list(lows.items())[:SERVED])
    with bench.report.guard("results of the others"):
        pool.leave("Weir", [low for a, low in lows.items() if a not in some])
    if SERVICE in parts:
        with bench.report.guard(SERVICE):
            few_blocks(bench, some)
    if DEFAULT in parts:
        with bench.report.guard(DEFAULT):
            by_itself(bench, some)
    if NETWORKS not in parts:
        return
    if not importlib.util.find_spec("torch") or short:
        bench.report.cut("no ResNet-50: PyTorch is not there")
    elif bench.seconds < REQUESTS_SECONDS:
        bench.report.cut("no ResNet-50: measurements are too short")
    else:
        networks(bench, some)
