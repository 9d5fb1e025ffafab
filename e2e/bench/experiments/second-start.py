"""Each benchmark that ends by itself runs until libweir has settled on forms for its kernels. Then it starts again: the
second pod of its kind. HIGH shares the GPU and sleeps. Which forms a process has chosen stands in libweir's log.

Processes of one kind differ by a per cent or two, also without Weir. So a settled round takes the median of all of them:
the first one and the second ones, with Weir or without. The first rounds count with all that makes them slow. Part of
that is the driver, which loads code then: the same without Weir stands beside the figure.

A process checks its results while the next one makes its context. No rounds are measured meanwhile."""

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
STARTS = 2  # of the second process and of one without Weir: HIGH may wake up in one; their mean counts
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


def what_of(name):
    return f"{name}, first {FIRST} rounds against settled"


def measure(bench, workers, name):
    """Kernels with settled forms, and those of them that began otherwise in a start, on average."""
    usual, want = start_first(workers, name)
    plain, starts = [], []
    for _ in range(1 if workers.node.simulated else STARTS):
        plain.append(start_plain(workers, name))
        starts.append(start_again(workers, name, want))
    judge(bench, name, usual, starts, plain)
    wrong = sorted({kernel for *_, kernels in starts for kernel in kernels})
    bench.report.add(f"{name}, kernels that begin otherwise", f"{len(wrong)} of {len(want)}", baselines=", ".join(wrong) or "-")
    return len(want), sum(len(kernels) for *_, kernels in starts) / len(starts)


def judge(bench, name, usual, starts, plain):
    """@usual: us of a settled round of the first process; @starts, @plain: what start_again() and start_plain() return."""
    first = statistics.fmean(us for us, *_ in starts)
    settled_us = statistics.median([usual, *(us for _, us, _ in starts)])
    plain_first, plain_usual = statistics.fmean(us for us, _ in plain), statistics.median(us for _, us in plain)
    bench.report.judge(
        what_of(name), first / settled_us, BOUNDS["first 20 rounds against settled"],
        f"{first:.0f} us, settled {settled_us:.0f} us; without Weir {plain_first:.0f} us, {plain_usual:.0f} us: "
        f"{plain_first / plain_usual:.3f}x; starts: {', '.join(f'{us / settled_us:.3f}x' for us, *_ in starts)}",
    )


def judge_forms(bench, counts, benchmarks):
    """@counts: what measure() returns of each benchmark, of so many @benchmarks."""
    kernels, wrong = sum(count for count, _ in counts), sum(count for _, count in counts)
    what, bound = "kernels whose first launch has the settled form", BOUNDS["settled at the first launch"]
    of = f"{kernels} kernels with settled forms, by size, of {len(counts)} of {benchmarks} benchmarks"
    if kernels:
        bench.report.judge(what, 100 * (1 - wrong / kernels), bound, of)
    else:
        bench.report.lacks(what, bound, of)


def benchmarks(bench):
    """Those that end by themselves."""
    argv = [bench.node.program("kernels"), "--list"]
    listed = subprocess.run(argv, env=bench.node.environment(False), capture_output=True, text=True, check=True).stdout
    names = [line.split()[0] for line in listed.splitlines()]
    return SIMULATED_ONLY if bench.node.simulated else [name for name in names if name not in ENDLESS]


def run(bench):
    every = benchmarks(bench)
    left, counts, until = bench.part_of(every), [], time.monotonic() + ENOUGH
    bench.node.ensure_mps()
    bench.node.renew_agent()
    high = bench.node.start("burst", bench.burst_argv(1 << 40, extra=HIGH_SLEEPS), HIGH, True)
    try:
        high.wait_ready()
        workers = Workers(bench)
        while left and time.monotonic() < until:
            with bench.report.guard(left[0]):
                counts.append(measure(bench, workers, left[0]))
            left.pop(0)
        workers.wait_end()
    finally:
        high.kill()  # it would sleep on
    for name in left:
        bench.report.lacks(what_of(name), BOUNDS["first 20 rounds against settled"], "no time was left")
    judge_forms(bench, counts, len(every))
