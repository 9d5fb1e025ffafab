"""A HIGH that sends bursts all the time, and how long its requests took in a part of that time."""

import contextlib
import dataclasses
import os
import pathlib
import subprocess
import time

from bursts import HIGH
from node import Failure
from watch import records

TIMED = ("--timed",)  # of a burst: see Request
SPANS = ("--timed", "--spans")


# Fields of Request, in words.
LOSSES = {
    "call": "before the first launch", "starved": "between launches", "noticed": "after the end",
    "released": "of which by the GPU", "delayed": "without a CPU", "slept": "asleep or stopped",
}


@dataclasses.dataclass
class Request:
    """@at: s from the begin of the time that was asked for to the request's end; all others us. Those after @us only
    of a client with TIMED (spin-timed.h): @served by the GPU; lost before the first launch (@call), between launches
    (@starved) and after the last kernel's end (@noticed, of which @released by the GPU itself); of all that, the time
    in which HIGH's thread had no CPU (@delayed), and in which it waited, or its CPU was stolen (@slept). @spanned, with
    SPANS: on the GPU, from where it came to the first launch to the last kernel's end."""

    at: float
    us: float
    served: float = 0
    call: float = 0
    starved: float = 0
    noticed: float = 0
    delayed: float = 0
    slept: float = 0
    released: float = 0
    spanned: float = 0

    @property
    def began(self):
        return self.at - self.us / 1e6

    @property
    def on_gpu(self):
        """us until the GPU was through with it, without what HIGH's thread lost."""
        return self.served + self.released


def p99(values):
    return sorted(values)[min(len(values) - 1, int(0.99 * len(values)))]


def slow_ones(requests, alone, limit):
    """In words, which requests (pairs of s and us) took longer than @limit times p99 alone."""
    slow = [f"{at:.2f} s: {us / alone['p99']:.2f}x" for at, us in requests if us > limit * alone["p99"]]
    return f"{len(slow)} above {limit:g}x, the first ended at {', '.join(slow[:6]) or '-'}"


def where_time_went(requests, limit_us):
    """In words, what the requests that took longer than @limit_us, and had TIMED, lost where."""
    slow = [one for one in requests if one.us > limit_us]
    on_gpu = sum(one.on_gpu > limit_us for one in slow)
    lost = ", ".join(
        f"{name} {sum(getattr(one, field) for one in slow) / 1e3:.1f}"
        for field, name in LOSSES.items())
    first = ", ".join(f"{one.at:.2f} s: {one.us:.0f} us, GPU {one.on_gpu:.0f}" for one in slow[:6])
    return f"{len(slow)} slow, {on_gpu} on the GPU, too ({first or '-'}); ms of these in HIGH's thread: {lost}"


class Stolen:
    """How long the machine's CPUs had work and did not run because its host ran others' work, in this context."""

    def __init__(self):
        self.ticks = 0

    @staticmethod
    def read():
        return int(pathlib.Path("/proc/stat").read_text().split(maxsplit=9)[8])

    def __enter__(self):
        self.ticks -= self.read()
        return self

    def __exit__(self, *_):
        self.ticks += self.read()

    def __str__(self):
        return f"{self.ticks * 1000 // os.sysconf('SC_CLK_TCK')} ms stolen from CPUs"


@contextlib.contextmanager
def busy_cpus(n):
    """@n processes that do nothing but run."""
    processes = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(n)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


class EndlessBursts:
    """@weir, @mps, @env: of the client, as in Node.start(). @argv: of a burst without end; None: the usual one. @extra:
    options of the usual one."""

    def __init__(self, bench, weir, mps=True, argv=None, env=None, extra=()):
        self.bench, self.weir, self.mps, self.env = bench, weir, mps, env
        self.argv = argv or bench.burst_argv(1 << 40, extra=extra)
        self.log = bench.node.folder / f"bursts-{time.monotonic_ns()}.log"

    def __enter__(self):
        self.log.touch()
        self.log.chmod(0o666)
        argv = [*self.argv, "--log", str(self.log)]
        self.client = self.bench.node.start("burst", argv, HIGH, self.weir, mps=self.mps, env=self.env)
        self.client.wait_ready()
        time.sleep(0.1 if self.bench.node.simulated else 0.5)
        return self

    def __exit__(self, kind, *_):
        self.client.stop()
        if kind:
            self.client.kill()
        else:
            self.client.wait_end(60)

    def between(self, begin, end):
        """us of the requests that ended after @begin and began before @end. There is one, or it is awaited."""
        return [us for _, us in self.timed(begin, end)]

    def timed(self, begin, end):
        """The same: pairs of s from @begin to the request's end, and us."""
        return [(one.at, one.us) for one in self.requests(begin, end)]

    def requests(self, begin, end):
        """The same, with all that is known of them."""
        until = time.monotonic() + 20
        while time.monotonic() < until:
            found = [
                Request(at - begin, us, *parts)
                for at, us, *parts in records(self.log)
                if at >= begin and at - us / 1e6 <= end
            ]
            if found:
                return found
            time.sleep(0.05)
        raise Failure("HIGH sends nothing")
