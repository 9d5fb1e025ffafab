"""Three clients train, three compute forward passes without a pause, two answer requests with priority, for 60 s."""

import dataclasses
import statistics
import time

import turnarounds
from bursts import LOW
from clock import Clock
from experiment import MPS
from node import Failure, Tenant
from report import at_least, at_most
from workers import pool_of

SHOWS = "PyTorch, eight clients: throughput of all, and p99 of requests with priority"
PAPER = ""
BOUNDS = {"throughput": at_least(95), "p99": at_most(1.10)}
BASELINES = ("each alone", "time-slicing", "MPS", "MPS with stream priority")
NEEDS = ("gpu", "mps", "pytorch", "root")
SIMULATED = False
MODES = ("mps", "timeslice")

BATCH = ("train", "train", "train", "infer", "infer", "infer")
SERVERS = 2  # each request is an `infer`
# Each client is a container of its own.
BATCH_TENANTS = [Tenant(f"torch-{i}", "low") for i in range(len(BATCH))]
SERVER_TENANTS = [Tenant(f"torch-server-{i}", "high") for i in range(SERVERS)]
TENANTS = (*BATCH_TENANTS, *SERVER_TENANTS)
GAP_MS = 30  # between requests of a server, on average
SECONDS = 20  # for each of --seconds
SETTLE = 2.0  # seconds of all clients before the time that counts
# Then `weirctl hold` stops the batch clients now and then: a request in that time has the GPU to itself, at a clock
# that the others' load has lowered.
HELD_MS, HELD_EVERY_MS, LEFT_MS = 60, 400, 5
HELD_PART = 0.6  # of the time that counts
MEET_MS = 1  # requests of both servers meet if they come within this time
# Libweir or not, MPS or not (in the mode timeslice not with libweir), servers' streams with priority or not; the agent's policy.
WAYS = {
    "time-slicing": (False, False, False, None),
    "MPS": (False, True, False, None),
    "MPS + stream priority": (False, True, True, None),
    "Weir": (True, True, False, "hpf"),
}
JUDGED = "Weir"


def server_argv(bench, seed, priority):
    argv = [*bench.low_argv("infer"), "--gap-ms", str(GAP_MS), "--seed", str(seed)]
    return [*argv, "--priority"] if priority else argv


def all_ready(clients):
    for client in clients:
        client.wait_ready()


def show_concurrency(bench, clients, mps):
    """Whether the clients know if their kernels run at the same time as those of others."""
    pids = {client.process.pid for client in clients}
    said = [known["concurrent"] for known in bench.node.status() if known["pid"] in pids]
    right = len(said) >= len(clients) and set(said) == {mps}
    what = "under MPS" if mps else "with time slices"
    bench.report.holds(f"clients say that they are {what}", right, f"{said.count(mps)} of {len(clients)}")


@dataclasses.dataclass
class Measured:
    """Results of `low.py`; begin and end of the time that counts, and the SM clock in it. @held: the windows in which the
    batch clients were held, if they were."""

    batch: list
    servers: list
    begin: float
    end: float
    clock: Clock
    held: list = dataclasses.field(default_factory=list)


def now_and_then_held(bench, clients, seconds):
    """Holds @clients now and then; (begin, end) of each time in which all were held and had left the GPU."""
    numbers = {known["pid"]: str(known["client"]) for known in bench.node.status()}
    windows, over = [], time.monotonic() + seconds
    while time.monotonic() < over:
        first = time.monotonic()
        for client in clients:
            bench.node.weirctl("hold", numbers[client.process.pid], "--for", f"{HELD_MS}ms")
        windows.append((time.monotonic() + LEFT_MS / 1e3, first + HELD_MS / 1e3))
        time.sleep(max(0, first + HELD_EVERY_MS / 1e3 - time.monotonic()))
    return windows


def count(bench, seconds, held=()):
    """Waits for so long; (begin, end, clock, windows in which @held were held)."""
    begin = time.monotonic()
    with Clock(bench.node.simulated) as clock:
        windows = now_and_then_held(bench, held, seconds) if held else time.sleep(seconds)
    return begin, time.monotonic(), clock, windows


def measure(bench, batch, seconds, weir, mps, priority, hold=False):
    """Runs @batch and the servers. Returns a Measured, and a second one of a time with holds if @hold."""
    node = bench.node
    if mps:
        node.ensure_mps()
    else:
        node.stop_mps()
    jobs = [node.start(f"torch-{w}", bench.low_argv(w), tenant.name, weir) for w, tenant in zip(batch, BATCH_TENANTS)]
    servers = [node.start("torch-server", server_argv(bench, i, priority), tenant.name, weir) for i, tenant in enumerate(SERVER_TENANTS)]
    clients = jobs + servers
    try:
        all_ready(clients)
        time.sleep(SETTLE)
        if weir:
            show_concurrency(bench, clients, mps)
        times = [count(bench, seconds)] + ([count(bench, HELD_PART * seconds, jobs)] if hold else [])
    except Failure:
        for client in clients:
            client.kill()
        raise
    for client in clients:
        client.stop()
    results = [next(iter(client.result().values())) for client in clients]
    return [Measured(results[: len(jobs)], results[len(jobs) :], *some) for some in times]


def mhz(clock):
    """The clock as text; the board's power limit lowers it for all clients alike."""
    return f"{clock.median:.0f} MHz" if clock.median else "clock not known"


def steps_done(result, begin, end):
    """Steps between two times; a window that lies only partly inside counts in part."""
    inside = (max(0, min(e, end) - max(b, begin)) / (e - b) for b, e in result["windows"])
    return result["steps"] * sum(inside)


def rates(measured, alone):
    """Each client's rate, divided by its rate alone."""
    workloads = (*BATCH, *["infer"] * SERVERS)
    steps = [steps_done(result, measured.begin, measured.end) for result in measured.batch + measured.servers]
    return [n / (measured.end - measured.begin) / alone[workload] for n, workload in zip(steps, workloads)]


def answered(measured, windows=None):
    """Seconds of each request in the time that counts, or that lies within one of @windows."""
    requests = [request for result in measured.servers for request in result["windows"]]
    if windows is None:
        return [e - b for b, e in requests if measured.begin <= b < measured.end]
    return [e - b for b, e in requests if any(begin <= b and e <= end for begin, end in windows)]


def meetings(measured):
    """(seconds of the first, of the second) of each two requests of both servers that meet."""
    came = sorted((b, e, i) for i, result in enumerate(measured.servers) for b, e in result["windows"] if measured.begin <= b < measured.end)
    near = [(a, b) for a, b in zip(came, came[1:]) if a[2] != b[2] and b[0] - a[0] < MEET_MS / 1e3]
    return [(a[1] - a[0], b[1] - b[0]) for a, b in near]


def shown_meetings(measured, base):
    met = meetings(measured)
    if not met:
        return "none"
    first, second = (statistics.median(times) / statistics.median(answered(base)) for times in zip(*met))
    return f"{first:.2f}x and {second:.2f}x of {len(met)}"


def p99(values):
    return sorted(values)[int(0.99 * len(values))]


def show_held(bench, measured, alone, base, best):
    """The delay of requests while all others are held, and the throughput that remains."""
    free = answered(measured, measured.held)
    if not free:
        bench.report.add("requests while all others were held", "none came")
        return
    what = f"requests while all others were held: median of {len(free)} against alone"
    bench.report.add(what, f"{statistics.median(free) / statistics.median(answered(base)):.2f}x")
    late, total = p99(answered(measured)) / p99(answered(base)), 100 * sum(rates(measured, alone)) / best
    what = f"others held for {HELD_MS} ms of each {HELD_EVERY_MS}: high-priority p99 against alone"
    bench.report.add(what, f"{late:.2f}x", baselines=f"throughput {total:.2f} % of the best baseline, {mhz(measured.clock)}")


def run(bench):
    seconds = SECONDS * bench.seconds
    found = bench.node.start("alone", bench.low_argv(",".join(sorted(set(BATCH))), 1), LOW, False).result()
    alone = {workload: found[workload]["rate"] for workload in BATCH}
    (base,) = measure(bench, (), seconds, False, bench.mode == MPS, False)
    totals, latencies, medians, met, notes = {}, {}, {}, {}, []
    for mode, (weir, mps, priority, policy) in WAYS.items():
        if policy:
            pool_of(bench).set_policy(policy)
        measured, *held = measure(bench, BATCH, seconds, weir, mps and not (weir and bench.mode != MPS), priority, hold=mode == JUDGED)
        each = rates(measured, alone)
        latencies[mode] = p99(answered(measured)) / p99(answered(base))
        medians[mode] = statistics.median(answered(measured)) / statistics.median(answered(base))
        totals[mode] = sum(each)
        met[mode] = shown_meetings(measured, base)
        notes.append(f"{mode} {totals[mode]:.3f}, p99 {latencies[mode]:.2f}x, {mhz(measured.clock)}")
        print(f"    {notes[-1]}: " + ":".join(f"{100 * rate:.1f}" for rate in each), flush=True)
    best = max(total for mode, total in totals.items() if not WAYS[mode][0])
    what = f"8 clients, {seconds:.0f} s"
    # Time-slicing runs no kernels of several clients at the same time, as MPS does.
    bound = turnarounds.reachable(bench, BOUNDS["throughput"], 100 * totals["time-slicing"] / best)
    bench.report.judge(f"{what}: throughput against the best baseline", 100 * totals[JUDGED] / best, bound, "; ".join(notes))
    shown = f"alone {1e6 * p99(answered(base)):.0f} us, {mhz(base.clock)}; median {medians[JUDGED]:.2f}x"
    bound = turnarounds.reachable(bench, BOUNDS["p99"], 1 + turnarounds.switch_us(bench) / 1e6 / p99(answered(base)))
    bench.report.judge(f"{what}: high-priority p99 against alone", latencies[JUDGED], bound, shown)
    what = f"requests that meet within {MEET_MS} ms: medians of the first and the second against those of servers alone"
    baselines = "; ".join(f"{mode} {figure}" for mode, figure in met.items() if mode != JUDGED)
    bench.report.add(what, met[JUDGED], baselines=f"servers alone {shown_meetings(base, base)}; {baselines}")
    show_held(bench, *held, alone, base, best)
