"""Event loops beside others: their shares of the GPU and how soon they leave it; three servers with TCP clients, each busy
a fifth of the time, beside a batch job; and a key-value store against one on the CPU."""

import contextlib
import dataclasses
import statistics
import time

import consolidation
import faults
import monopolies
import plot
import ports
import sharing
import throttles
import turnarounds
from bursts import HIGH, LOW
from experiment import MPS
from free_port import free_port
from report import at_least, at_most
from servers import quantile
from workers import LEAD, SLOTS, Job, Worker, pool_of, progress

SHOWS = "event loops and ordinary kernels share the GPU; servers on the GPU beside a batch job; a key-value store"
PAPER = "GLoop figures 9 to 14"
BOUNDS = {
    "furthest from a share": at_most(sharing.LIMIT, " points"), "parts together": at_least(98), "leaves within, p99": at_most(60, " us"),
    "a server's part": at_most(2, " points"), "servers' p99": at_most(1.05), "the batch job's part": at_least(95),
    "beside idle servers": at_least(99), "beside slow clients": at_most(1.5), "beside a fault": at_most(1.5),
    "answered above a monopolist": at_least(99), "shares after faults": at_most(sharing.LIMIT, " points"), "work after faults": at_least(98),
}  # fmt: skip
PRINTED = ("key-value store",)  # figures without a bound, also in RESULTS.md
BASELINES = ("each alone", "servers without the batch job", "a server on the CPU", "kernels that the CPU launches")
NEEDS = ("gpu", "mps", "root")
SIMULATED = True
TENANTS = (*SLOTS, *consolidation.TENANTS)
MODES = ("mps", "timeslice")

KERNEL_US = 500  # of the ordinary client
QUANTUM_US = 3 * KERNEL_US // 2
WHY = f"quantum {QUANTUM_US} us: at a multiple of a kernel's length turns end with a kernel that is nearly done, which runs on beside the loop"
WINDOWS = {"mps": ((0.2, 10),), "timeslice": ((0.2, 15), (1.0, 3))}  # seconds and how many
LONG = 1.0  # seconds: shorter windows are judged by what slices allow
TARGET = 66  # hundredths
ENDLESS = 600  # seconds; they are stopped
CONNECTIONS = 4  # of a client
STORE_CONNECTIONS = 64


@dataclasses.dataclass(frozen=True)
class Throttle:
    """A loop of nothing but scheduling points, for the pool's policy."""

    number: int


class Shared:
    """Throttles and an ordinary client, all with Weir."""

    def __init__(self, bench, n):
        self.bench, self.pool = bench, pool_of(bench)
        self.throttles = [Throttle(i) for i in range(n)]
        self.job = Job("md5-search", copy=98, kernel="md5_search", us=KERNEL_US)
        self.pool.set_policy("wfq", scheduling=sharing.scheduling(f"{QUANTUM_US}us"))
        self.pool.ensure("MPS", [self.job])
        self.pool.ensure("Weir", [self.job])

    def start(self, throttle):
        tenant = self.pool.slots.pop(0)
        self.pool.workers["Weir", throttle] = Worker(throttles.start(self.bench, tenant), tenant)

    def end(self, throttle):
        """Stops it. Returns its progress: points by time, in seconds."""
        worker = self.pool.workers.pop(("Weir", throttle))
        self.pool.slots.append(worker.tenant)
        return throttles.end(worker.client)

    def alone(self):
        """Points a second of one throttle."""
        seconds = sharing.short(self.bench, 1.0)
        self.start(self.throttles[0])
        begin = time.monotonic() + 0.2
        time.sleep(seconds + 0.3)
        return self.end(self.throttles[0]).rate(begin, begin + seconds) or 1.0  # of a busy machine

    def run(self, shares, rate):
        """By the length of windows, a row for each window: the throttles' parts of the GPU in per cent of what each does alone,
        then the ordinary client's."""
        windows = ((0.2, 2),) if self.bench.node.simulated else WINDOWS[self.bench.mode]
        seconds = sharing.SKIPPED + max(window * n for window, n in windows)
        for throttle in self.throttles:
            self.start(throttle)
        everybody = [*self.throttles, self.job]
        self.pool.set_policy("wfq", dict(zip(everybody, shares)), sharing.scheduling(f"{QUANTUM_US}us"))
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
            return [100 * part for part in parts]

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


def show_sum(bench, what, sums):
    """Of the parts, before they count as parts of each other: what all lose together. Slices lose a switch each."""
    bound, told = BOUNDS["parts together"], f"{min(sums):.1f} to {max(sums):.1f} % by window; {WHY}"
    if bench.mode != MPS:
        _, us = turnarounds.known_switches(bench)
        told += f"; {bound} under MPS, and less by a switch of {us:.0f} us in each slice of {1e3 * sharing.SLICE:.0f} ms"
        bound = bound.times(1 - us / 1e6 / sharing.SLICE)
    bench.report.judge(f"{what}: all parts together, mean", statistics.fmean(sums), bound, told)


def show_shares(bench, n, rate, shared):
    for shares in ([100 // (n + 1)] * (n + 1), [TARGET, *[round((100 - TARGET) / n)] * n]):
        what, wanted = f"{n} loops and a client with kernels, {':'.join(map(str, shares))}", sharing.targets(shares)
        for window, found in shared.run(shares, rate).items():
            sums = [sum(row) or 1 for row in found]
            rows = [[100 * part / whole for part in row] for row, whole in zip(found, sums)]
            off = max(abs(part - want) for row in rows for part, want in zip(row, wanted))
            for row in rows:
                print(f"    {':'.join(f'{part:.2f}' for part in row)}", flush=True)
            draw_shares(bench, shares, window, rows)
            mean = ":".join(f"{sum(row[i] for row in rows) / len(rows):.1f}" for i in range(n + 1))
            bound = BOUNDS["furthest from a share"]
            if window < LONG:
                bound = turnarounds.reachable(bench, bound, sharing.ideal_off(shares, window))
            told = f"{mean}; kernels of {KERNEL_US} us; {WHY}; parts add up to {statistics.fmean(sums):.1f} %"
            bench.report.judge(f"{what}: furthest from a share, {window * 1e3:.0f} ms windows", off, bound, told)
        show_sum(bench, what, sums)


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
    port = free_port()
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
    late, bound = quantile(left, 0.99) if left else float("inf"), BOUNDS["leaves within, p99"]
    if bench.mode != MPS:
        # The hardware switches to HIGH's kernel at once, which saves what a running loop has in registers. A loop that has not
        # left by then stands still until HIGH's kernel has ended. It leaves when it is switched back, and is given the same
        # time for that as under MPS. HIGH does not wait for it.
        (us, _), limit = turnarounds.known_switches(bench), bound.limit
        ideal = beside["median"] + us + limit
        soon = sum(one <= limit for one in left)
        told += f"; {soon} left within {limit:g} us, before HIGH's kernel had the GPU; the others stood still meanwhile and left when they had it again: {bound} where that is possible, else HIGH's kernel with the switch to it, as it is beside the loop, the switch back of {us:.0f} us, and {limit:g} us to leave, {ideal:.0f} us"
        bound = turnarounds.reachable(bench, bound, ideal)
    bench.report.judge(what, late, bound, told)


def leaves(bench):
    """HIGH's single kernels beside loops that have all SMs. How soon a loop leaves is from the moment that HIGH's demand is
    shown until its last block has told the host, as a thread beside the loop sees both."""
    turnarounds.known_switches(bench)  # before the agent runs
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


def consolidate(bench):
    consolidation.run(bench, BOUNDS)


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
    """Connections, disks, clients, servers and programs that fail leave nothing, and another server notices nothing."""
    alone, beside = faults.run(bench, BOUNDS)
    told = f"alone {ports.shown(alone)}; beside {ports.shown(beside)}"
    bench.report.judge("a client's p99 beside slow ones", beside["p99_us"] / alone["p99_us"], BOUNDS["beside slow clients"], told)


def monopoly(bench):
    monopolies.run(bench, BOUNDS["answered above a monopolist"])


PARTS = {"store": store, "shares": shares, "leaves": leaves, "faults": faults_around, "servers": consolidate, "monopoly": monopoly}  # of --parts


def run(bench):
    pool_of(bench)
    parts = bench.part_of(tuple(PARTS))
    if bench.node.simulated and len(parts) == len(PARTS):
        # e2e/loop/overruns.sh has it there. A second of a loop's own turns takes ten and more.
        parts = [part for part in parts if part != "monopoly"]
    for part in parts:
        PARTS[part](bench)
