"""When the machine's processors had work and did not run, because its host ran others' work: their stolen time."""

import bisect
import dataclasses
import os
import pathlib
import time

from looking import Looking

TICK = 1 / os.sysconf("SC_CLK_TCK")  # seconds: stolen time is told in ticks
EVERY = 0.01  # seconds between looks
STOLEN = 7  # number of the count in a line of /proc/stat


@dataclasses.dataclass(frozen=True)
class Interval:
    """It was stolen for @ticks from @processor, at some time between @begin and @end: seconds of the monotonic clock."""

    processor: int
    begin: float
    end: float
    ticks: int


def parse(stat):
    """Ticks stolen from each processor so far, by its number. Empty: the machine does not say."""
    lines = [line.split() for line in stat.splitlines()]
    return {int(name[3:]): int(counts[STOLEN]) for name, *counts in lines if name[:3] == "cpu" and name[3:] and len(counts) > STOLEN}


def between(before, after, begin, end):
    """What was stolen between two looks. A theft is counted when it is over, so it began by its own length before @begin, or
    by a tick more: parts of ticks are not told."""
    more = {processor: ticks - before.get(processor, ticks) for processor, ticks in after.items()}
    return [Interval(processor, begin - (ticks + 1) * TICK, end, ticks) for processor, ticks in more.items() if ticks > 0]


class Thefts(Looking):
    """All of them in this context. @aside: processors that the thread which looks keeps away from. @late: seconds that this
    thread was late each time: when the whole machine stands still, nobody counts that as stolen."""

    def __init__(self, aside=()):
        super().__init__()
        self.intervals, self.late, self.aside = [], [], set(aside)

    def look_on(self):
        allowed = os.sched_getaffinity(0)
        os.sched_setaffinity(0, allowed - self.aside or allowed)
        at, seen = time.monotonic(), parse(pathlib.Path("/proc/stat").read_text())
        while not self.over.wait(EVERY):
            now, found = time.monotonic(), parse(pathlib.Path("/proc/stat").read_text())
            self.intervals += between(seen, found, at, now)
            self.late.append(now - at - EVERY)
            at, seen = now, found

    def of(self, processors):
        """Those of @processors; of all, if these are not known."""
        return [one for one in self.intervals if not processors or one.processor in processors]


def merged(intervals):
    """Begins and ends of what the intervals cover, in order and apart from each other."""
    begins, ends = [], []
    for one in sorted(intervals, key=lambda one: one.begin):
        if ends and one.begin <= ends[-1]:
            ends[-1] = max(ends[-1], one.end)
        else:
            begins.append(one.begin)
            ends.append(one.end)
    return begins, ends


def without(requests, intervals):
    """The requests that no interval overlaps."""
    begins, ends = merged(intervals)

    def is_clean(one):
        before = bisect.bisect_left(begins, one.due + one.us / 1e6)
        return not before or ends[before - 1] <= one.due

    return [one for one in requests if is_clean(one)]


def shown(intervals):
    ms = 1e3 * TICK * sum(one.ticks for one in intervals)
    return f"{ms:.0f} ms stolen of {len({one.processor for one in intervals})} processors, {len(intervals)} times"
