"""Kernels that are launched in groups, one right behind the other, and how long each takes until its end."""

import statistics

import papers
import plot
from experiment import MPS
from workers import FITS, Job, pool_of, progress

ALL = 28  # pairs or triplets of FLEP's
BEHIND_US = 100  # from one launch of a group to the next
LEARNING = 3  # times at most that a group runs before it counts
MODES = ("MPS", "time-slicing", "Weir")
SWITCH = "a context switch, as time-slicing has it"  # the row that says what physics costs
# The kernel by which switches are measured, and how often, or for how long; the driver's slice.
SWITCH_US, SWITCH_TIMES, SWITCH_SECONDS, SLICE_US = 500, 40, 0.3, 2048


def times(bench):
    return 2 if bench.node.simulated else 6


def budget(bench, what):
    """How many of all pairs or triplets there is time for; the report says so if it is not all."""
    n = 2 if bench.node.simulated else min(ALL, max(4, round(ALL * bench.seconds / 3)))
    if n < ALL:
        bench.report.cut(f"{n} of {ALL} {what}")
    return n


def medians(bench, mode, jobs, offsets, priorities=()):
    """us from the launch to the end of each job."""
    pool = pool_of(bench)
    every = 10 + 2.5 * sum(pool.alone[mode, job] for job in jobs) / 1e3 + max(offsets) / 1e3
    every = 60 if bench.node.simulated else every
    return [statistics.median(of) for of in pool.timed_rounds(mode, jobs, offsets, every, times(bench), priorities)]


def singles(bench, jobs, mode="MPS"):
    """us of each alone, from the launch to the end."""
    return {job: medians(bench, mode, [job], [0])[0] for job in jobs}


def ensure_all(bench, jobs, governed):
    """Starts @jobs without libweir, then @governed with it."""
    pool = pool_of(bench)
    first = [job for job in jobs if (job.kernel, job.us) not in pool.passes]
    for mode in ("MPS", "time-slicing"):
        pool.ensure(mode, jobs)
    if not bench.node.simulated:
        pool.fit_again(singles(bench, first))  # before libweir learns their times
    pool.ensure("Weir", governed)
    if not bench.node.simulated:
        fit(bench, jobs, governed)


def fit(bench, jobs, governed):
    """Corrects passes while all workers are there: some kernels then take a few per cent more or less than alone."""
    pool = pool_of(bench)
    changed = set()
    for _ in range(FITS):
        other = pool.fit_again(singles(bench, jobs))
        changed |= {(job.kernel, job.us) for job in other}
        if not other:
            break
    for job in governed:
        if (job.kernel, job.us) in changed:
            pool.measure("Weir", job)
    print("    passes: " + ", ".join(f"{papers.name(job)} {pool.passes[job.kernel, job.us]}" for job in jobs), flush=True)


def idle_switch(pool, jobs):
    """Two clients launch in turn, when the GPU is idle; each one's time is compared with its time alone."""
    every = 8 * SWITCH_US
    alone = statistics.median(pool.timed_rounds("time-slicing", jobs[:1], [0], every / 1e3, SWITCH_TIMES)[0])
    times = pool.timed_rounds("time-slicing", jobs, [0, every / 2], every / 1e3, SWITCH_TIMES)
    return max(0, statistics.median(sum(times, [])) - alone)


def busy_switch(pool, jobs):
    """Two clients that always have work take turns of the driver's slice, so a switch takes what a slice and a switch have
    less than a slice alone."""
    rates = [progress(*pool.endless("time-slicing", [job], SWITCH_SECONDS), SWITCH_SECONDS * 1e9) for job in jobs]
    ends = pool.endless("time-slicing", jobs, SWITCH_SECONDS)
    used = sum(progress(each, SWITCH_SECONDS * 1e9) / rate for each, rate in zip(ends, rates))
    return max(0, SLICE_US * (1 / used - 1))


def switches_us(bench):
    """us that a context switch takes, in the mode timeslice; 0 under MPS: on an idle GPU, and between clients whose kernels
    run and must be saved and restored. Measured without libweir."""
    if bench.mode == MPS or bench.node.simulated:
        return 0, 0
    if bench.switches_us is None:
        pool = pool_of(bench)
        jobs = [Job("matrix-multiply", copy=60 + i, kernel="matrix_multiply", us=SWITCH_US) for i in range(2)]
        pool.ensure("time-slicing", jobs)
        bench.switches_us = idle_switch(pool, jobs), busy_switch(pool, jobs)
        pool.leave("time-slicing", jobs)
    idle, busy = bench.switches_us
    bench.report.add(SWITCH, f"{idle:.0f} us", baselines=f"between running kernels {busy:.0f} us")
    return bench.switches_us


def switch_us(bench):
    """On an idle GPU: what it costs who comes, if kernels leave at once by themselves."""
    return switches_us(bench)[0]


def known_switches(bench):
    """switches_us(), measured and told once for all parts of an experiment."""
    return bench.switches_us or switches_us(bench)


def antt(together, alone):
    return sum(t / a for t, a in zip(together, alone)) / len(alone)


def stp(together, alone):
    return sum(a / t for t, a in zip(together, alone))


def shown(times):
    return "/".join(f"{us:.0f}" for us in times)


def reachable(bench, bound, ideal):
    """The bound in the mode timeslice: physics may not allow what is possible under MPS."""
    return bound if bench.mode == MPS else bound.reachable(ideal)


def mean(values):
    return sum(values) / len(values)


def reordered_times(bench, group, offsets, by):
    """Times without preemption if waiting kernels ran shortest first. MPS serves in the order of launches, so they are
    launched in that order, and each time is corrected by the difference of the launches."""
    order = [0, *sorted(range(1, len(group)), key=lambda i: by[i])]
    jobs = [group[i] for i in order]
    found = medians(bench, "MPS", jobs, offsets)
    times = dict(zip(order, (us + offsets[at] - offsets[i] for at, (i, us) in enumerate(zip(order, found)))))
    return [times[i] for i in range(len(group))]


def behind(group):
    return [BEHIND_US * i for i in range(len(group))]


def still_comparing(bench, group):
    """Runs the group; whether libweir still compares forms afterwards."""
    medians(bench, "Weir", list(group), behind(group))
    return pool_of(bench).tuning(group)


def learn(bench, groups):
    """Runs the groups until libweir has compared its forms, LEARNING times at most."""
    for _ in range(LEARNING):
        groups = [group for group in groups if still_comparing(bench, group)]
    if groups:
        print(f"    forms are not settled in {len(groups)} groups", flush=True)


def ideal_times(by, switch=0):
    """Of shortest first, if all arrive at once, and preemption costs nothing but a switch for each."""
    done, times = 0, []
    for us in sorted(by):
        done += us + switch
        times.append(done)
    return times


def antt_ideal(by, switch=0):
    return antt(ideal_times(by, switch), sorted(by))


def co_runs(bench, title, groups):
    """Clients of one level under hpf, the first one large: rows of (label, ANTT against MPS, STP lost in per cent, ANTT of
    time-slicing, of reordering, the ideal one, the STP that an ideal loses), and the baselines as text. @title: of the
    plot."""
    pool, switch = pool_of(bench), switch_us(bench)
    jobs = {job: None for group in groups for job in group}
    ensure_all(bench, jobs, jobs)
    alone = singles(bench, jobs)
    pool.set_policy("hpf")
    learn(bench, groups)
    rows = []
    for group in groups:
        offsets = behind(group)
        by = [alone[job] for job in group]
        together = {mode: medians(bench, mode, list(group), offsets) for mode in MODES}
        reordered = antt(reordered_times(bench, group, offsets, by), by)
        antts = {mode: antt(together[mode], by) for mode in MODES}
        label = "_".join(papers.name(job) for job in group)
        print(f"    {label}: alone {shown(by)} us; " + ", ".join(f"{mode} {shown(us)}" for mode, us in together.items()), flush=True)
        lost = 100 * (1 - stp(together["Weir"], by) / stp(together["MPS"], by))
        ideal = antts["MPS"] / antt_ideal(by, switch)
        ideal_lost = 100 * (1 - stp(ideal_times(by, switch), sorted(by)) / stp(together["MPS"], by))
        rows.append((label, antts["MPS"] / antts["Weir"], lost, antts["MPS"] / antts["time-slicing"], antts["MPS"] / reordered, ideal, ideal_lost))
    note = f"{len(rows)} of {ALL}; ideal {mean([r[5] for r in rows]):.2f}x; " + "time-slicing {:.2f}x, reordering {:.2f}x".format(*(mean([r[i] for r in rows]) for i in (3, 4)))
    if bench.plots:
        plot.bars(
            bench.plots / f"{bench.report.experiment}.svg", title, "x",
            [r[0] for r in rows], {"ideal": [r[5] for r in rows], "Weir": [r[1] for r in rows], "time-slicing": [r[3] for r in rows]},
        )  # fmt: skip
    return rows, note
