"""A HIGH that sends bursts all the time, and how long its requests took in a part of that time."""

import time

from bursts import HIGH
from node import Failure
from watch import requests


def p99(values):
    return sorted(values)[min(len(values) - 1, int(0.99 * len(values)))]


def slow_ones(requests, alone, limit):
    """In words, which requests (pairs of s and us) took longer than @limit times p99 alone."""
    slow = [f"{at:.2f} s: {us / alone['p99']:.2f}x" for at, us in requests if us > limit * alone["p99"]]
    return f"{len(slow)} above {limit:g}x, the first ended at {', '.join(slow[:6]) or '-'}"


class EndlessBursts:
    """@weir, @mps, @env: of the client, as in Node.start(). @argv: of a burst without end; None: the usual one."""

    def __init__(self, bench, weir, mps=True, argv=None, env=None):
        self.bench, self.weir, self.mps, self.env = bench, weir, mps, env
        self.argv = argv or bench.burst_argv(1 << 40)
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
        until = time.monotonic() + 20
        while time.monotonic() < until:
            found = [(at - begin, us) for at, us in requests(self.log) if at >= begin and at - us / 1e6 <= end]
            if found:
                return found
            time.sleep(0.05)
        raise Failure("HIGH sends nothing")
