"""The eleven kernels of EffiSha under `static`, each with a random priority from 1 to 9. Each is launched again some time
after its end. Priorities are drawn anew in each round, because the agent gives them to clients, not to launches. In three
rounds each kernel has a low one, a middle one and a high one, in any order: the paper draws for each of 1000 launches, so
that the kernels at each priority are equally long. Rounds are short: where waits are, too, the client with the highest
priority has the GPU for most of a longer one, and even an ideal scheduler would hardly evict those far below."""

import random

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


def draw(numbers, jobs):
    """The priorities of the jobs in each of three rounds."""
    orders = [numbers.sample(THIRDS, len(THIRDS)) for _ in jobs]
    return [{job: numbers.choice(order[i]) for job, order in zip(jobs, orders)} for i in range(len(THIRDS))]


def launch_all(pool, jobs, wait_ms, seconds):
    commands = [(job, ("again", 0, int(seconds * 1e9), wait_ms * MS, 0)) for job in jobs]
    return [len(answer["ends"]) for answer in pool.ask("Weir", commands, seconds)]


def a_launch(counts, priorities, waits):
    """Evictions of a launch, over some priorities and waits."""
    of = [counts[wait, priority] for wait in waits for priority in priorities if (wait, priority) in counts]
    return sum(evicted for evicted, _ in of) / max(1, sum(launched for _, launched in of))


class Ideal:
    """A GPU under static priorities that decides at once and whose switches cost @switch_ms: the client of highest priority
    runs, of equal ones who came first.

    @begins: a kernel that comes while another one runs begins, and is evicted unless it has a higher priority. So it is
    under MPS, because a client without work is not held: nearly each launch is evicted once, so waits make little
    difference. Under time-slicing a kernel begins when its slice comes, which the hold comes before. Then only those
    are evicted that somebody of higher priority takes the GPU from: some 3 times as often at 1 ms as at 64 ms, but low
    priorities less often than high ones, because they only wait."""

    def __init__(self, priorities, us, wait_ms, seconds, switch_ms, begins):
        self.priorities, self.us, self.wait, self.begins = priorities, us, wait_ms, begins
        self.end, self.switch, self.now, self.running = 1e3 * seconds, switch_ms, 0.0, None
        self.left, self.came, self.comes = {}, {}, {job: 0.0 for job in priorities}  # ms
        self.evicted, self.launched = dict.fromkeys(priorities, 0), dict.fromkeys(priorities, 0)

    def rank(self, job):
        return self.priorities[job], -self.came[job]

    def evict(self, job):
        self.evicted[job] += 1
        self.left[job] += self.switch

    def launch(self, job):
        del self.comes[job]
        if self.now >= self.end:
            return
        self.left[job], self.came[job] = self.us[job] / 1e3, self.now
        self.launched[job] += 1
        if self.running is None:
            self.running = job
            return
        first, second = sorted((job, self.running), key=self.rank)
        if self.begins or first != job:
            self.evict(first)
        self.running = second

    def finish(self):
        del self.left[self.running]
        self.comes[self.running] = self.now + self.wait
        self.running = max(self.left, key=self.rank, default=None)

    def run(self):
        """(evictions, launches) of each, when all are done."""
        while self.comes or self.left:
            due = min(self.comes, key=self.comes.get, default=None)
            ends = self.now + self.left[self.running] if self.running else float("inf")
            until = min(ends, self.comes[due]) if due else ends
            if self.running:
                self.left[self.running] -= until - self.now
            self.now = until
            if until == ends:
                self.finish()
            else:
                self.launch(due)
        return {job: (self.evicted[job], self.launched[job]) for job in self.priorities}


def ratios(counts, waits):
    """Evictions of a launch: at low priorities and at high ones; after the shortest wait and after the longest."""
    low, high = (a_launch(counts, some, waits) for some in (LOW, HIGH))
    dense, sparse = (a_launch(counts, range(1, PRIORITIES + 1), [wait]) for wait in (waits[0], waits[-1]))
    return (low, high), (dense, sparse)


def add_counts(counts, wait, priorities, found):
    for job, (evicted, launched) in found.items():
        before = counts.get((wait, priorities[job]), (0, 0))
        counts[wait, priorities[job]] = before[0] + evicted, before[1] + launched


def run(bench):
    pool, numbers = pool_of(bench), random.Random(9)
    jobs = [Job(workload, kernel=kernel, us=round(1e3 * row[0])) for (workload, kernel), row in EFFISHA.items()]
    jobs = jobs[: 3 if bench.node.simulated else None]
    waits = WAITS_MS[:: 3 if bench.node.simulated else 1]
    seconds = 0.2 if bench.node.simulated else bench.seconds / 12
    rounds = draw(numbers, jobs) + draw(numbers, jobs)
    rounds = rounds[: 1 if bench.node.simulated else None]
    pool.set_policy("static")
    pool.ensure("Weir", jobs)
    alone = {job: pool.alone["Weir", job] for job in jobs}
    switch_ms = turnarounds.switch_us(bench) / 1e3
    counts, ideals = {}, {True: {}, False: {}}  # by wait and priority: evictions and launches
    for priorities in rounds:
        pool.set_policy("static", {job: STEP * priority for job, priority in priorities.items()})
        launch_all(pool, jobs, waits[0], seconds)  # forms settle
        for wait in waits:
            before = pool.counters(jobs)
            launched = launch_all(pool, jobs, wait, seconds)
            evicted = [now["evictions"] - was["evictions"] for was, now in zip(before, pool.counters(jobs))]
            add_counts(counts, wait, priorities, dict(zip(jobs, zip(evicted, launched))))
            for begins in ideals:
                model = Ideal(priorities, alone, wait, seconds, switch_ms, begins)
                add_counts(ideals[begins], wait, priorities, model.run())
    for wait in waits:
        each = " ".join(f"{a_launch(counts, [priority], [wait]):.2f}" for priority in range(1, PRIORITIES + 1))
        told = f"{sum(evicted for (w, _), (evicted, _) in counts.items() if w == wait)} evictions"
        bench.report.add(f"launched {wait} ms after its end: evictions of a launch, priorities 1 to {PRIORITIES}", each, baselines=told)
    judge(bench, waits, counts, ideals)
    pool.leave("Weir", jobs)


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
