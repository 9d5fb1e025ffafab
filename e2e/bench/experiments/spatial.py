"""HIGH launches kernels of a few blocks above LOW's large ones. LOW leaves the whole GPU (temporal preemption, `yield:
whole`), or only what HIGH needs (spatial, `yield: needed`): places of blocks that end, for short kernels, or SMs.
First the trivial kernels of FLEP at a steady pace; then the same with more and more SMs left to them; then a
service: bursts of a 20-block kernel, and ResNet-50. At last the same bursts of a pod that asks for neither: it finds out
by itself which of both does, and the next process of it knows."""

import datetime
import importlib.util
import pathlib
import statistics
import subprocess
import time

import losses
import papers
import plot
import ports
from experiment import PROGRAMS
from node import Failure, Tenant
from report import at_least, at_most
from servers import length, quantile
from sweep import COMPARES, EVERY_MS, Sweep, typical
from workers import DEPTH, LEAD, MS, SLOTS, Job, pool_of, progress

SHOWS = "kernels of a few blocks above large ones: LOW leaves the SMs that they need, or the whole GPU"
PAPER = "FLEP figures 15, 16"
BOUNDS = {
    "less overhead, mean": at_least(31), "less overhead, best": at_least(41), "HIGH's time, mean": at_most(1.03),
    "needed against the best": at_most(1.03), "20 blocks, p99": at_most(1.1), "20 blocks, LOW's rate": at_least(1.3, "x"),
    "ResNet-50, p99": at_most(1.1), "ResNet-50, LOW's rate": at_least(1.3, "x"),
    "default, HIGH": at_most(1.03), "default, tried": at_most(1.0, " %"),
}  # fmt: skip
BASELINES = ("LOW alone", "HIGH alone", "MPS", "MPS with stream priority", "temporal preemption")
NEEDS = ("gpu", "mps", "root")
SIMULATED = True

WHOLE, NEEDED = Tenant("leave-whole", "high", yields="whole"), Tenant("leave-needed", "high", yields="needed")
ITSELF = Tenant("finds-out", "high")
TENANTS = (*SLOTS, WHOLE, NEEDED, ITSELF)
PARTS = PAIRS, CURVES, SERVICE, NETWORKS, DEFAULT = "pairs", "curves", "service", "networks", "default"  # of --parts

TRIVIAL_US = 1  # a mark in a job: one pass, however long it takes
SECONDS = 0.3  # of a measurement
SETTLE = 0.15  # seconds before that: LOW finds out by looking what HIGH needs, and launches that it had queued end
LITTLE = 0.05  # less of a loss
LOWS = tuple(papers.FLEP)  # each beside each other one
SERVED = 2  # of these, as many run below the services
SHOWN = (("NN", "PF"), ("MD", "CFD"))  # HIGH, LOW: of the curve
PAIRS_OF_FLEP = len(LOWS) * (len(LOWS) - 1)
SMS = 5, 10, 40, 132  # left to HIGH; an H100 or H200 has 132
SWEEP_SECONDS = 400  # of all curves: no further pair is begun later
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


def beside(bench, mode, low, high, seconds=SECONDS, settle=SETTLE, priority=0):
    """HIGH's times in us (none: no HIGH) and LOW's rounds a second, both at work for @settle and then @seconds. @priority: of HIGH's
    stream."""
    settle = settle if high and mode == "Weir" and not bench.node.simulated else 0
    seconds = length(bench, seconds)
    begin, end = settle * 1e9, (settle + seconds) * 1e9
    rounds = [(high, ("rounds", 0, int(EVERY_MS * MS), int(end / EVERY_MS / MS), priority))] if high else []
    answers = pool_of(bench).ask(mode, [(low, ("endless", 0, int(end), DEPTH, 0)), *rounds], settle + seconds)
    rate = (progress(answers[0]["ends"], end) - progress(answers[0]["ends"], begin)) / seconds
    return [(done - launch) / 1e3 for launch, done in answers[1]["rounds"] if launch >= begin] if high else [], rate


def pair(bench, low, jobs, alone, plain):
    """@jobs: HIGH, as a client without Weir, one that wants the whole GPU, and one that asks for what it needs."""
    found = {
        losses.MPS: beside(bench, "MPS", low, jobs[0]),
        losses.PRIORITY: beside(bench, "MPS", low, jobs[0], priority=1),
        losses.TEMPORAL: beside(bench, "Weir", low, jobs[1]),
        losses.SPATIAL: beside(bench, "Weir", low, jobs[2], settle=SETTLE + COMPARES),
    }
    late = [way for way, (times, _) in found.items() if not times]
    if late:
        raise Failure(f"{low} and {jobs[0]}: no launches, {', '.join(late)}")
    each = {way: (typical(times), quantile(times, 0.99), rate) for way, (times, rate) in found.items()}
    return losses.Seen(*(dict(zip(each, column)) for column in zip(*each.values())), alone, plain)


def pairs(bench, places, lows, highs):
    """Yields (LOW, what is seen of each pair, by HIGH). Each pair is reported at once. Without Weir one LOW is there at a time: a
    server has 48 clients at most."""
    pool = pool_of(bench)
    places.ensure(pool, "MPS", [jobs[0] for jobs in highs.values()])
    for a, low in lows.items():
        places.ensure(pool, "MPS", [low], True)
        plain, alone = beside(bench, "MPS", low, None)[1], beside(bench, "Weir", low, None)[1]
        rows = {}
        for b, jobs in highs.items():
            if b == a:
                continue
            seen = rows[b] = pair(bench, low, jobs, alone, plain)
            told = ", ".join(f"{way} {seen.typical[way]:.0f}/{seen.p99[way]:.0f} us and {100 * seen.loss(way):.1f} %" for way in losses.WAYS)
            bench.report.add(f"{a}_{b}: LOW's loss, spatial", round(100 * seen.loss(losses.SPATIAL), 1), " %", baselines=f"HIGH's time, p99 and LOW's loss: {told}")
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
        bench.report.cut(f"a loss is of LOW's rate while HIGH launches each {EVERY_MS:g} ms, FLEP's is of one preemption; pairs without time-slicing and slices")
        if len(found) < len(lows):
            bench.report.cut(f"the pairs of {len(found)} of {len(lows)} LOWs")
        if found:
            judge_losses(bench, found)
            judge_times(bench, {f"{a}_{b}": seen for a, rows in found.items() for b, seen in rows.items()})


def judge_losses(bench, found):
    """@found: what is seen of a pair, by LOW and HIGH. As in FLEP's figure 15: the mean over all HIGH, for each LOW."""
    lost = {a: {way: statistics.fmean(100 * seen.overhead(way) for seen in rows.values()) for way in losses.WAYS} for a, rows in found.items()}
    less = {a: losses.less(rows.values(), losses.Seen.overhead) for a, rows in found.items()}
    all_pairs = [seen for rows in found.values() for seen in rows.values()]
    told = "; ".join(f"{a}: " + ", ".join(f"{way} {of[way]:.1f} %" for way in losses.WAYS) for a, of in lost.items())
    bench.report.judge("overhead of spatial against temporal preemption: less, mean", statistics.fmean(less.values()), BOUNDS["less overhead, mean"], told)
    best = max(less, key=less.get)
    bench.report.judge(f"the same, best: {best}", less[best], BOUNDS["less overhead, best"])
    for what, loss in (("a LOW that is faster beside HIGH has a negative overhead", losses.Seen.loss), ("against LOW without Weir", losses.Seen.native_loss)):
        other = {a: losses.less(rows.values(), loss) for a, rows in found.items()}
        told = ", ".join(f"{a} {part:.1f} %" for a, part in other.items())
        bench.report.add(f"overhead of spatial against temporal preemption, {what}: less, mean", round(statistics.fmean(other.values()), 1), " %", baselines=told)
    few = sum(seen.overhead(losses.TEMPORAL) - seen.overhead(losses.SPATIAL) < LITTLE * seen.overhead(losses.TEMPORAL) for seen in all_pairs)
    bench.report.add(f"pairs that lose less than {100 * LITTLE:.0f} % less", f"{few} of {len(all_pairs)}")
    if bench.plots:
        series = {way: [lost[a][way] for a in lost] for way in (losses.TEMPORAL, losses.SPATIAL)}
        plot.bars(bench.plots / f"{bench.report.experiment}.svg", "Overhead of preemption (FLEP fig. 15)", "%", list(lost), series)


def judge_times(bench, found):
    """@found: what is seen of each pair, by its name."""
    slower, late = ({pair: seen.slower(times(seen)) for pair, seen in found.items()} for times in (lambda seen: seen.typical, lambda seen: seen.p99))
    worst, bound = max(slower, key=slower.get), BOUNDS["HIGH's time, mean"]
    told = ", ".join(f"{way} {found[worst].typical[way]:.0f} us" for way in losses.WAYS)
    above = sum(not bound.allows(ratio) for ratio in slower.values())
    told = f"{above} of {len(slower)} pairs above it, worst {worst} {slower[worst]:.3f}x: {told}; times without both tenths"
    bench.report.judge("HIGH's time, spatial against temporal, mean", statistics.fmean(slower.values()), bound, f"{told}; spatial counts {SETTLE + COMPARES:g} s after the begin")
    worst = max(late, key=late.get)
    bench.report.add("HIGH's p99, spatial against temporal, mean", round(statistics.fmean(late.values()), 3), "x", baselines=f"worst {worst} {late[worst]:.2f}x")


def measure_curves(bench, lows, highs, numbers):
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
    within, worst = sum(map(bound.allows, ratios.values())), max(ratios, key=ratios.get)
    spreads = [found.spread for found in curves.values() if found.spread]
    told = f"{within} of {len(ratios)} pairs within, of {PAIRS_OF_FLEP}; mean {statistics.fmean(ratios.values()):.3f}x; worst {'_'.join(worst)}"
    told += f"; several measurements of a point differ by {max(spreads):.2f}x at most, {statistics.fmean(spreads):.2f}x on average" if spreads else ""
    bench.report.judge("needed against the best number of SMs, the worst pair", ratios[worst], bound, told)
    if bench.plots:
        shown = {f"{a}_{b}": [found.times["needed"] / found.times[n] for n in by_sms] for (a, b), found in curves.items() if (b, a) in SHOWN}
        plot.lines(bench.plots / f"{bench.report.experiment}-sms.svg", "HIGH's speed-up by SMs left to it (FLEP fig. 16)", "x", by_sms, shown)


class Around:
    """LOW at work, and its rate while the body of a `with` statement runs."""

    def __init__(self, pool, low, seconds, mode="Weir"):
        self.low, self.seconds, self.rate = pool.workers[mode, low].client, seconds, 0
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


def start_burst(bench, tenant, extra, seconds, weir=True):
    """A client that sends bursts of few blocks, and its log."""
    blocks, warm_up = (2, 0) if bench.node.simulated else (BLOCKS, WARM_UP if weir else 0)
    log = pathlib.Path(ports.files(bench)) / f"{tenant.name}-{time.monotonic_ns()}.log"
    extra = ("--size", str(blocks), "--warm-up", str(warm_up), "--gap-min-us", "1000", "--gap-max-us", "2000", "--log", str(log), *extra)
    client = bench.node.start("burst", bench.burst_argv(1 << 40, seconds, extra), tenant.name, weir)
    client.wait_ready()
    return client, log


def burst(bench, pool, tenant, low, extra, seconds=BLOCKS_SECONDS, at_end=None):
    """The result of bursts of few blocks, and LOW's rounds a second beside them; @low: None: alone. @at_end: while they end."""
    seconds = length(bench, seconds)
    client, log = start_burst(bench, tenant, extra, seconds)
    if not low:
        return client.result() | {"slowest": slowest(log)}, 0
    with Around(pool, low, seconds + AROUND) as around:
        if at_end:
            time.sleep(0.9 * seconds)
            at_end()
        result = client.answer(seconds + 60)
    client.wait_end(60)
    return result | {"slowest": slowest(log)}, around.rate


def burst_without_weir(bench, pool, low, extra):
    """The same under MPS, HIGH with stream priority. Nothing is to be found out, so all requests count."""
    pool.ensure("MPS", [low])
    seconds = length(bench, BLOCKS_SECONDS)
    client, _ = start_burst(bench, WHOLE, (*extra, "--priority"), seconds, False)
    with Around(pool, low, seconds + AROUND, "MPS") as around:
        result = client.answer(seconds + 60)
    client.wait_end(60)
    pool.leave("MPS", [low])
    return result, around.rate


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
        for a, low in lows.items():
            alone, _ = burst(bench, pool, NEEDED, None, extra)
            both = [burst(bench, pool, tenant, low, extra) for tenant in (WHOLE, NEEDED)]
            p99s = [result["p99"] / alone["p99"] for result, _ in both]
            rates = [max(rate, 1e-9) for _, rate in both]
            plain, plain_rate = burst_without_weir(bench, pool, low, extra)
            told = f", {losses.PRIORITY} {plain['p99'] / alone['p99']:.2f}x and LOW's rate {plain_rate:.1f}/s"
            told += f"; {WARM_UP} requests before that do not count; us of {both[1][0]['requests']} requests: "
            told += f"alone {alone['median']:.0f}/{alone['p99']:.0f}, the slowest {both[1][0]['slowest']}"
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
    told = f"temporal {temporal:.2f}x; spatial counts {REQUESTS_COMPARE:g} s after its begin; n={len(both[1].times)}; medians, p99: " + ", ".join(
        f"{statistics.median(way.less):.2f}/{way.p99_less:.2f} of {statistics.median(way.times):.2f}/{way.p99:.2f} ms" for way in (alone, *both))  # fmt: skip
    bench.report.judge(f"{what}, LOW={a}, less what its thread lost: HIGH's p99 against alone", spatial, BOUNDS["ResNet-50, p99"], told)


def networks(bench, lows):
    bench.report.cut("ResNet-50 above PTX kernels without MPS with stream priority: `min-rate` has it, above a training step")
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
            measure_curves(bench, lows, {b: jobs[2] for b, jobs in highs.items()}, (1, 2) if short else SMS)
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
        bench.report.cut("services without plain MPS, time-slicing and slices")
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
