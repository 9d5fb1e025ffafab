"""Servers that are event loops on the GPU, each busy a fifth of the time for TCP clients, and a batch job of a lower level."""

import contextlib
import pathlib
import statistics
import time

import plot
import ports
import sharing
import steal
import turnarounds
from bursts import HIGH
from experiment import MPS
from node import Tenant
from servers import quantile
from workers import SETTLE, Job, pool_of, progress

SERVICE = "matmul"  # of 256 x 256, as GLoop's
SERVERS, PART, SIMULATED_PART = 3, 0.2, 0.02
# Each server is a tenant of its own: they take turns, so the times that they have the GPU add up.
TENANTS = tuple(Tenant(f"server-{i}", HIGH) for i in range(SERVERS))
# With and without the batch job in turns, each first in every other pair. Requests of a pair come at the same random times.
PAIRS, SECONDS = 8, 2.6
WARM = 0.2  # seconds of a client that do not count: new connections
CONNECTIONS = 4  # of each server's client
REPORTED = 0.1  # seconds until the agent has counted what clients did
FITS, FURTHEST = 3, 2  # corrections of the rates; by what factor at most


def waited_ms(pids):
    """That threads of these processes could run and had no processor; a kernel may not tell."""
    files = [file for pid in pids for file in pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat")]
    ns = 0
    for file in files:
        with contextlib.suppress(OSError):  # it has ended
            ns += int(file.read_text().split()[1])
    return ns / 1e6


class Scene:
    """The servers, their clients and the batch job. @rates: requests a second to each server. @places: processors of the
    servers, the batch job, the clients and the agent; empty: they are not pinned."""

    def __init__(self, bench, stack):
        self.bench, self.pool, self.batch = bench, pool_of(bench), Job("euler", "large", copy=97)
        self.pool.set_policy("wfq", scheduling=sharing.scheduling(sharing.QUANTUM))
        self.pool.ensure("MPS", [self.batch])
        self.pool.ensure("Weir", [self.batch])
        self.seconds = sharing.short(bench, SECONDS)
        options = ports.blocks(bench, SERVICE)
        self.servers = [stack.enter_context(ports.serving(bench, SERVICE, "loop", True, tenant.name, **options)) for tenant in TENANTS]
        self.pin()
        self.rates = [self.first_rate(i) for i in range(SERVERS)]

    def pin(self):
        """Busy threads on one core would slow each other, with and without the batch job by chance."""
        self.places = ports.processors(2 * SERVERS + 2)
        everybody = [*(server for _, server in self.servers), self.pool.workers["Weir", self.batch].client]
        for client, place in zip(everybody, self.places):
            ports.pin(client, place)
        if self.places:
            ports.pin_process(self.bench.node.agent, self.places[-1])

    def first_rate(self, i):
        """By the GPU's time of a request to a server that has as many as it can take. The simulated one's says nothing."""
        before = self.gpu_seconds()[i]
        result = ports.ask(self.bench, SERVICE, self.servers[i][0], self.seconds / 2, CONNECTIONS)
        if self.bench.node.simulated:
            return SIMULATED_PART * result["requests_per_second"]
        return PART * result["requests"] / (self.gpu_seconds()[i] - before)

    def fit(self):
        """Corrects the rates by what the servers use together: with fewer requests at a time each takes longer."""
        for _ in range(FITS):
            before = self.gpu_seconds()
            self.requests(self.clients(0))
            used = self.used(before)
            print(f"    {self.shown_rates()}: {' + '.join(f'{100 * part:.1f}' for part in used)} %", flush=True)
            if not self.bench.node.simulated:
                wrong = (min(max(part / PART, 1 / FURTHEST), FURTHEST) for part in used)
                self.rates = [rate / factor for rate, factor in zip(self.rates, wrong)]

    def shown_rates(self):
        return f"{':'.join(f'{rate:.0f}' for rate in self.rates)} requests/s"

    def clients(self, seed):
        """Starts a client of each server. Returns when their connections are warm."""
        asking = [
            ports.start_asking(
                self.bench, SERVICE, port, WARM + self.seconds, CONNECTIONS, rate, seed=1 + seed * SERVERS + i, random=None, list=None
            )
            for i, ((port, _), rate) in enumerate(zip(self.servers, self.rates))
        ]
        for client, place in zip(asking, self.places[SERVERS + 1 :]):
            ports.pin(client, place)
        time.sleep(WARM)
        return asking

    def requests(self, clients):
        """Of each server."""
        results = [client.result(self.seconds + ports.TIMEOUT) for client in clients]
        return [ports.requests_of(result, WARM) for result in results]

    def settle(self):
        """Waits while libweir compares forms of the batch job's kernels, which it does once. True: that is done."""
        for _ in range(1 if self.bench.node.simulated else sharing.PIECES):
            self.pool.endless("Weir", [self.batch], sharing.short(self.bench, SETTLE))
            if not self.pool.tuning([self.batch]):
                return True
        return False

    def batch_rate(self):
        """The batch job's rate while clients ask, relative to its rate alone without libweir."""
        (ends,) = self.pool.endless("Weir", [self.batch], self.seconds)
        return progress(ends, self.seconds * 1e9) / self.seconds * self.pool.alone["MPS", self.batch] / 1e6

    def gpu_seconds(self):
        """Seconds that each server has been on the GPU so far."""
        time.sleep(REPORTED)
        known = {self.bench.node.identity_of(client): client["gpuSeconds"] for client in self.bench.node.status()}
        return [known[self.bench.node.identity(client)] for _, client in self.servers]

    def used(self, before):
        """The part of the GPU's time that each server had while clients asked once."""
        return [(now - then) / (WARM + self.seconds) for then, now in zip(before, self.gpu_seconds())]


class Pairs:
    """Requests of each server @alone and @beside the batch job, by window; of each window the batch job's part of the GPU,
    and each server's @used without it."""

    def __init__(self, scene):
        self.alone, self.beside, self.parts, self.used = [], [], [], []
        agent, servers = [scene.bench.node.agent.pid], [server.process.pid for _, server in scene.servers]
        before = [waited_ms(pids) for pids in (agent, servers)]
        with steal.Thefts(aside=scene.places) as thefts:
            for i in range(1 if scene.bench.node.simulated else PAIRS):
                for add in (self.add_alone, self.add_beside) if i % 2 == 0 else (self.add_beside, self.add_alone):
                    add(scene, i + 1)
        waited = [waited_ms(pids) - then for pids, then in zip((agent, servers), before)]
        self.thefts = thefts.of(scene.places)
        self.told = (
            f"{steal.shown(self.thefts)}; a thread that does nothing late by {1e3 * max(thefts.late, default=0):.1f} ms at most; "
            f"ready without a processor: the agent {waited[0]:.0f} ms, servers {waited[1]:.0f} ms; the agent's timers late by {scene.bench.node.timers_late():.0f} us on average"
        )

    def add_alone(self, scene, number):
        before = scene.gpu_seconds()
        self.alone.append(scene.requests(scene.clients(number)))
        self.used.append(scene.used(before))

    def add_beside(self, scene, number):
        clients = scene.clients(number)
        self.parts.append(scene.batch_rate())
        self.beside.append(scene.requests(clients))

    def part_of_each(self):
        return [statistics.fmean(parts) for parts in zip(*self.used)]


def p99_ratio(alone, beside):
    """Infinite: servers were so late that a side has no requests."""
    us = [[one.us for one in requests] for requests in (alone, beside)]
    return quantile(us[1], 0.99) / quantile(us[0], 0.99) if all(us) else float("inf")


def each_of(windows):
    """The requests to all servers in each window."""
    return [[one for requests in window for one in requests] for window in windows]


def slowest(requests, n=4):
    """In words: when they were due, since the first one, and how long they took."""
    begin = min(one.due for one in requests)
    slow = sorted(requests, key=lambda one: -one.us)[:n]
    return ", ".join(f"{one.due - begin:.3f} s: {one.us / 1e3:.1f} ms" for one in sorted(slow, key=lambda one: one.due))


def times(requests):
    us = [one.us for one in requests]
    return f"{quantile(us, 0.5):.0f}/{quantile(us, 0.9):.0f}/{quantile(us, 0.99):.0f} us (n={len(us)}), slowest {slowest(requests)}" if us else "none"


def show_times(bench, scene, pairs, bound, settled):
    """Returns the median of the pairs' ratios. Requests that a processor's theft overlaps count on neither side."""
    windows = [each_of(side) for side in (pairs.alone, pairs.beside)]
    left = [[steal.without(requests, pairs.thefts) for requests in side] for side in windows]
    each = [p99_ratio(*pair) for pair in zip(*left)]
    late, both, clean = statistics.median(each), *([sum(side, []) for side in sides] for sides in (windows, left))
    out = ", ".join(f"{len(every) - len(some)} of {len(every)}" for every, some in zip(both, clean))
    told = (
        f"{', '.join(f'{one:.3f}' for one in sorted(each))}; the requests of all pairs together {p99_ratio(*clean):.3f}x, with those of stolen time {p99_ratio(*both):.3f}x; "
        f"left out for stolen time {out}; alone {times(clean[0])}; beside {times(clean[1])}; {pairs.told}; processors {scene.places}"
    )
    if bench.mode != MPS and clean[0]:
        _, us = turnarounds.known_switches(bench)
        told += f"; {bound} where that is possible: the hardware takes {us:.0f} us from the batch job's kernel to a server's"
        bound = turnarounds.reachable(bench, bound, 1 + us / quantile([one.us for one in clean[0]], 0.99))
    what = f"{SERVERS} servers beside a batch job: p99 against without it, median of {len(pairs.parts)} times {scene.seconds:g} s of each"
    bench.report.judge(what, late, bound, told + ("" if settled else "; forms are not settled"))
    return late


def busy_periods(requests, seconds):
    """When one server after the other answered, each request at once and in @seconds: the servers of each period without a
    pause. @requests: of each server."""
    merged = sorted((one.due, i) for i, some in enumerate(requests) for one in some)
    periods, end = [], 0
    for due, server in merged:
        if due >= end:
            periods.append(set())
        periods[-1].add(server)
        end = max(end, due) + seconds
    return periods


def switches(windows, part):
    """Of an ideal, which switches once to each server of a busy period, and once back: switches a second, and busy periods a
    second, each of which interrupts the batch job. @part: of the GPU, that the servers use."""
    found = []
    for window in windows:
        dues = [one.due for some in window for one in some]
        if not dues:
            continue
        length = max(dues) - min(dues) or 1
        periods = busy_periods(window, part * length / len(dues))
        found.append((sum(len(servers) + 1 for servers in periods) / length, len(periods) / length))
    return [statistics.fmean(of) for of in zip(*found)] or [0, 0]


def show_batch(bench, scene, pairs, bound):
    """Returns the batch job's part of the GPU."""
    used, part = sum(pairs.part_of_each()), statistics.fmean(pairs.parts)
    told = f"{100 * part:.1f} % of its rate alone; the servers have {100 * used:.1f} % of the GPU without it"
    rest = max(1e-3, 1 - used)
    if bench.mode != MPS:
        (idle, busy), (rate, periods) = turnarounds.known_switches(bench), switches(pairs.beside, used)
        ideal = max(0, 100 * (1 - (rate * idle + periods * (busy - idle)) / 1e6 / rest))
        told += f"; {bound} where nothing is lost: an ideal has {rate:.0f} switches/s of {idle:.0f} us, of which {periods:.0f}/s take the GPU from a running kernel, in {busy:.0f} us, and {ideal:.1f} % of the rest"
        bound = turnarounds.reachable(bench, bound, ideal)
    bench.report.judge("the batch job's part of the rest", 100 * part / rest, bound, told)
    return part


def show_load(bench, scene, pairs, bound):
    parts = pairs.part_of_each()
    off = max(abs(100 * (part - PART)) for part in parts)
    told = f"{' + '.join(f'{100 * part:.1f}' for part in parts)} = {100 * sum(parts):.1f} % of the GPU's time, as the agent says; {scene.shown_rates()}"
    bench.report.judge(f"{SERVERS} servers without the batch job: furthest from {100 * PART:.0f} % each", off, bound, told)


def run(bench, bounds):
    """Servers beside a batch job, as in GLoop's figures 13 and 14."""
    turnarounds.known_switches(bench)
    with contextlib.ExitStack() as stack:
        scene = Scene(bench, stack)
        scene.requests(scene.clients(0))  # connections, memory: the first requests to each server take longer
        settled = scene.settle()
        idle = 100 * scene.batch_rate() / (scene.pool.alone["MPS", scene.batch] / scene.pool.alone["Weir", scene.batch])
        bench.report.judge(f"a batch job beside {SERVERS} idle servers, of its rate alone", idle, bounds["beside idle servers"])
        scene.fit()
        pairs = Pairs(scene)
    show_load(bench, scene, pairs, bounds["a server's part"])
    late = show_times(bench, scene, pairs, bounds["servers' p99"], settled)
    part = show_batch(bench, scene, pairs, bounds["the batch job's part"])
    if bench.plots:
        series = {"alone": [100, 100], "together": [100 * late, 100 * part], "idle servers": [0, idle]}
        title = "Servers beside a batch job (GLoop fig. 13, 14)"
        plot.bars(bench.plots / f"{bench.report.experiment}.svg", title, "%", ["servers' p99", "the batch job"], series)
    sharing.leave(scene.pool, [scene.batch])
