"""A HIGH that answers requests of networks (programs/high.py) and a LOW that keeps the GPU full, each a process that lives
for several measurements: alone and beside LOW in turn, because the host's noise changes within seconds. On the simulated
GPU bursts replayed as graphs, beside filler."""

import contextlib
import dataclasses
import os
import pathlib
import statistics
import subprocess
import time

import bursts
from experiment import PROGRAMS
from node import Failure
from servers import quantile

GAP_MS = {"graph": 8, "eager": 8, "llama": 20}
LEAD, TAIL = 0.2, 0.1  # seconds of LOW before and after the requests that count
LEARN = 0.7  # seconds beside each LOW before anything counts, with Weir


@dataclasses.dataclass
class Pairs:
    """ms of requests alone and beside LOW, one list for each measurement; of graphs what the GPU took of these; and when
    each was measured, as pairs of time.monotonic()."""

    alone: list = dataclasses.field(default_factory=list)
    beside: list = dataclasses.field(default_factory=list)
    gpu_alone: list = dataclasses.field(default_factory=list)
    gpu_beside: list = dataclasses.field(default_factory=list)
    when_alone: list = dataclasses.field(default_factory=list)
    when_beside: list = dataclasses.field(default_factory=list)

    @property
    def medians(self):
        """Of each pair, beside against alone."""
        return [statistics.median(b) / statistics.median(a) for a, b in zip(self.alone, self.beside)]

    @property
    def median(self):
        return statistics.median(self.medians)

    @property
    def p99(self):
        return quantile(sum(self.beside, []), 0.99) / quantile(sum(self.alone, []), 0.99)

    def at_clock_alone(self, clock):
        """Median and p99 against alone, as if @clock had not been lower beside LOW, and both sides' speeds in words. None:
        not known."""
        sides = ((self.beside, self.gpu_beside, self.when_beside), (self.alone, self.gpu_alone, self.when_alone))
        beside, alone = ({**speed(gpu, when, clock), **figures(ms)} for ms, gpu, when in sides)
        less = bursts.slowed_us(beside, alone)
        if less is None:
            return None
        return *((beside[figure] - less) / alone[figure] for figure in ("median", "p99")), bursts.speeds(beside, alone)

    def __str__(self):
        both = (sum(some, []) for some in (self.alone, self.beside))
        alone, beside = (f"{statistics.median(ms):.3f}/{quantile(ms, 0.99):.3f} ms (n={len(ms)})" for ms in both)
        return f"{beside}, alone {alone}; pairs {', '.join(f'{each:.3f}x' for each in self.medians)}"


def core_of(cpu):
    """The processors of a core; with hyper-threading there are two."""
    siblings = pathlib.Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
    return siblings.read_text().strip() if siblings.exists() else str(cpu)


def halves():
    """This process's processors, divided so that both halves share no core."""
    cores = {}
    for cpu in sorted(os.sched_getaffinity(0)):
        cores.setdefault(core_of(cpu), set()).add(cpu)
    sets = list(cores.values())
    middle = len(sets) // 2
    return (set.union(*sets[:middle]), set.union(*sets[middle:])) if middle else (sets[0], sets[0])


def figures(ms):
    """us"""
    flat = sum(ms, [])
    return {"median": 1e3 * statistics.median(flat), "p99": 1e3 * quantile(flat, 0.99)}


def speed(gpu_ms, when, clock):
    """How long the GPU took, in us, and its clock meanwhile; what is known of it."""
    flat, mhz = sum(gpu_ms, []), [clock.mean(*times) for times in when]
    if not flat or not all(mhz):
        return {}
    return {"gpu_median": 1e3 * statistics.median(flat), "clock": statistics.mean(mhz)}


class TorchClients:
    """On processors of their own: launches wait for a processor, and who shares a core gets half of it."""

    def __init__(self, bench, weir, names, workloads, priority):
        argv = ["python3", str(PROGRAMS / "high.py"), ",".join(names), *(["--priority"] if priority else [])]
        self.high = bench.node.start("requests", argv, bursts.HIGH, weir, stdin=subprocess.PIPE)
        argv = [*bench.low_argv(",".join(workloads)), "--turns"]
        self.low = bench.node.start("low", argv, bursts.LOW, weir, stdin=subprocess.PIPE)
        self.wrong = 0
        for client, cpus in zip((self.high, self.low), halves()):
            os.sched_setaffinity(client.process.pid, cpus)

    def wait_ready(self):
        for client in (self.high, self.low):
            client.wait_ready()

    def ask(self, name, seconds):
        self.high.tell(name, seconds, GAP_MS[name])
        answer = self.high.answer(seconds + 60)
        self.wrong += answer["wrong"]
        self.gpu_ms = answer["gpu_ms"]  # of what was asked last
        return answer["ms"]

    def beside(self, name, workload, seconds):
        self.low.tell(workload, LEAD + seconds + TAIL)
        time.sleep(LEAD)
        ms = self.ask(name, seconds)
        self.low.answer(seconds + 120)
        return ms

    def close(self):
        for client in (self.high, self.low):
            try:
                client.leave(20)
            except (Failure, OSError):
                client.kill()


class BurstClients:
    def __init__(self, bench, weir, names, workloads, priority):
        self.bench, self.weir, self.wrong, self.gpu_ms = bench, weir, 0, []

    def wait_ready(self):
        pass

    def ask(self, name, seconds):
        argv = self.bench.burst_argv(10, extra=("--graphs",))
        result = self.bench.node.start("requests", argv, bursts.HIGH, self.weir).result()
        return [result["median"] / 1e3, result["p99"] / 1e3]

    def beside(self, name, workload, seconds):
        low = bursts.low_of(self.bench, workload)
        with self.bench.node.running("low", low.argv, bursts.LOW, self.weir):
            return self.ask(name, seconds)

    def close(self):
        pass


@contextlib.contextmanager
def clients(bench, weir, names, workloads, priority=False):
    """HIGH and LOW, as the node shares the GPU now. With Weir they have met each other."""
    both = (BurstClients if bench.node.simulated else TorchClients)(bench, weir, names, workloads, priority)
    try:
        both.wait_ready()
        for name in names if weir else ():
            for workload in workloads:
                both.beside(name, workload, LEARN)
        yield both
    finally:
        both.close()


def measure_alone(both, found, name, seconds):
    begin = time.monotonic()
    found.alone.append(both.ask(name, seconds))
    found.gpu_alone.append(both.gpu_ms)
    found.when_alone.append((begin, time.monotonic()))


def measure_beside(both, found, name, workload, seconds):
    begin = time.monotonic()
    found.beside.append(both.beside(name, workload, seconds))
    found.gpu_beside.append(both.gpu_ms)
    found.when_beside.append((begin, time.monotonic()))


def pairs(both, name, workload, n, seconds):
    """In each second pair LOW comes first, so that a drift of the host is on no side."""
    found = Pairs()
    for i in range(n):
        if i % 2:
            measure_beside(both, found, name, workload, seconds)
        measure_alone(both, found, name, seconds)
        if i % 2 == 0:
            measure_beside(both, found, name, workload, seconds)
    return found
