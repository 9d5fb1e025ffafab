"""HIGH's time by the number of SMs that a LOW leaves to it (FLEP's figure 16)."""

import dataclasses
import statistics
import time

from node import Failure
from workers import LEAD, MS, pool_of

EVERY_MS = 0.4  # from one launch of HIGH to the next
COMPARES = 0.9  # seconds in which HIGH finds out what is the fastest for it, if LOW is to leave what it needs
TAILS = 0.1  # of HIGH's times: the shortest and the longest that do not count
POINT, POINT_SETTLE = 0.1, 0.1  # seconds of a measurement of the curve; before that, while launches that LOW had queued end
ASK = 0.1  # seconds until the agent has taken what HIGH asks for, at most on average
QUEUED = 2  # rounds of LOW
AGAIN = 3  # further measurements of `needed` and the two best points
CLEAR = 1.1  # the best other point against `needed`: chance makes no such difference


def typical(times):
    """The mean without both tails. A median would hide that each fifth launch waits: of about 45 clients of one MPS server
    some wait up to a millisecond, once in each 2 ms (H100)."""
    cut = int(TAILS * len(times))
    return statistics.fmean(sorted(times)[cut : len(times) - cut])


def ask_for(bench, job, yields):
    """The tenant of @job's client asks lower levels for that from here on."""
    bench.node.change_until(job.tenant, "yields", yields, lambda: pool_of(bench).clients([job])[0]["yield"] == yields)


@dataclasses.dataclass
class Curve:
    """HIGH's time in us by what it asks for: a number of SMs, `needed`, `whole`. @again: what was measured again, and judges.
    Not `whole`, temporal preemption: lower levels read one word less then before they leave. @spread: the longest against the
    shortest of several measurements of one point, on average; 0: none was measured again."""

    times: dict
    again: tuple
    spread: float

    @property
    def ratio(self):
        return self.times["needed"] / min(self.times[name] for name in self.again)


class Sweep:
    """One HIGH beside one LOW. A single client asks for this and for that in turn while LOW is at work all the time: clients
    differ by a tenth whatever they ask for, and a host is slow now and then."""

    def __init__(self, bench, low, job):
        self.bench, self.low, self.job = bench, low, job
        short = bench.node.simulated
        self.compares, self.asking, self.settle, self.point = (0, 1.0, 0, 0.3) if short else (COMPARES, ASK, POINT_SETTLE, POINT)
        self.turns = 1 if short else AGAIN

    def ask(self, name, settle):
        """Returns the time, of the monotonic clock, in which HIGH's launches count."""
        ask_for(self.bench, self.job, str(name))
        since = time.monotonic_ns() + int(settle * 1e9)
        until = since + int(self.point * 1e9)
        time.sleep((until - time.monotonic_ns()) / 1e9)
        return since, until

    def measure(self, names, first):
        """HIGH's times by name, as many as it is in @names. @first: seconds before the first counts."""
        seconds = first + len(names) * (self.asking + self.settle + self.point)
        high, low = (pool_of(self.bench).workers["Weir", job].client for job in (self.job, self.low))
        begin = time.monotonic_ns() + LEAD
        low.tell("endless", begin, begin + int(seconds * 1e9), QUEUED, 0)
        high.tell("rounds", begin, int(EVERY_MS * MS), int(seconds * 1e3 / EVERY_MS), 0)
        spans = [(name, *self.ask(name, self.settle + (LEAD / 1e9 + first if not i else 0))) for i, name in enumerate(names)]
        rounds = high.answer(seconds + 60)["rounds"]
        low.answer(seconds + 60)
        found = {}
        for name, since, until in spans:
            times = [(done - launch) / 1e3 for launch, done in rounds if since <= begin + launch < until]
            if not times:
                raise Failure(f"{self.job} beside {self.low}: no launches while it asked for {name}")
            found.setdefault(name, []).append(typical(times))
        return found

    def curve(self, numbers):
        """@numbers: of SMs. All once, then `needed` and the two best others in turn: the best of several times is low by
        chance. Not where `needed` is the best by far."""
        times = {name: us for name, (us,) in self.measure(["needed", *numbers, "whole"], self.compares).items()}
        others = sorted(numbers, key=times.get)
        if times["needed"] * CLEAR < times[others[0]]:
            return Curve(times, ("needed",), 0)
        again = ("needed", *others[:2])
        each = self.measure([name for turn in range(self.turns) for name in again[:: -1 if turn % 2 else 1]], 0)
        spread = statistics.fmean(max(us) / min(us) for us in each.values())
        return Curve(times | {name: statistics.median(us) for name, us in each.items()}, again, spread)
