"""Programs around event loops on the GPU (e2e/workloads/loop), each in several ways of doing the same work, and their
servers with TCP clients."""

import contextlib
import dataclasses
import os
import statistics

from bursts import LOW
from experiment import MPS
from free_port import free_port

TIMES = 3  # runs of a program; the median counts
TIMEOUT = 240  # seconds
CLIENTS = 4  # that ask a server at once


def files(bench):
    """A folder that clients with any user id may write to."""
    folder = bench.node.folder / "files"
    folder.mkdir(exist_ok=True)
    folder.chmod(0o777)
    return str(folder)


def argv_of(bench, program, **options):
    """Options by name: size=4 is --size 4; list=None is --list."""
    argv = [bench.node.bench(program), *bench.node.sizes]
    for name, value in options.items():
        argv += [f"--{name}"] if value is None else [f"--{name}", str(value)]
    return argv


def measure(bench, program, key, weir=False, times=TIMES, **options):
    """The result of a run whose figure @key is the median of @times runs."""
    results = []
    for _ in range(1 if bench.node.simulated else times):
        client = bench.node.start(program, argv_of(bench, program, **options), LOW, weir)
        results.append(client.result(TIMEOUT))
    middle = statistics.median_low(result[key] for result in results)
    return next(result for result in results if result[key] == middle)


def blocks(bench, work):
    """Of a loop: more than a few do not help small requests; what computes has a block on each SM, or as many as fit."""
    if bench.node.simulated or work in ("images", "tokens"):
        return {}
    return {"blocks": 132 if work in ("grep", "matmul") else 64}


def under_mps(bench, weir):
    """Whether a client is under the MPS daemon, if one runs: in the mode timeslice, those with Weir are not."""
    return not weir or bench.mode == MPS


def processors(n):
    """So many, each of a core of its own. A virtual machine does not tell which two share one: they are neighbours, or half of
    all lie between them. Empty if there are not enough."""
    known = sorted(os.sched_getaffinity(0), reverse=True)
    half, found = max(1, len(known) // 2), []
    for processor in known:
        if all(processor // 2 != other // 2 and processor % half != other % half for other in found):
            found.append(processor)
    return found[:n] if len(found) >= n else []


def pin_process(process, processor):
    """Its main thread alone."""
    with contextlib.suppress(ProcessLookupError):
        os.sched_setaffinity(process.pid, {processor})


def pin(client, processor):
    """A server's main thread does its input and output."""
    pin_process(client.process, processor)


@contextlib.contextmanager
def serving(bench, service, way, weir=False, tenant=LOW, **options):
    """A server that listens; yields its port and its client object."""
    port = free_port()
    argv = argv_of(bench, "loop-server", service=service, way=way, port=port, **options)
    with bench.node.running(f"server-{service}-{way}", argv, tenant, weir, mps=under_mps(bench, weir)) as client:
        yield port, client


def start_asking(bench, service, port, seconds, connections, rate=0, **options):
    """A TCP client that asks for @seconds: it has no GPU."""
    if rate:
        options["rate"] = max(1, round(rate))
    argv = argv_of(bench, "loop-client", service=service, port=port, seconds=seconds, connections=connections, **options)
    return bench.node.start(f"client-{service}", argv, LOW, False)


def ask(bench, service, port, seconds, connections, rate=0, **options):
    return start_asking(bench, service, port, seconds, connections, rate, **options).result(seconds + TIMEOUT)


@dataclasses.dataclass(frozen=True)
class Request:
    """@due: when it was to be sent, seconds of the machine's monotonic clock. @us: until its reply came."""

    due: float
    us: float


def requests_of(result, after=0):
    """Of a client with --list; those that were due @after so many seconds or later."""
    return [Request(result["began_ns"] / 1e9 + due, us) for due, us in result["list"] if due >= after]


def ask_together(bench, service, port, seconds, connections, clients=CLIENTS, on=()):
    """The same from several clients at once, as one cannot ask fast enough: requests of all, the worst p99. @on: a processor
    for each."""
    each = connections // clients
    started = [start_asking(bench, service, port, seconds, each, first=i * each) for i in range(clients)]
    for client, processor in zip(started, on):
        pin(client, processor)
    results = [client.result(seconds + TIMEOUT) for client in started]
    return {
        "requests_per_second": sum(result["requests_per_second"] for result in results),
        "p50_us": statistics.median(result["p50_us"] for result in results), "p99_us": max(result["p99_us"] for result in results),
    }  # fmt: skip


def median_of(results):
    """Each figure by itself."""
    return {name: statistics.median(result[name] for result in results) for name in results[0]}


def shown(result):
    return f"{result['requests_per_second']:.0f}/s, p50 {result['p50_us']:.0f} us, p99 {result['p99_us']:.0f} us"
