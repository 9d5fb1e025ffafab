"""Event loops beside others: their shares of the GPU and how soon they leave it; three servers with TCP clients, each busy
a fifth of the time, beside a batch job; and a key-value store against one on the CPU."""

import contextlib
import dataclasses
import statistics
import time

import faults
import loops
import plot
import ports
import sharing
import turnarounds
from bursts import HIGH, LOW
from endless import Stolen
from experiment import MPS
from report import at_least, at_most
from servers import quantile
from workers import LEAD, SETTLE, SLOTS, Job, Worker, pool_of, progress

SHOWS = "event loops and ordinary kernels share the GPU; servers on the GPU beside a batch job; a key-value store"
PAPER = "GLoop figures 9 to 14"
BOUNDS = {
    "furthest from a share": at_most(sharing.LIMIT, " points"), "leaves within, p99": at_most(60, " us"),
    "servers' p99": at_most(1.05), "the batch job's part": at_least(95), "beside idle servers": at_least(99), "beside slow clients": at_most(1.5),
}  # fmt: skip
PRINTED = ("key-value store",)  # figures without a bound, also in RESULTS.md
BASELINES = ("each alone", "servers without the batch job", "a server on the CPU", "kernels that the CPU launches")
NEEDS = ("gpu", "mps", "root")
SIMULATED = True
TENANTS = SLOTS
MODES = ("mps", "timeslice")

KERNEL_US = 500  # of the ordinary client
# At a multiple of the kernel's length turns end with a kernel that is nearly done. It is not evicted, and runs beside the loop:
# parts add up to 122 % at 500 us, to 104 % at 750 us, and the loop is the slower one of the two meanwhile.
QUANTUM_US = 3 * KERNEL_US // 2
WINDOWS = {"mps": ((0.2, 10),), "timeslice": ((0.2, 15), (1.0, 3))}  # seconds and how many
LONG = 1.0  # seconds: shorter windows are judged by what slices allow
SLICE = 0.01  # seconds: the mean of the hardware's slices (agent/hardware/slices.h)
TARGET = 66  # hundredths
SERVERS, SERVER_PART = 3, 0.2
# With and without the batch job in turns, each first in every other pair. The median of the pairs' ratios counts: what disturbs
# the machine for a moment is in few pairs.
PAIRS, PAIR_SECONDS = 15, 1.2
WARM = 0.2  # seconds of a client that do not count: new connections
ENDLESS = 600  # seconds; they are stopped
CONNECTIONS = 4  # of each server's client
REPORTED = 0.1  # seconds until the agent has counted what clients did
STORE_CONNECTIONS = 64


@dataclasses.dataclass(frozen=True)
class Throttle:
    """A loop of nothing but scheduling points, for the pool's policy."""

    number: int


def scheduling(quantum):
    return f"scheduling: {{quantum: {quantum}, minQuantum: {quantum}}}\n"


class Shared:
    """Throttles and an ordinary client, all with Weir."""

    def __init__(self, bench, n):
        self.bench, self.pool = bench, pool_of(bench)
        self.throttles = [Throttle(i) for i in range(n)]
        self.job = Job("md5-search", copy=98, kernel="md5_search", us=KERNEL_US)
        self.pool.set_policy("wfq", scheduling=scheduling(f"{QUANTUM_US}us"))
        self.pool.ensure("MPS", [self.job])
        self.pool.ensure("Weir", [self.job])

    def start(self, throttle):
        tenant = self.pool.slots.pop(0)
        argv = ports.argv_of(self.bench, "loop-throttle", way="look", samples=500, seconds=ENDLESS)
        client = self.bench.node.start("throttle", argv, tenant, True, mps=ports.under_mps(self.bench, True))
        self.pool.workers["Weir", throttle] = Worker(client, tenant)
        client.wait_ready()
        return client

    def end(self, throttle):
        """Stops it. Returns its progress: points by time, in seconds."""
        worker = self.pool.workers.pop(("Weir", throttle))
        worker.client.stop()
        samples = worker.client.result(60)["samples"]
        self.pool.slots.append(worker.tenant)
        return loops.Progress([(ns / 1e9, points) for ns, points in samples])

    def alone(self):
        """Points a second of one throttle."""
        seconds = sharing.short(self.bench, 1.0)
        self.start(self.throttles[0])
        begin = time.monotonic() + 0.2
        time.sleep(seconds + 0.3)
        return self.end(self.throttles[0]).rate(begin, begin + seconds) or 1.0  # of a busy machine

    def run(self, shares, rate):
        """By the length of windows, a row for each window: the throttles' parts of the GPU in per cent, then the ordinary
        client's."""
        windows = ((0.2, 2),) if self.bench.node.simulated else WINDOWS[self.bench.mode]
        seconds = sharing.SKIPPED + max(window * n for window, n in windows)
        for throttle in self.throttles:
            self.start(throttle)
        everybody = [*self.throttles, self.job]
        self.pool.set_policy("wfq", dict(zip(everybody, shares)), scheduling(f"{QUANTUM_US}us"))
        begin = time.monotonic_ns() + LEAD
        client = self.pool.workers["Weir", self.job].client
        depth = self.pool.depth(self.job, 0 if self.bench.mode == MPS else sharing.QUEUED_US)
        client.tell("endless", begin, begin + int(seconds * 1e9), depth, 0)
        ends = client.answer(seconds + 60)["ends"]
        found = [self.end(throttle) for throttle in self.throttles]

        def row(at, window):
            parts = [one.rate(begin / 1e9 + at, begin / 1e9 + at + window) / rate for one in found]
            done = progress(ends, (at + window) * 1e9) - progress(ends, at * 1e9)
            parts.append(done * self.pool.alone["Weir", self.job] / (window * 1e6))
            return [100 * part / (sum(parts) or 1) for part in parts]

        return {window: [row(sharing.SKIPPED + i * window, window) for i in range(n)] for window, n in windows}


def draw_shares(bench, shares, window, rows):
    """As in GLoop's figures 9 and 10."""
    if not bench.plots:
        return
    names = [f"loop, {share}" for share in shares[:-1]] + [f"kernels, {shares[-1]}"]
    names = [f"{name} ({i + 1})" for i, name in enumerate(names)]
    path = bench.plots / f"{bench.report.experiment}-shares-{'-'.join(map(str, shares))}.svg"
    series = {name: [row[i] for row in rows] for i, name in enumerate(names)}
    plot.lines(path, "Shares of loops and kernels (GLoop fig. 9, 10)", "%", [i * window for i in range(len(rows))], series)


def ideal_off(shares, window):
    """How far a part is off in a window if the hardware shares ideally by slices: a window ends anywhere in a cycle of all
    slices."""
    cycle = SLICE * len(shares)
    parts = [share / sum(shares) for share in shares]
    return 100 * max(part * (1 - part) * cycle / window for part in parts)


def show_shares(bench, n, rate, shared):
    for shares in ([100 // (n + 1)] * (n + 1), [TARGET, *[round((100 - TARGET) / n)] * n]):
        what, wanted = f"{n} loops and a client with kernels, {':'.join(map(str, shares))}", sharing.targets(shares)
        for window, rows in shared.run(shares, rate).items():
            off = max(abs(part - want) for row in rows for part, want in zip(row, wanted))
            for row in rows:
                print(f"    {':'.join(f'{part:.2f}' for part in row)}", flush=True)
            draw_shares(bench, shares, window, rows)
            mean = ":".join(f"{sum(row[i] for row in rows) / len(rows):.1f}" for i in range(n + 1))
            bound = BOUNDS["furthest from a share"]
            if window < LONG:
                bound = turnarounds.reachable(bench, bound, ideal_off(shares, window))
            told = f"{mean}; kernels of {KERNEL_US} us, quantum {QUANTUM_US} us"
            bench.report.judge(f"{what}: furthest from a share, {window * 1e3:.0f} ms windows", off, bound, told)


def shares(bench):
    pool = pool_of(bench)
    for n in (1,) if bench.node.simulated else (1, 3):
        shared = Shared(bench, n)
        show_shares(bench, n, shared.alone(), shared)
    sharing.leave(pool, [shared.job])


def single_kernels(bench):
    argv = bench.burst_argv(max(200, int(90 * bench.seconds)), seconds=3 * bench.seconds, extra=("--kernels", "1"))
    return bench.node.start("burst", argv, HIGH, True, mps=ports.under_mps(bench, True)).result()


@contextlib.contextmanager
def leaving(bench, program, **options):
    """A loop that says how soon it leaves, as a client that works for ever."""
    argv = ports.argv_of(bench, program, seconds=ENDLESS, leaves=None, **options)
    client = bench.node.start(program, argv, LOW, True, mps=ports.under_mps(bench, True))
    client.wait_ready()
    yield client
    client.stop()


def throttle(bench):
    return leaving(bench, "loop-throttle", way="look", threads=128, blocks=2 if bench.node.simulated else 132)


def lava_md(bench):
    size, passes = ("trivial", 20) if bench.node.simulated else ("large", 200)
    return leaving(bench, "loop-ports", only="lava-md", way="loop", **{"class": size}, repeat=passes)


@contextlib.contextmanager
def matmul(bench):
    port = ports.free_port()
    with leaving(bench, "loop-server", service="matmul", way="loop", port=port, **ports.blocks(bench, "matmul")) as client:
        asking = ports.start_asking(bench, "matmul", port, ENDLESS, CONNECTIONS)
        asking.wait_ready()
        yield client
        asking.stop()
        asking.result(ports.TIMEOUT)


LEAVERS = {"a loop": throttle, "a matrix-multiplication server": matmul, "LavaMD": lava_md}


def show_leaves(bench, what, result, alone, beside):
    left, what = [ns / 1e3 for ns in result["leaves_ns"]], f"{what} leaves for HIGH within, p99"
    told = f"{len(left)} times, median {statistics.median(left or [0]):.0f} us, {result['missed']} not seen; HIGH alone {alone['median']:.0f}/{alone['p99']:.0f} us, beside {beside['median']:.0f}/{beside['p99']:.0f} us"
    late = quantile(left, 0.99) if left else float("inf")
    if bench.mode == MPS:
        bench.report.judge(what, late, BOUNDS["leaves within, p99"], told)
    else:  # with the hardware's switch
        bench.report.add(what, f"{late:.0f} us", baselines=told)


def leaves(bench):
    """HIGH's single kernels beside loops that have all SMs. How soon a loop leaves is from the moment that HIGH's demand is
    shown until its last block has told the host, as a thread beside the loop sees both."""
    bench.node.share_gpu(mps=bench.mode == MPS)
    pool_of(bench).set_policy("hpf")
    high = {"alone": single_kernels(bench)}
    for what, loop in LEAVERS.items():
        with loop(bench) as client:
            high[f"beside {what}"] = single_kernels(bench)
        show_leaves(bench, what, client.result(60), high["alone"], high[f"beside {what}"])
    if bench.plots:
        series = {name: [figures[name] for figures in high.values()] for name in ("median", "p99")}
        title = "HIGH's kernels beside loops (GLoop fig. 11, 12)"
        plot.bars(bench.plots / f"{bench.report.experiment}-leaves.svg", title, "us", list(high), series)


class Consolidation:
    """Servers on the GPU, their clients, and a batch job of a lower level. Requests come at random times, the same ones in
    each window: at fixed times their phases, which nobody chooses, would decide how often they meet."""

    def __init__(self, bench, stack):
        self.bench, self.pool, self.batch = bench, pool_of(bench), Job("euler", "large", copy=97)
        self.pool.set_policy("wfq", scheduling=scheduling(sharing.QUANTUM))
        self.pool.ensure("MPS", [self.batch])
        self.pool.ensure("Weir", [self.batch])
        self.seconds = sharing.short(bench, PAIR_SECONDS)
        self.servers = [stack.enter_context(ports.serving(bench, "matmul", "loop", True, HIGH, **ports.blocks(bench, "matmul"))) for _ in range(SERVERS)]
        # Busy threads on one core would slow each other, with and without the batch job by chance.
        self.places = ports.processors(2 * SERVERS + 1)
        everybody = [*(server for _, server in self.servers), self.pool.workers["Weir", self.batch].client]
        for client, place in zip(everybody, self.places):
            ports.pin(client, place)
        one = ports.ask(bench, "matmul", self.servers[0][0], self.seconds, 1)
        self.rate = SERVER_PART * one["requests_per_second"]
        self.told = f"a request alone {one['p50_us']:.0f} us, {self.rate:.0f}/s to each server; processors {self.places}"

    def clients(self):
        """Starts a client of each server. Returns when their connections are warm."""
        options = {"random": None, "list": None}
        asking = [
            ports.start_asking(self.bench, "matmul", port, WARM + self.seconds, CONNECTIONS, self.rate, seed=1 + i, **options)
            for i, (port, _) in enumerate(self.servers)
        ]
        for client, place in zip(asking, self.places[SERVERS + 1 :]):
            ports.pin(client, place)
        time.sleep(WARM)
        return asking

    def requests(self, clients):
        results = [client.result(self.seconds + ports.TIMEOUT) for client in clients]
        return [request for result in results for request in ports.requests_of(result, WARM)]

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
        """Seconds that the servers have been on the GPU so far."""
        pids = {self.bench.node.identity(client) for _, client in self.servers}
        return sum(known["gpuSeconds"] for known in self.bench.node.status() if self.bench.node.identity_of(known) in pids)


class Pairs:
    """Requests @alone and @beside the batch job in each window, the batch job's part of the GPU in it, and the servers'."""

    def __init__(self, scene):
        self.alone, self.beside, self.parts, self.stolen = [], [], [], Stolen()
        self.servers_alone = 0.0
        with self.stolen:
            for i in range(1 if scene.bench.node.simulated else PAIRS):
                for add in (self.add_alone, self.add_beside) if i % 2 == 0 else (self.add_beside, self.add_alone):
                    add(scene)

    def add_alone(self, scene):
        time.sleep(REPORTED)
        before = scene.gpu_seconds()
        self.alone.append(scene.requests(scene.clients()))
        time.sleep(REPORTED)
        self.servers_alone += scene.gpu_seconds() - before

    def add_beside(self, scene):
        clients = scene.clients()
        self.parts.append(scene.batch_rate())
        self.beside.append(scene.requests(clients))

    def ratios(self):
        """The p99 beside the batch job in parts of that without it, of each pair."""
        return [p99(beside) / p99(alone) for alone, beside in zip(self.alone, self.beside)]


def p99(requests):
    return quantile([one.us for one in requests], 0.99)


def slowest(requests, n=6):
    """The slowest requests, in words: when they were due, since the first one, and how long they took."""
    begin = min(one.due for one in requests)
    slow = sorted(requests, key=lambda one: -one.us)[:n]
    return ", ".join(f"{one.due - begin:.3f} s: {one.us / 1e3:.1f} ms" for one in sorted(slow, key=lambda one: one.due))


def all_of(windows):
    return [one for window in windows for one in window]


def times(windows):
    requests = all_of(windows)
    us = [one.us for one in requests]
    return f"{quantile(us, 0.5):.0f}/{quantile(us, 0.9):.0f}/{quantile(us, 0.99):.0f} us (n={len(us)}), slowest {slowest(requests)}"


def consolidate(bench):
    """Servers beside a batch job, as in GLoop's figures 13 and 14."""
    with contextlib.ExitStack() as stack:
        scene = Consolidation(bench, stack)
        scene.requests(scene.clients())  # connections, memory: the first requests to each server take longer
        settled = scene.settle()
        idle = 100 * scene.batch_rate() / (scene.pool.alone["MPS", scene.batch] / scene.pool.alone["Weir", scene.batch])
        bench.report.judge(f"a batch job beside {SERVERS} idle servers, of its rate alone", idle, BOUNDS["beside idle servers"])
        pairs = Pairs(scene)
    ratios, part = pairs.ratios(), statistics.fmean(pairs.parts)
    late = statistics.median(ratios)
    told = f"{scene.told}; pairs {min(ratios):.2f}x to {max(ratios):.2f}x, all requests together {p99(all_of(pairs.beside)) / p99(all_of(pairs.alone)):.3f}x; alone {times(pairs.alone)}; beside {times(pairs.beside)}; {pairs.stolen}{'' if settled else '; forms are not settled'}"
    bench.report.judge(f"{SERVERS} servers beside a batch job: p99 against without it, median of {len(ratios)} pairs", late, BOUNDS["servers' p99"], told)
    used = 100 * pairs.servers_alone / (len(pairs.parts) * scene.seconds)
    told = f"{100 * part:.1f} % of its rate alone; the servers have {used:.1f} % of the GPU without it"
    bench.report.judge("the batch job's part of the rest", 100 * part / (1 - SERVERS * SERVER_PART), BOUNDS["the batch job's part"], told)
    if bench.plots:
        series = {"alone": [100, 100], "together": [100 * late, 100 * part], "idle servers": [0, idle]}
        title = "Servers beside a batch job (GLoop fig. 13, 14)"
        plot.bars(bench.plots / f"{bench.report.experiment}.svg", title, "%", ["servers' p99", "the batch job"], series)
    sharing.leave(scene.pool, [scene.batch])


def store(bench):
    """A key-value store that answers on the GPU, with a CPU that launches kernels, and on the CPU alone."""
    seconds = sharing.short(bench, 2.0)
    for way in ("cpu", "driven", "loop"):
        with ports.serving(bench, "kv", way, way == "loop", **ports.blocks(bench, "kv")) as (port, _):
            result = ports.ask_together(bench, "kv", port, seconds, STORE_CONNECTIONS)
            single = ports.ask(bench, "kv", port, seconds, 1, first=STORE_CONNECTIONS)
        told = f"one connection: {ports.shown(single)}"
        bench.report.add(f"key-value store, {way}, {STORE_CONNECTIONS} connections", ports.shown(result), baselines=told)


def faults_around(bench):
    """Connections, disks, clients and servers that fail leave nothing, and another server notices nothing."""
    figures = faults.run(bench)
    if not figures:
        return
    alone, beside = figures
    told = f"alone {ports.shown(alone)}; beside {ports.shown(beside)}"
    bench.report.judge("a client's p99 beside slow ones", beside["p99_us"] / alone["p99_us"], BOUNDS["beside slow clients"], told)


PARTS = {"store": store, "shares": shares, "leaves": leaves, "faults": faults_around, "servers": consolidate}  # of --parts


def run(bench):
    pool_of(bench)
    for part in bench.part_of(tuple(PARTS)):
        PARTS[part](bench)
