"""The eleven kernels of EffiSha under `static`. Each launch has a random priority from 1 to 9, and each kernel is launched
again some time after its end. The agent gives priorities to clients, not to launches. So each kernel has three clients, one
with a low priority, one with a middle one and one with a high one, and each launch is of one of them, drawn at random.

Figures are means over the kernels. With short waits most launches are of short kernels, which are seldom evicted: libweir
lets kernels run to their end that leave no sooner."""

import concurrent.futures
import random
import time

import turnarounds
from experiment import MPS
from papers import EFFISHA
from report import at_least
from workers import MS, SLOTS, Job, pool_of

SHOWS = "evictions by priority, and by the time between a kernel's end and its next launch"
PAPER = "EffiSha figure 9"
BOUNDS = {"low priorities against high ones": at_least(2, "x"), "the shortest wait against the longest": at_least(2, "x")}
BASELINES = ("high priorities", "longer waits")
NEEDS = ("gpu", "mps", "root")
SIMULATED = True
TENANTS = SLOTS
MODES = ("mps", "timeslice")

WAITS_MS = (1, 2, 4, 8, 16, 32, 64)
PRIORITIES = 9
STEP = 5  # shares of a priority: the agent has 20 priorities for 100 shares
THIRDS = range(1, 4), range(4, 7), range(7, 10)  # of the priorities; the first and the last are compared
LOW, _, HIGH = THIRDS
SCHEDULING = "scheduling: {aging: never}\n"  # as in the paper: waiting raises no priority
SETTLE = 4  # seconds: forms settle
HEAR = 0.0005  # seconds between two looks for an answer
IDEAL_SECONDS = 60


def clients_of(numbers, workload, kernel, ms):
    """The priority of each of a kernel's clients. The first one's forms are the others', too."""
    jobs = [Job(workload, kernel=kernel, us=round(1e3 * ms), copy=i, brief=i > 0) for i in range(len(THIRDS))]
    return dict(zip(jobs, map(numbers.choice, THIRDS)))


def launch_kernel(pool, jobs, seed, wait_ms, end):
    """Launches a kernel again and again until @end, each time from a random one of @jobs. Returns the number of each."""
    numbers, launched = random.Random(seed), dict.fromkeys(jobs, 0)
    begin = time.monotonic_ns()
    while begin < end:
        job = numbers.choice(jobs)
        client = pool.workers["Weir", job].client
        client.tell("several", begin, 1, 1, 0)
        (took,) = client.answer(60, HEAR)["ends"]
        launched[job] += 1
        begin += took + wait_ms * MS
        time.sleep(max(0, begin - time.monotonic_ns()) / 1e9)
    return launched


def launch_all(pool, kernels, wait_ms, seconds):
    """(evictions, launches) of each client."""
    jobs = [job for priorities in kernels for job in priorities]
    before, launched = pool.counters(jobs), {}
    end = time.monotonic_ns() + int(seconds * 1e9)
    with concurrent.futures.ThreadPoolExecutor(len(kernels)) as threads:
        chains = [threads.submit(launch_kernel, pool, list(k), i, wait_ms, end) for i, k in enumerate(kernels)]
        for chain in chains:
            launched |= chain.result()
    evicted = [now["evictions"] - was["evictions"] for was, now in zip(before, pool.counters(jobs))]
    return {job: (n, launched[job]) for job, n in zip(jobs, evicted)}


def a_launch(counts, priorities, waits):
    """Evictions of a launch, over some priorities and waits: the mean over the kernels that were launched there."""
    kernels = {}
    for (wait, kernel, priority), (evicted, launched) in counts.items():
        if wait in waits and priority in priorities:
            before = kernels.get(kernel, (0, 0))
            kernels[kernel] = before[0] + evicted, before[1] + launched
    rates = [evicted / launched for evicted, launched in kernels.values() if launched]
    return sum(rates) / max(1, len(rates))


class Ideal:
    """A GPU under static priorities that decides at once and whose switches cost @switch_ms: the launch of highest priority
    runs, of equal ones the one that came first. @lengths: ms of each kernel.

    @begins: a kernel that comes while another one runs begins, and is evicted unless it has a higher priority. So it is
    under MPS, because a client without work is not held: nearly each launch is evicted once, so waits make little
    difference. Under time-slicing a kernel begins when its slice comes, which the hold comes before. Then only those
    are evicted that a launch of higher priority takes the GPU from."""

    def __init__(self, lengths, wait_ms, seconds, switch_ms, begins):
        self.lengths, self.wait, self.begins, self.numbers = lengths, wait_ms, begins, random.Random(9)
        self.end, self.switch, self.now, self.running = 1e3 * seconds, switch_ms, 0.0, None
        self.priorities, self.left, self.came, self.comes = {}, {}, {}, dict.fromkeys(lengths, 0.0)  # ms
        self.counts = {}

    def rank(self, kernel):
        return self.priorities[kernel], -self.came[kernel]

    def count(self, kernel, evicted, launched):
        before = self.counts.get((kernel, self.priorities[kernel]), (0, 0))
        self.counts[kernel, self.priorities[kernel]] = before[0] + evicted, before[1] + launched

    def evict(self, kernel):
        self.count(kernel, 1, 0)
        self.left[kernel] += self.switch

    def launch(self, kernel):
        del self.comes[kernel]
        if self.now >= self.end:
            return
        self.priorities[kernel] = self.numbers.randint(1, PRIORITIES)
        self.left[kernel], self.came[kernel] = self.lengths[kernel], self.now
        self.count(kernel, 0, 1)
        if self.running is None:
            self.running = kernel
            return
        first, second = sorted((kernel, self.running), key=self.rank)
        if self.begins or first != kernel:
            self.evict(first)
        self.running = second

    def finish(self):
        del self.left[self.running]
        self.comes[self.running] = self.now + self.wait
        self.running = max(self.left, key=self.rank, default=None)

    def run(self):
        """(evictions, launches) of each kernel and priority, when all are done."""
        while self.comes or self.left:
            due = min(self.comes, key=self.comes.get, default=None)
            ends = self.now + self.left[self.running] if self.running is not None else float("inf")
            until = min(ends, self.comes[due]) if due is not None else ends
            if self.running is not None:
                self.left[self.running] -= until - self.now
            self.now = until
            if until == ends:
                self.finish()
            else:
                self.launch(due)
        return self.counts


def ratios(counts, waits):
    """Evictions of a launch: at low priorities and at high ones; after the shortest wait and after the longest."""
    low, high = (a_launch(counts, some, waits) for some in (LOW, HIGH))
    dense, sparse = (a_launch(counts, range(1, PRIORITIES + 1), [wait]) for wait in (waits[0], waits[-1]))
    return (low, high), (dense, sparse)


def by_kernel(kernels, found):
    """(evictions, launches) of each kernel and priority."""
    return {(i, priority): found[job] for i, priorities in enumerate(kernels) for job, priority in priorities.items()}


def run(bench):
    pool, numbers = pool_of(bench), random.Random(9)
    pool.leave_all()
    kernels = [clients_of(numbers, workload, kernel, row[0]) for (workload, kernel), row in EFFISHA.items()]
    kernels = kernels[: 3 if bench.node.simulated else None]
    shares = {job: STEP * priority for priorities in kernels for job, priority in priorities.items()}
    waits = WAITS_MS[:: 3 if bench.node.simulated else 1]
    seconds = 0.2 if bench.node.simulated else bench.seconds / 2
    pool.set_policy("static", scheduling=SCHEDULING)
    pool.ensure("Weir", shares)
    lengths = {i: pool.alone["Weir", next(iter(priorities))] / 1e3 for i, priorities in enumerate(kernels)}
    switch_ms = turnarounds.switch_us(bench) / 1e3
    pool.set_policy("static", shares, SCHEDULING)
    launch_all(pool, kernels, waits[0], seconds if bench.node.simulated else SETTLE)
    counts, ideals = {}, {True: {}, False: {}}  # by wait, kernel and priority: evictions and launches
    for wait in waits:
        found = by_kernel(kernels, launch_all(pool, kernels, wait, seconds))
        counts |= {(wait, *of): both for of, both in found.items()}
        for begins, ideal in ideals.items():
            model = Ideal(lengths, wait, IDEAL_SECONDS, switch_ms, begins)
            ideal |= {(wait, *of): both for of, both in model.run().items()}
        each = " ".join(f"{a_launch(counts, [priority], [wait]):.2f}" for priority in range(1, PRIORITIES + 1))
        told = f"{sum(evicted for evicted, _ in found.values())} evictions of {sum(launched for _, launched in found.values())} launches"
        told += "; by kernel " + " ".join(f"{a_launch({of: counts[of]}, [of[2]], [wait]):.2f}/{counts[of][1]}" for of in counts if of[0] == wait)
        bench.report.add(f"launched {wait} ms after its end: evictions of a launch, priorities 1 to {PRIORITIES}", each, baselines=told)
    judge(bench, waits, counts, ideals)
    pool.leave("Weir", shares)


def judge(bench, waits, counts, ideals):
    """Against the ideal of the mode; the other one stands beside it."""
    titles = "priorities 1 to 3 against 7 to 9", f"a wait of {waits[0]} ms against {waits[-1]} ms"
    ideal, other = (ratios(ideals[begins], waits) for begins in (bench.mode == MPS, bench.mode != MPS))
    for title, bound, (a, b), own, others in zip(titles, BOUNDS.values(), ratios(counts, waits), ideal, other):
        reachable = bound.reachable(own[0] / max(own[1], 1e-3))
        told = f"{a:.2f} and {b:.2f} of a launch; ideal {own[0]:.2f} and {own[1]:.2f}, if kernels "
        told += "only began when they may run" if bench.mode == MPS else "began at once"
        told += f" {others[0]:.2f} and {others[1]:.2f}"
        bench.report.judge(f"{title}: evictions of a launch", a / max(b, 1e-3), reachable, told)
