"""Each benchmark that ends by itself runs until libweir has settled on forms for its kernels. Then it starts again: the
second pod of its kind. HIGH shares the GPU and sleeps. Which forms a process has chosen stands in libweir's log.

Processes of one kind differ by a per cent or two, also without Weir. So a settled round takes the median of all of them:
the first one and the second ones, with Weir or without.

A process checks its results while the next one makes its context. No rounds are measured meanwhile."""

import math
import re
import statistics
import subprocess
import time

from bursts import HIGH, LOW
from report import at_least, at_most

SHOWS = "forms and times of the first launches of the second process of a kind"
PAPER = ""
BOUNDS = {"settled at the first launch": at_least(100), "first 20 rounds against settled": at_most(1.02)}
BASELINES = ("the same without Weir", "the processes, settled")
NEEDS = ("gpu", "mps", "root")
SIMULATED = True

FIRST = 20  # rounds
SECONDS = 0.4  # of rounds, when all is settled
SETTLE, SETTLE_MAX = 1.0, 4.0  # seconds of rounds until the first process is taken as settled
STARTS = 2  # of the second process and of one without Weir, unless the first is good: HIGH may wake up in one
ENOUGH = 300  # seconds; the benchmarks that are left then are cut
HIGH_SLEEPS = ("--gap-min-us", "12000000", "--gap-max-us", "15000000")  # a client idle for 20 s would not count
LEAD = 30_000_000  # ns from a command to the begin of its rounds
ENDLESS = ("work-queue", "polling-server", "endless-simulation")
SIMULATED_ONLY = ("triad", "stencil")

CHOICE = re.compile(r"kernel (\S+), (\d+) blocks, \d+ us: (.+), \d+ us \((.+)\)")
WHO_WAITS = ("while same-level clients wait", "while somebody waits")  # such a line belongs to the one before it
UNKNOWN = "nobody has launched it yet"
NATIVE = "its forms were not ready in time"
# Of a kernel of which libweir does not tell: it was never unknown, because its time follows from other sizes.
UNTOLD = {"": "native as it is, chunk 0"}


def choices(log):
    """(kernel, blocks) to what libweir chose, in order: pairs of the reason and the forms by who waits."""
    found = {}
    for name, blocks, form, why in CHOICE.findall(log):
        chosen = found.setdefault((name, blocks), [])
        if why in WHO_WAITS and chosen:
            chosen[-1][1][why] = form
        else:
            chosen.append((why, {"": form}))
    return found


def settled(log):
    """(kernel, blocks) to the forms that were chosen last, of kernels that were measured or known."""
    return {key: chosen[-1][1] for key, chosen in choices(log).items() if chosen[-1][0] != UNKNOWN}


class Workers:
    """Runs benchmarks in a process each, one after the other."""

    def __init__(self, bench):
        self.node, self.leaving = bench.node, None
        self.seconds = 0.1 if self.node.simulated else SECONDS

    def start(self, name, weir):
        """A process at work. Use as a context: then it leaves."""
        argv = [self.node.bench("worker"), *self.node.sizes, "--only", name]
        argv += ["--class", "trivial" if self.node.simulated else "small"]
        env = {"WEIR_LOG": "debug"} if weir else None
        client = self.node.start(f"worker-{name}", argv, LOW, weir, env=env, stdin=subprocess.PIPE)
        client.wait_ready()
        self.wait_end()
        return Process(self, client)

    def wait_end(self):
        """Of the process that leaves: it fails if a result was wrong."""
        leaving, self.leaving = self.leaving, None
        if leaving:
            leaving.wait_end(60)


class Process:
    """A worker that runs one benchmark."""

    def __init__(self, workers, client):
        self.workers, self.node, self.client = workers, workers.node, client

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind:
            self.client.kill()
        else:
            self.client.process.stdin.close()
            self.workers.leaving = self.client

    def rounds(self, seconds):
        """The ends of rounds one after the other, us after the begin."""
        begin = time.monotonic_ns() + LEAD
        self.client.tell("endless", begin, begin + int(seconds * 1e9), 1, 0)
        return [end / 1e3 for end in self.client.answer(seconds + 60)["ends"]]

    def is_tuning(self):
        time.sleep(0.2)
        return any(known["tuning"] for known in self.node.status() if known["pid"] == self.client.process.pid)

    def settle(self, seconds):
        """Rounds until libweir compares no forms."""
        done = 0
        while done == 0 or (done < SETTLE_MAX and self.is_tuning()):
            self.rounds(seconds)
            done += seconds


def a_round(ends):
    """us, at the end of the measurement."""
    gaps = [after - before for before, after in zip(ends, ends[1:])]
    return statistics.median(gaps[len(gaps) // 2 :]) if gaps else ends[0]


def first_rounds(ends):
    """us of one of the first rounds, on average."""
    n = min(FIRST, len(ends))
    return ends[n - 1] / n


def start_again(workers, name, want):
    """us of a first round and of a settled one, and the kernels whose first forms are not those of @want."""
    with workers.start(name, True) as process:
        ends = process.rounds(workers.seconds)
    log = process.client.errors
    have = {key: chosen[0][1] for key, chosen in choices(log).items()}
    wrong = [kernel for (kernel, blocks), forms in want.items() if have.get((kernel, blocks), UNTOLD) != forms]
    return first_rounds(ends), a_round(ends), sorted(set(wrong)) or ([NATIVE] if NATIVE in log else [])


def start_plain(workers, name):
    """us of a first round and of a settled one without Weir."""
    with workers.start(name, False) as process:
        ends = process.rounds(workers.seconds)
    return first_rounds(ends), a_round(ends)


def start_first(workers, name):
    """us of a settled round of the first process, and what it chose."""
    with workers.start(name, True) as process:
        process.settle(0.2 if workers.node.simulated else SETTLE)
        usual = a_round(process.rounds(workers.seconds))
    return usual, settled(process.client.errors)


def measure(bench, workers, name):
    """Kernels with settled forms, those of them that began otherwise, and whether the first rounds were as fast."""
    usual, want = start_first(workers, name)
    bound, plain, starts, ratio = BOUNDS["first 20 rounds against settled"], [], [], math.inf
    while len(starts) < (1 if workers.node.simulated else STARTS) and (ratio > bound.limit or wrong):
        plain.append(start_plain(workers, name))
        starts.append(start_again(workers, name, want))
        first, _, wrong = min(starts)
        middle = statistics.median([usual, *(settled_us for _, settled_us, _ in starts)])
        # Without Weir the first rounds are slower, too: the driver loads code then.
        plain_first, plain_usual = min(plain)[0], statistics.median(settled_us for _, settled_us in plain)
        ratio = first / middle / (plain_first / plain_usual)
    bench.report.judge(
        f"{name}, first {FIRST} rounds against settled", ratio, bound,
        f"{first:.0f} us, settled {middle:.0f} us; without Weir {plain_first:.0f} us, {plain_usual:.0f} us; "
        f"{len(want)} kernels settled, otherwise at first: {', '.join(wrong) or 'none'}",
    )
    return len(want), sum(len(wrong) for *_, wrong in starts) / len(starts)


def benchmarks(bench):
    """Those that end by themselves."""
    argv = [bench.node.program("kernels"), "--list"]
    listed = subprocess.run(argv, env=bench.node.environment(False), capture_output=True, text=True, check=True).stdout
    names = [line.split()[0] for line in listed.splitlines()]
    return SIMULATED_ONLY if bench.node.simulated else [name for name in names if name not in ENDLESS]


def run(bench):
    left, counts, until = list(bench.part_of(benchmarks(bench))), [], time.monotonic() + ENOUGH
    bench.node.ensure_mps()
    bench.node.renew_agent()
    high = bench.node.start("burst", bench.burst_argv(1 << 40, extra=HIGH_SLEEPS), HIGH, True)
    try:
        high.wait_ready()
        workers = Workers(bench)
        while left and time.monotonic() < until:
            counts.append(measure(bench, workers, left.pop(0)))
        workers.wait_end()
    finally:
        high.kill()  # it would sleep on
    if left:
        bench.report.cut(f"not measured: {', '.join(left)}")
    kernels, wrong = sum(count for count, _ in counts), sum(count for _, count in counts)
    bench.report.judge(
        "kernels whose first launch has the settled form", 100 * (1 - wrong / kernels) if kernels else 0,
        BOUNDS["settled at the first launch"], f"{kernels} kernels with settled forms, by size, of {len(counts)} benchmarks",
    )
