"""The eleven kernels of EffiSha under `static`, each launched as often as the others: first all at the same time, then some
time after its own end. Each launch has a random priority from 1 to 9. The agent gives priorities to clients, not to
launches. So each kernel has three clients, one with a low priority, one with a middle one and one with a high one, and
each launch is of one of them, drawn at random. The last kernel has no middle one: of more than 32 clients of a level the
agent sees only after up to a millisecond what they do, which is as long as the shortest wait.

In the paper a kernel begins when the daemon says so, and an eviction is that a launch of higher priority takes the GPU from
it. Under MPS a kernel also begins behind one that runs, and leaves at once. So an eviction counts here if both sides saw
one: the agent gave the client's turn to another one, and a kernel of the client left before its end. The figures are of
all launches. Kernels that end sooner than they leave are not evicted, nor are those in a form that cannot leave: rows name
them.

Only the shortest wait and the longest are compared with each other, so they have most launches. On an ideal GPU whose
kernels take 3 % more or less, and 0.15 ms until it decides, the ratio of these two varies by 6 % (standard deviation)
with 24 launches of each kernel, and by 3 % with 96."""

import concurrent.futures
import random
import time

import turnarounds
from papers import EFFISHA
from report import at_least
from workers import MS, SLOTS, Job, pool_of

SHOWS = "evictions by priority, and by the time between a kernel's end and its next launch"
PAPER = "EffiSha figure 9"
BOUNDS = {"low priorities against high ones": at_least(2, "x"), "the shortest wait against the longest": at_least(2, "x")}
BASELINES = ("high priorities", "longer waits", "a GPU that decides at once, with the same launches")
PRINTED = (turnarounds.SWITCH,)
NEEDS = ("gpu", "mps", "root")
SIMULATED = True
TENANTS = SLOTS
MODES = ("mps", "timeslice")

WAITS_MS = (1, 2, 4, 8, 16, 32, 64)
STEP = 5  # shares of a priority: the agent has 20 priorities for 100 shares
THIRDS = range(1, 4), range(4, 7), range(7, 10)  # of the priorities; the first and the last are compared
LOW, _, HIGH = THIRDS
PRIORITIES = range(LOW[0], HIGH[-1] + 1)
SCHEDULING = "scheduling: {aging: never}\n"  # as in the paper: waiting raises no priority
# Of each kernel, for each second of a measurement: after the shortest wait and the longest, and after the others.
LAUNCHES, LAUNCHES_BETWEEN = 32, 4
SETTLE_ROUNDS = 100  # of each kernel alone, while its forms are compared
SEED = 9  # of the priorities
HEAR = 0.0005  # seconds between two looks for an answer


def clients_of(numbers, workload, kernel, ms, thirds):
    """The priority of each of a kernel's clients, one of each of @thirds. The first one's forms are the others', too."""
    jobs = [Job(workload, kernel=kernel, us=round(1e3 * ms), copy=i, brief=i > 0) for i in range(len(thirds))]
    return dict(zip(jobs, map(numbers.choice, thirds)))


def all_clients(numbers):
    thirds = [THIRDS] * (len(EFFISHA) - 1) + [(LOW, HIGH)]
    return [clients_of(numbers, *names, row[0], some) for (names, row), some in zip(EFFISHA.items(), thirds)]


def launches_after(bench, wait):
    """How often each kernel is launched."""
    rate = LAUNCHES if wait in (WAITS_MS[0], WAITS_MS[-1]) else LAUNCHES_BETWEEN
    return 2 if bench.node.simulated else max(1, round(rate * bench.seconds))


def draw(kernels, n):
    """The client of each of the @n launches of each kernel."""
    return [random.Random(i).choices(list(priorities), k=n) for i, priorities in enumerate(kernels)]


def launch_kernel(pool, jobs, wait_ms, begin):
    for job in jobs:
        client = pool.workers["Weir", job].client
        client.tell("several", begin, 1, 1, 0)
        (took,) = client.answer(60, HEAR)["ends"]
        begin += took + wait_ms * MS
        time.sleep(max(0, begin - time.monotonic_ns()) / 1e9)


def launch_all(pool, launches, wait_ms):
    """What the agent counted of each client meanwhile."""
    jobs = list({job: None for each in launches for job in each})
    before, begin = pool.counters(jobs), time.monotonic_ns()
    with concurrent.futures.ThreadPoolExecutor(len(launches)) as threads:
        for chain in [threads.submit(launch_kernel, pool, each, wait_ms, begin) for each in launches]:
            chain.result()
    after = pool.counters(jobs)
    return {job: {name: now[name] - was[name] for name in now} for job, was, now in zip(jobs, before, after)}


def a_launch(counts, priorities, waits):
    """Evictions of a launch, over some priorities and waits. @counts: (evictions, launches) by wait and priority."""
    some = [counts[wait, priority] for wait in waits for priority in priorities if (wait, priority) in counts]
    return sum(evicted for evicted, _ in some) / max(1, sum(launched for _, launched in some))


class Ideal:
    """A GPU under static priorities that decides at once and whose switches cost @switch_ms: the launch of highest priority
    runs, of equal ones the one that came first. @lengths: ms of each kernel; @launches: priorities of its launches."""

    def __init__(self, lengths, launches, wait_ms, switch_ms):
        self.lengths, self.wait, self.switch = lengths, wait_ms, switch_ms
        self.now, self.running = 0.0, None
        self.to_come = [list(reversed(priorities)) for priorities in launches]
        self.priorities, self.left, self.came, self.comes = {}, {}, {}, dict.fromkeys(range(len(lengths)), 0.0)  # ms
        self.counts = {}

    def rank(self, kernel):
        return self.priorities[kernel], -self.came[kernel]

    def count(self, kernel, evicted, launched):
        before = self.counts.get(self.priorities[kernel], (0, 0))
        self.counts[self.priorities[kernel]] = before[0] + evicted, before[1] + launched

    def launch(self, kernel):
        del self.comes[kernel]
        self.priorities[kernel] = self.to_come[kernel].pop()
        self.left[kernel], self.came[kernel] = self.lengths[kernel], self.now
        self.count(kernel, 0, 1)
        if self.running is None:
            self.running = kernel
        elif self.rank(kernel) > self.rank(self.running):
            self.count(self.running, 1, 0)
            self.left[self.running] += self.switch
            self.running = kernel

    def finish(self):
        del self.left[self.running]
        if self.to_come[self.running]:
            self.comes[self.running] = self.now + self.wait
        self.running = max(self.left, key=self.rank, default=None)

    def run(self):
        """(evictions, launches) of each priority."""
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
    dense, sparse = (a_launch(counts, PRIORITIES, [wait]) for wait in (waits[0], waits[-1]))
    return (low, high), (dense, sparse)


def by_priority(priorities, launches, seen):
    """(evictions, launches) of each priority. @priorities: by client; @seen: of launch_all()."""
    counts = {}
    for job in (job for each in launches for job in each):
        evicted, launched = counts.get(priorities[job], (0, 0))
        counts[priorities[job]] = evicted, launched + 1
    for job, counted in seen.items():
        evicted, launched = counts[priorities[job]]
        counts[priorities[job]] = evicted + min(counted["evictions"], counted["preempted"]), launched
    return counts


def stayed(priorities, seen):
    """Clients whose kernels left less than half as often as their turns were taken away."""
    some = [(job, counted) for job, counted in seen.items() if 2 * counted["evictions"] < counted["preempted"]]
    return ", ".join(f"{job.workload} {priorities[job]}: {counted['evictions']} of {counted['preempted']}" for job, counted in some)


def add_wait(bench, wait, counts, priorities, seen, ideal):
    each = " ".join(f"{a_launch(counts, [priority], [wait]):.2f}" for priority in PRIORITIES)
    left, taken = (sum(counted[name] for counted in seen.values()) for name in ("evictions", "preempted"))
    told = f"all {a_launch(counts, PRIORITIES, [wait]):.2f}, ideal {a_launch(ideal, PRIORITIES, [wait]):.2f}; "
    told += f"kernels left {left} times, the agent took {taken} turns away; stayed: {stayed(priorities, seen) or 'none'}"
    bench.report.add(f"launched {wait} ms after its end: evictions of a launch, priorities {PRIORITIES[0]} to {PRIORITIES[-1]}", each, baselines=told)


def run(bench):
    pool = pool_of(bench)
    pool.leave_all()
    kernels = all_clients(random.Random(SEED))[: 3 if bench.node.simulated else None]
    priorities = {job: priority for each in kernels for job, priority in each.items()}
    shares = {job: STEP * priority for job, priority in priorities.items()}
    waits = WAITS_MS[:: 3 if bench.node.simulated else 1]
    pool.set_policy("static", scheduling=SCHEDULING)
    pool.ensure("Weir", shares, SETTLE_ROUNDS)
    lengths = [pool.alone["Weir", next(iter(each))] / 1e3 for each in kernels]
    switch_ms = turnarounds.switch_us(bench) / 1e3
    pool.set_policy("static", shares, SCHEDULING)
    launch_all(pool, draw(kernels, launches_after(bench, waits[1])), waits[0])  # forms settle beside each other
    counts, ideals = {}, {}
    for wait in waits:
        launches = draw(kernels, launches_after(bench, wait))
        seen = launch_all(pool, launches, wait)
        counts |= {(wait, priority): both for priority, both in by_priority(priorities, launches, seen).items()}
        ideal = Ideal(lengths, [[priorities[job] for job in each] for each in launches], wait, switch_ms)
        ideals |= {(wait, priority): both for priority, both in ideal.run().items()}
        add_wait(bench, wait, counts, priorities, seen, ideals)
    judge(bench, waits, counts, ideals)
    pool.leave("Weir", shares)


def judge(bench, waits, counts, ideals):
    titles = f"priorities {LOW[0]} to {LOW[-1]} against {HIGH[0]} to {HIGH[-1]}", f"a wait of {waits[0]} ms against {waits[-1]} ms"
    for title, bound, (a, b), ideal in zip(titles, BOUNDS.values(), ratios(counts, waits), ratios(ideals, waits)):
        reachable = bound.reachable(ideal[0] / max(ideal[1], 1e-3))
        told = f"{a:.2f} and {b:.2f} of a launch; ideal {ideal[0]:.2f} and {ideal[1]:.2f}"
        bench.report.judge(f"{title}: evictions of a launch", a / max(b, 1e-3), reachable, told)
