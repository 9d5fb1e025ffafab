"""The eleven kernels of EffiSha under `static`, each with a random priority from 1 to 9. Each is launched again some time
after its end. Priorities are drawn anew in each round, because the agent gives them to clients, not to launches. In three
rounds each kernel has a low one, a middle one and a high one, in any order: the paper draws for each of 1000 launches, so
that the kernels at each priority are equally long. Rounds are short: where waits are, too, the client with the highest
priority has the GPU for most of a longer one, and even an ideal scheduler would hardly evict those far below."""

import random

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
    counts = {}  # by wait and priority: evictions and launches
    for priorities in rounds:
        pool.set_policy("static", {job: STEP * priority for job, priority in priorities.items()})
        launch_all(pool, jobs, waits[0], seconds)  # forms settle
        for wait in waits:
            before = pool.counters(jobs)
            launched = launch_all(pool, jobs, wait, seconds)
            for job, was, now, n in zip(jobs, before, pool.counters(jobs), launched):
                key = wait, priorities[job]
                evicted, sum_launched = counts.get(key, (0, 0))
                counts[key] = evicted + now["evictions"] - was["evictions"], sum_launched + n
    for wait in waits:
        each = " ".join(f"{a_launch(counts, [priority], [wait]):.2f}" for priority in range(1, PRIORITIES + 1))
        told = f"{sum(evicted for (w, _), (evicted, _) in counts.items() if w == wait)} evictions"
        bench.report.add(f"launched {wait} ms after its end: evictions of a launch, priorities 1 to {PRIORITIES}", each, baselines=told)
    low, high = (a_launch(counts, some, waits) for some in (LOW, HIGH))
    told = f"{low:.2f} and {high:.2f} of a launch"
    bench.report.judge("priorities 1 to 3 against 7 to 9: evictions of a launch", low / max(high, 1e-3), BOUNDS["low priorities against high ones"], told)
    dense, sparse = (a_launch(counts, range(1, PRIORITIES + 1), [wait]) for wait in (waits[0], waits[-1]))
    what = f"a wait of {waits[0]} ms against {waits[-1]} ms: evictions of a launch"
    bench.report.judge(what, dense / max(sparse, 1e-3), BOUNDS["the shortest wait against the longest"], f"{dense:.2f} and {sparse:.2f}")
    pool.leave("Weir", jobs)
