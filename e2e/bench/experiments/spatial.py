"""HIGH launches kernels of a few blocks above LOW's large ones. LOW leaves the whole GPU (temporal preemption, `yield:
whole`), or only what HIGH needs (spatial, `yield: needed`): places of blocks that end, for short kernels, or SMs.
First the trivial kernels of FLEP at a steady pace; then the same with more and more SMs left to them; then a
service: bursts of a 20-block kernel, and ResNet-50."""

import importlib.util
import statistics
import subprocess
import time

import papers
import plot
import ports
from experiment import PROGRAMS
from node import Tenant
from report import at_least, at_most
from servers import length, quantile
from workers import DEPTH, LEAD, MS, SLOTS, Job, pool_of, progress

SHOWS = "kernels of a few blocks above large ones: LOW leaves the SMs that they need, or the whole GPU"
PAPER = "FLEP figures 15, 16"
BOUNDS = {
    "less overhead, mean": at_least(31), "less overhead, best": at_least(41), "HIGH's time, mean": at_most(1.03),
    "needed against the best": at_most(1.03), "20 blocks, p99": at_most(1.1), "20 blocks, LOW's rate": at_least(1.3, "x"),
    "ResNet-50, p99": at_most(1.1), "ResNet-50, LOW's rate": at_least(1.3, "x"),
}  # fmt: skip
BASELINES = ("LOW alone", "HIGH alone", "MPS", "temporal preemption")
WAYS = "MPS", "temporal", "spatial"
NEEDS = ("gpu", "mps", "root")
SIMULATED = True

WHOLE, NEEDED = Tenant("leave-whole", "high"), Tenant("leave-needed", "high", yields="needed")
TENANTS = (*SLOTS, WHOLE, NEEDED)
PARTS = PAIRS, CURVES, SERVICE, NETWORKS = "pairs", "curves", "service", "networks"  # of --parts

TRIVIAL_US = 1  # a mark in a job: one pass, however long it takes
EVERY_MS, SECONDS = 0.4, 0.3  # from one launch of HIGH to the next; of a measurement
SETTLE = 0.15  # seconds before that: LOW finds out by looking what HIGH needs, and launches that it had queued end;
COMPARES = 0.6  # and HIGH finds out what is the fastest for it, if LOW is to leave what it needs
TAILS = 0.1  # of HIGH's times: the shortest and the longest that do not count
LOWS = tuple(papers.FLEP)  # each beside each other one
SERVED = 2  # of these, as many run below the services
SHOWN = (("NN", "PF"), ("MD", "CFD"))  # HIGH, LOW: of the curve
SMS, ALL = (5, 10, 40), 132  # left to HIGH; those of an H100 or H200, which is temporal preemption
POINT, POINT_SETTLE = 0.15, 0.1  # seconds of a measurement of the curve; before that
AGAIN = 4  # further measurements of `needed` and the best point, where `needed` misses the bound
CLEAR = 1.25  # `needed` against the best: chance makes no such difference, and nothing is measured again
SWEEP_SECONDS = 240  # of all curves: no further pair is begun later
BLOCKS, BLOCKS_US = 20, 175  # of the service's kernel
BLOCKS_SECONDS, WARM_UP = 2.5, 200  # of a measurement; requests of it that do not count, while HIGH finds out what is the fastest for it
GAP_MS, REQUESTS_SECONDS, TURNS = 8, 1.0, 6  # of requests: alone and in each way, in turns, since the host varies
REQUESTS_COMPARE, REQUESTS_SETTLE = 3.5, 0.3  # before the first spatial ones: HIGH finds out whether a part of the SMs will do; before others
AROUND = 0.5  # seconds of LOW's work behind the service beside it


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


def trivial(pool, name, tenant="", sms=0):
    workload, kernel, *_ = papers.FLEP[name]
    pool.passes[kernel, TRIVIAL_US] = 1
    return Job(workload, size="trivial", tenant=tenant, kernel=kernel, us=TRIVIAL_US, sms=sms, brief=True)


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


def curve(bench, low, jobs, whole):
    """HIGH's time by the SMs that LOW leaves, a dict as @jobs. `needed` and @whole are of one client: others differ by a tenth
    whatever they ask for. The best of several times is low by chance: where `needed` misses the bound by little, it and the best
    are measured again, in turn."""
    def point(name, settle=POINT_SETTLE):
        if name in ("needed", whole):
            ask_for(bench, jobs[name], "whole" if name == whole else "needed")
        return beside(bench, "Weir", low, jobs[name], POINT, settle)[0]

    times = {name: point(name, POINT_SETTLE + COMPARES * (name == "needed")) for name in jobs}
    best = min(times, key=times.get)
    if BOUNDS["needed against the best"].limit < times["needed"] / times[best] < CLEAR:
        again = [(point(best), point("needed")) for _ in range(AGAIN)]
        times |= dict(zip((best, "needed"), map(statistics.fmean, zip(*again))))
    ask_for(bench, jobs["needed"], "needed")
    return times


def curves_of(bench, lows, b, jobs, whole, until, curves):
    """The curves of one HIGH beside each LOW, into @curves; none is begun after the time @until. Each is reported at once."""
    for a, low in lows.items():
        if a == b or time.monotonic() > until:
            continue
        times = curves[a, b] = curve(bench, low, jobs, whole)
        bench.report.add(f"{a}_{b}: needed against the best number of SMs", round(times["needed"] / min(times.values()), 3), "x",
                         baselines=", ".join(f"{of} {us:.1f} us" for of, us in times.items()))  # fmt: skip


def sweep(bench, places, lows, highs, sms, whole):
    """As in FLEP's figure 16, each pair. @highs: HIGH to its jobs: plain, `whole`, `needed`. @whole: the GPU's SMs.
    Clients that ask for a number of SMs are there for one HIGH at a time: MPS keeps some of very many waiting."""
    pool, curves, until = pool_of(bench), {}, time.monotonic() + SWEEP_SECONDS
    try:
        for b in sorted(highs, key=lambda b: b not in dict(SHOWN)):
            several = {n: trivial(pool, b, NEEDED.name, n) for n in sms}
            places.ensure(pool, "Weir", list(several.values()))
            curves_of(bench, lows, b, {whole: highs[b][2], "needed": highs[b][2]} | several, whole, until, curves)
            pool.leave("Weir", list(several.values()))
    finally:
        asked = sum(a != b for a in lows for b in highs)
        if len(curves) < asked:
            bench.report.cut(f"the curves of {len(curves)} of {asked} pairs; none is begun after {SWEEP_SECONDS} s")
        if curves:
            judge_curves(bench, curves, sorted([*sms, whole]), whole)


def judge_curves(bench, curves, by_sms, whole):
    """@curves: (LOW, HIGH) to HIGH's time by SMs."""
    ratios = {pair: times["needed"] / min(times.values()) for pair, times in curves.items()}
    bound = BOUNDS["needed against the best"]
    within, worst = sum(ratio <= bound.limit for ratio in ratios.values()), max(ratios, key=ratios.get)
    told = f"{within} of {len(ratios)} pairs within; mean {statistics.fmean(ratios.values()):.3f}x; worst {'_'.join(worst)}"
    bench.report.judge("needed against the best number of SMs, the worst pair", ratios[worst], bound, told)
    if bench.plots:
        shown = {f"{a}_{b}": [times["needed"] / times[n] for n in by_sms] for (a, b), times in curves.items() if (b, a) in SHOWN}
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


def burst(bench, pool, tenant, low, extra):
    """The result of bursts of few blocks, and LOW's rounds a second beside them; @low: None: alone."""
    seconds = length(bench, BLOCKS_SECONDS)
    blocks, warm_up = (2, 0) if bench.node.simulated else (BLOCKS, WARM_UP)
    extra = ("--size", str(blocks), "--warm-up", str(warm_up), "--gap-min-us", "1000", "--gap-max-us", "2000", *extra)
    client = bench.node.start("burst", bench.burst_argv(1 << 40, seconds, extra), tenant.name, True)
    client.wait_ready()
    if not low:
        return client.result(), 0
    with Around(pool, low, seconds + AROUND) as around:
        result = client.answer(seconds + 60)
    client.wait_end(60)
    return result, around.rate


def judge_service(bench, what, low, alone, rates, p99s, bound_p99, bound_rate):
    """@rates, @p99s: temporal, spatial."""
    shown = f"alone {alone:.1f}/s, temporal {rates[0]:.1f}/s, spatial {rates[1]:.1f}/s"
    bench.report.judge(f"{what}, LOW={low}: HIGH's p99 against alone", p99s[1], bound_p99, f"temporal {p99s[0]:.2f}x")
    bench.report.judge(f"{what}, LOW={low}: LOW's rate against temporal", rates[1] / rates[0], bound_rate, shown)


def few_blocks(bench, lows):
    """A service with a kernel of BLOCKS blocks: each launched, and a request's kernels in a graph."""
    pool, iterations = pool_of(bench), 16
    if not bench.node.simulated:
        argv = [bench.node.program("burst"), "--gpu", "--size", str(BLOCKS), "--calibrate", "--length-us", str(BLOCKS_US)]
        iterations = int(bench.node.start("calibrate", argv, WHOLE.name, False).result())
    free = {a: beside(bench, "Weir", low, None)[1] for a, low in lows.items()}
    for what, graph in ((f"{BLOCKS} blocks", ()), (f"{BLOCKS} blocks in a graph", ("--replays",))):
        extra = ("--iterations", str(iterations), *graph)
        alone, _ = burst(bench, pool, NEEDED, None, extra)
        for a, low in lows.items():
            both = [burst(bench, pool, tenant, low, extra) for tenant in (WHOLE, NEEDED)]
            p99s = [result["p99"] / alone["p99"] for result, _ in both]
            rates = [max(rate, 1e-9) for _, rate in both]
            judge_service(bench, what, a, free[a], rates, p99s, BOUNDS["20 blocks, p99"], BOUNDS["20 blocks, LOW's rate"])


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
    governed = [job for jobs in highs.values() for job in jobs[1:]]
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
            sweep(bench, places, lows, highs, *(((1,), 2) if short else (SMS, ALL)))
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
    if NETWORKS not in parts:
        return
    if not importlib.util.find_spec("torch") or short:
        bench.report.cut("no ResNet-50: PyTorch is not there")
    elif bench.seconds < REQUESTS_SECONDS:
        bench.report.cut("no ResNet-50: measurements are too short")
    else:
        networks(bench, some)
