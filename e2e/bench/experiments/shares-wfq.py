"""A client and 1, 3, 7 others run without end under `wfq`: with equal shares, then with two thirds for the first."""

import sharing
import turnarounds
from report import at_most
from workers import SLOTS, Job, pool_of

SHOWS = "2, 4, 8 instances under wfq, equal or one with two thirds: shares in windows of 200 ms, under time-slicing also of 1 s"
PAPER = "GLoop figures 9, 11"
BOUNDS = {"furthest from a share": at_most(sharing.LIMIT, " points")}
BASELINES = ("MPS",)
NEEDS = ("gpu", "mps", "root")
SIMULATED = True
TENANTS = SLOTS
MODES = ("mps", "timeslice")

TARGET = 66  # hundredths
THROTTLE_US = 500  # a launch
# Seconds and how many; and how many make a long window. The hardware's slices are 10 ms on average: of eight clients, a
# window of 200 ms has two or three slices of each.
WINDOWS = {"mps": (0.2, 10, 0), "timeslice": (0.2, 15, 5)}
SCHEDULING = f"scheduling: {{quantum: {sharing.QUANTUM}, minQuantum: {sharing.QUANTUM}}}\n"


def judge(bench, found, window, long):
    """@found: Windows of each co-run, and the targets of its shares. Each has a bound of its own under time-slicing: what
    ideal slices reach. The one that is furthest from it is shown."""
    bound, what = BOUNDS["furthest from a share"], "wfq: furthest from its share, {:.0f} ms windows"
    bounds = [turnarounds.reachable(bench, bound, sharing.ideal_off(wanted, window)) for _, wanted in found]
    offs = [windows.worst(wanted) for windows, wanted in found]
    at = max(range(len(found)), key=lambda i: offs[i] / bounds[i].limit)
    told = ", ".join(f"{off:.2f} of {one.limit:g}" for off, one in zip(offs, bounds))
    bench.report.judge(what.format(1e3 * window), offs[at], bounds[at], f"each co-run: {told}")
    if long:
        off = max(windows.worst(wanted, long) for windows, wanted in found)
        bench.report.judge(what.format(1e3 * window * long), off, bound)


def run(bench):
    pool = pool_of(bench)
    counts = (2,) if bench.node.simulated else (2, 4, 8)
    # Rounds are single launches: other work of a round, such as fills of memory, passes no gate and is not shared.
    target = Job("md5-search", copy=99, kernel="md5_search", us=THROTTLE_US)
    throttles = [Job("matrix-multiply", copy=i, kernel="matrix_multiply", us=THROTTLE_US) for i in range(max(counts))]
    pool.set_policy("wfq", scheduling=SCHEDULING)
    for mode in ("MPS", "Weir"):
        pool.ensure(mode, [target, *throttles])
    window, n_windows, long = (0.1, 3, 3) if bench.node.simulated else WINDOWS[bench.mode]
    seconds = n_windows * window + (0 if bench.node.simulated else sharing.SKIPPED)
    found = []
    for n in counts:
        others = throttles[: n - 1]
        of = [target, *others]
        found.append((f"{n} equal", sharing.co_run(bench, f"{n} equal", of, [100 // n] * n, window, "wfq", seconds, ("MPS",), SCHEDULING), of))
        # Shares are whole numbers, so these are rounded.
        shares = [TARGET, *[max(1, round((100 - TARGET) / len(others)))] * len(others)]
        what = f"{shares[0]} of {sum(shares)}, beside {len(others)}"
        found.append((what, sharing.co_run(bench, what, of, shares, window, "wfq", seconds, (), SCHEDULING), of))
    judge(bench, [both for _, both, _ in found], window, long)
    for figure, (what, (windows, _), of) in zip(("9", "11"), found[-2:]):
        sharing.draw(bench, f"{bench.report.experiment}-{figure}", f"wfq, {what} (GLoop fig. 9, 11)", windows, [f"{i}" for i in range(len(of))])
    sharing.leave(pool, [target, *throttles])
