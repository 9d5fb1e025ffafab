"""Clients that all want all of the GPU: the part of each, window by window."""

import dataclasses

import plot
from workers import pool_of, progress

FORMED_S = 0.2  # to measure a round alone, in the form that it has among others
SKIPPED = 0.4  # seconds at the beginning that no window has, unless an experiment says more
PIECES = 4  # of a co-run before it counts, at most
# us of work that each client has queued where the hardware's slices share the GPU: its processor may be 3 ms late, and
# whose queue runs dry loses the rest of its slice. With 2 ms one lost 16 ms of a second so (H100).
QUEUED_US = 10_000
LIMIT = 1.0  # percentage points that a share may be off in a window
SLICE = 0.010  # s, the mean of those of equal clients (agent/hardware/slices.h)
# Of wfq: a launch of shares-wfq. With 1 ms and eight clients, weir-sim is 1.2 points off in a window of 200 ms; with this
# quantum, 0.75.
QUANTUM = "500us"


class Windows:
    """@shares: of each window, each client's per cent of the work of all. @used: of each window, the per cent of its time
    that the same work takes without Weir. @us: of a round of each, alone. @tuning: at the end libweir still compared
    forms. @plain: of each, the time of a round without Weir, divided by that with Weir. @skipped: seconds before the first
    one."""

    def __init__(self, pool, jobs, ends, us, window, seconds, tuning, skipped):
        self.tuning = tuning
        self.plain = [pool.alone["MPS", job] / u for job, u in zip(jobs, us)]
        self.starts = []
        at = skipped if not pool.node.simulated else 0
        while at + window <= seconds + 1e-9:
            self.starts.append(at)
            at += window
        self.work = [[self.progress_in(e, t, window) * u for e, u in zip(ends, us)] for t in self.starts]
        self.shares = self.joined(1)
        self.used = [100 * sum(w * p for w, p in zip(row, self.plain)) / (window * 1e6) for row in self.work]

    @staticmethod
    def progress_in(ends, start, window):
        return progress(ends, (start + window) * 1e9) - progress(ends, start * 1e9)

    def joined(self, n):
        """The shares in each @n windows, one behind the other."""
        rows = [[sum(of) for of in zip(*self.work[i : i + n])] for i in range(0, len(self.work) - n + 1, n)]
        return [[100 * w / (sum(row) or 1) for w in row] for row in rows]

    def worst(self, targets, joined=1):
        """The furthest that a window, or so many together, is from a target, in percentage points."""
        return max((abs(s - t) for row in self.joined(joined) for s, t in zip(row, targets)), default=0)

    def mean(self, i):
        return sum(row[i] for row in self.shares) / max(1, len(self.shares))

    @property
    def loss(self):
        return 100 - sum(self.used) / max(1, len(self.used))


@dataclasses.dataclass
class CoRun:
    """@plain: per cent lost by the same jobs under MPS without Weir or weights; None: not measured. @late: us that the agent's
    timers were late, on average."""

    experiment: str
    what: str
    policy: str
    jobs: list
    shares: list
    windows: Windows
    plain: float
    late: float


def measure(bench, mode, jobs, window, seconds, priorities=(), skipped=SKIPPED, queued_us=0):
    pool = pool_of(bench)
    ends = pool.endless(mode, jobs, seconds, priorities, queued_us)
    tuning = mode == "Weir" and pool.tuning(jobs)
    if mode == "Weir":  # in the form that the kernel got among others
        us = [pool.round_us(mode, job, FORMED_S) for job in jobs]
    else:
        us = [pool.alone[mode, job] for job in jobs]
    return Windows(pool, jobs, ends, us, window, seconds, tuning, skipped)


def evictions(pool):
    return sum(client["evictions"] for client in pool.node.status())


def ideal_off(shares, window):
    """How far a part is off in a window if the hardware shares ideally by slices: a window ends anywhere in a cycle of all
    slices."""
    cycle = SLICE * len(shares)
    parts = [share / sum(shares) for share in shares]
    return 100 * max(part * (1 - part) * cycle / window for part in parts)


def targets(shares):
    return [100 * share / sum(shares) for share in shares]


def shown(windows, n):
    return ":".join(f"{windows.mean(i):.1f}" for i in range(n))


def learn(bench, jobs, window, seconds, queued_us=0):
    """Runs in pieces until libweir has compared its forms. Returns the windows of each piece."""
    pieces = [measure(bench, "Weir", jobs, window, seconds, queued_us=queued_us)]
    while pieces[-1].tuning and len(pieces) < PIECES:
        pieces.append(measure(bench, "Weir", jobs, window, seconds, queued_us=queued_us))
    return pieces


def co_run(bench, what, jobs, shares, window, policy, seconds, baselines, scheduling="", first=0, skipped=SKIPPED, queued_us=0):
    """Runs @jobs with @shares and the baselines without; returns the windows and their targets. @first: seconds of each
    piece of learn() before the run that counts; 0: none."""
    pool = pool_of(bench)
    plain = {mode: measure(bench, mode, jobs, window, seconds, skipped=skipped, queued_us=queued_us) for mode in baselines}
    others = [f"{mode} {shown(of, len(jobs))}, loss {of.loss:.1f} %" for mode, of in plain.items()]
    pool.set_policy(policy, dict(zip(jobs, shares)), scheduling)
    wanted = targets(shares)
    if first:
        pieces = learn(bench, jobs, window, first, queued_us)
        others.append(f"pieces of {first:g} s before it counts: {len(pieces)}, worst window of the first {pieces[0].worst(wanted):.2f} off")
    before = evictions(pool)
    windows = measure(bench, "Weir", jobs, window, seconds, skipped=skipped, queued_us=queued_us)
    others.append(f"{evictions(pool) - before} evictions")
    if windows.tuning:
        others.append("forms are not settled")
    for start, row, used in zip(windows.starts, windows.shares, windows.used):
        print(f"    {what}, {start:.1f} s: {':'.join(f'{share:.2f}' for share in row)}, {used:.1f} % used", flush=True)
    lost = plain["MPS"].loss if "MPS" in plain else None
    bench.co_runs.append(CoRun(bench.report.experiment, what, policy, jobs, shares, windows, lost, bench.node.timers_late()))
    text = f"{shown(windows, len(jobs))}, worst window {windows.worst(wanted):.2f} off"
    bench.report.add(f"{what}, {policy}", f"{text}, loss {windows.loss:.2f} %", baselines="; ".join(others))
    return windows, wanted


def draw(bench, name, title, windows, names):
    if bench.plots:
        series = {name: [row[i] for row in windows.shares] for i, name in enumerate(names)}
        plot.lines(bench.plots / f"{name}.svg", title, "% of the work", windows.starts, series)


def short(bench, seconds):
    return 0.3 if bench.node.simulated else seconds


def scheduling(quantum):
    """Of the agent's configuration: turns of this length."""
    return f"scheduling: {{quantum: {quantum}, minQuantum: {quantum}}}\n"


def leave(pool, jobs):
    for mode in ("MPS", "Weir"):
        pool.leave(mode, [job for job in jobs if (mode, job) in pool.workers])
