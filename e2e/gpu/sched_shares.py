"""Parts d, f and k: who gets how much of a GPU that all want, window by window, and what weir-sim says
would come of it."""

import dataclasses
import json
import subprocess
import time

import plot
from players import DEPTH, Role, progress, sample, stage_of

# FLEP, table 1: our name of it, its kernel, us of that with the large input and with the small one.
FLEP = {
    "CFD": ("euler", "euler_fluxes", 11106, 521),
    "NN": ("nearest-neighbour", "nearest_distance", 15775, 728),
    "PF": ("path-find", "path_find", 7364, 811),
    "PL": ("particle-filter", "filter_resample", 5419, 952),
    "MD": ("molecular-dynamics", "md_forces", 15905, 938),
    "SPMV": ("sparse-multiply", "sparse_multiply", 5840, 484),
    "MM": ("matrix-multiply", "matrix_multiply", 2579, 1499),
    "VA": ("vector-add", "vector_add", 30634, 720),
}
# Elements of the small input, where whole passes over that of the class make the time off by more than 2 %.
FINER = {"MD": 64, "SPMV": 1 << 15, "MM": 320, "VA": 1 << 23}
LARGE = ("CFD", "NN", "PF", "PL")  # section 6.3.1: the low-priority ones
FORMED_S = 0.2
SKIPPED = 0.4  # seconds at the begin that no window has
PIECES = 4  # of a contest before it counts, at most
LIMIT = 1.0  # percentage points
LOSS_LIMIT = 3.0  # per cent
SIM_LIMIT = 2.0  # per cent
TARGET = 66
THROTTLE_US = 500  # part f: a launch of each
# What weir-sim is told of the machine: kernels of up to a millisecond run to their end, for libweir leaves them as they are
# while equals take turns; of others gates let half of their interval pass. And of the agent: its evictionCost, and how often it looks
# (SCHEDULER_LOOK_NS); how late its timers are it says itself.
SHORT_US, EVICT, COST, LOOK = 1000, "50us", "200us", "800us"
# Of wfq: a launch of part f. With 1 ms and eight clients, weir-sim is 1.2 points off in a window of 200 ms; so, 0.75.
QUANTUM = "500us"
SCHEDULING = f"scheduling: {{quantum: {QUANTUM}, minQuantum: {QUANTUM}}}\n"


def large(name):
    workload, kernel, us, _ = FLEP[name]
    return Role(workload, kernel=kernel, us=us)


def small(name, tenant=""):
    workload, kernel, _, us = FLEP[name]
    return Role(workload, tenant=tenant, kernel=kernel, us=us, elements=FINER.get(name, 0))


def pairs():
    """(large, small): 28, as in FLEP's figures 8, 9, 13 and 14."""
    return [(a, b) for a in LARGE for b in FLEP if b != a]


class Windows:
    """What each got in each window, as parts of a hundred of what all got; and how much of the time is
    accounted for by what it takes without Weir. @us: that a round of each takes alone. @comparing: forms of
    theirs were not settled at the end. @plain: by role, of what a round takes below Weir the part that it takes without."""

    def __init__(self, stage, roles, ends, us, window, seconds, comparing):
        self.comparing = comparing
        self.plain = [stage.alone["MPS", role] / u for role, u in zip(roles, us)]
        self.starts = []
        at = SKIPPED if not stage.node.simulated else 0
        while at + window <= seconds + 1e-9:
            self.starts.append(at)
            at += window
        work = [[self.work(e, t, window) * u for e, u in zip(ends, us)] for t in self.starts]
        self.shares = [[100 * w / (sum(row) or 1) for w in row] for row in work]
        self.used = [100 * sum(w * p for w, p in zip(row, self.plain)) / (window * 1e6) for row in work]

    @staticmethod
    def work(ends, start, window):
        return progress(ends, (start + window) * 1e9) - progress(ends, start * 1e9)

    def worst(self, targets):
        """Percentage points off, at most."""
        return max((abs(s - t) for row in self.shares for s, t in zip(row, targets)), default=0)

    def mean(self, i):
        return sum(row[i] for row in self.shares) / max(1, len(self.shares))

    @property
    def loss(self):
        return 100 - sum(self.used) / max(1, len(self.used))


@dataclasses.dataclass
class Contest:
    """@plain: per cent lost by the same roles below MPS alone, without weights; None: they were not played so. @late:
    us that the agent's timers were late, in the mean."""

    part: str
    what: str
    policy: str
    roles: list
    shares: list
    windows: Windows
    plain: float
    late: float


def run(bench, mode, roles, window, seconds, priorities=()):
    stage = stage_of(bench)
    ends = stage.endless(mode, roles, seconds, priorities)
    comparing = mode == "Weir" and stage.comparing(roles)
    if mode == "Weir":  # in the form that it has since others waited for it
        us = [stage.round_us(mode, role, FORMED_S) for role in roles]
    else:
        us = [stage.alone[mode, role] for role in roles]
    return Windows(stage, roles, ends, us, window, seconds, comparing)


def evictions(stage):
    return sum(client["evictions"] for client in stage.node.status())


def targets(shares):
    return [100 * share / sum(shares) for share in shares]


def shown(windows, n):
    return ":".join(f"{windows.mean(i):.1f}" for i in range(n))


def learn(bench, roles, window, seconds):
    """A contest in pieces, until no forms are compared among others any more: the windows of each piece."""
    pieces = [run(bench, "Weir", roles, window, seconds)]
    while pieces[-1].comparing and len(pieces) < PIECES:
        pieces.append(run(bench, "Weir", roles, window, seconds))
    return pieces


def contend(bench, part, what, roles, shares, window, policy, seconds, baselines, scheduling="", first=0):
    """One contest; its windows. The baselines have no weights, and are shown as they are. @first: before it
    counts it is played in pieces of so many seconds while forms are still compared among others; how the first was is shown as well."""
    stage = stage_of(bench)
    plain = {mode: run(bench, mode, roles, window, seconds) for mode in baselines}
    others = [f"{mode} {shown(of, len(roles))}, loss {of.loss:.1f} %" for mode, of in plain.items()]
    stage.set_policy(policy, dict(zip(roles, shares)), scheduling)
    wanted = targets(shares)
    if first:
        pieces = learn(bench, roles, window, first)
        others.append(f"pieces of {first:g} s before it counts: {len(pieces)}, worst window of the first {pieces[0].worst(wanted):.2f} off")
    before = evictions(stage)
    windows = run(bench, "Weir", roles, window, seconds)
    others.append(f"{evictions(stage) - before} evictions")
    if windows.comparing:
        others.append("forms are not settled")
    for start, row, used in zip(windows.starts, windows.shares, windows.used):
        print(f"    {what}, {start:.1f} s: {':'.join(f'{share:.2f}' for share in row)}, {used:.1f} % used", flush=True)
    lost = plain["MPS"].loss if "MPS" in plain else None
    bench.contests.append(Contest(part, what, policy, roles, shares, windows, lost, bench.node.timers_late()))
    text = f"{shown(windows, len(roles))}, worst window {windows.worst(wanted):.2f} off"
    bench.report.add(part, f"{what}, {policy}", f"{text}, loss {windows.loss:.2f} %", baselines="; ".join(others))
    return windows, wanted


def draw(bench, name, title, windows, names):
    if bench.plots:
        series = {name: [row[i] for row in windows.shares] for i, name in enumerate(names)}
        plot.lines(bench.plots / f"{name}.svg", title, "% of the work", windows.starts, series)


def short(bench, seconds):
    return 0.3 if bench.node.simulated else seconds


def part_d(bench):
    stage = stage_of(bench)
    chosen = sample(pairs(), 2 if bench.node.simulated else round(3 * bench.seconds))
    contests = [(f"{b} (small) 2:1 {a} (large)", [small(b), large(a)], [66, 33]) for a, b in chosen]
    equals = [Role("matrix-multiply", copy=i) for i in range(4)]
    contests += [("MM 9:1 MM", equals[:2], [90, 10]), ("MM 1:1:1:1", equals, [25] * 4)]
    roles = {role: None for _, of, _ in contests for role in of}
    stage.set_policy("ffs")
    for mode in ("MPS", "Weir"):
        stage.cast(mode, roles)
    window, seconds, first = short(bench, 1.0), short(bench, SKIPPED + 3), short(bench, SKIPPED + 3)
    found = []
    for what, of, shares in contests:
        windows, wanted = contend(bench, "d", what, of, shares, window if seconds > 1 else 0.1, "ffs", seconds, ("MPS",), first=first)
        found.append((what, windows, wanted))
    note = f"{len(chosen)} of 28 pairs at 2:1"
    off = max(windows.worst(wanted) for _, windows, wanted in found)
    bench.report.at_most("d", "ffs: furthest from its share, 1 s windows", off, LIMIT, " points", note)
    good = sum(windows.worst(wanted) <= LIMIT for _, windows, wanted in found)
    bench.report.add("d", "ffs: contests within 1 point in each window", f"{good} of {len(found)}")
    loss = sum(windows.loss for _, windows, _ in found) / len(found)
    bench.report.at_most("d", "ffs: throughput lost, mean", loss, LOSS_LIMIT, " %", note)
    worst = max(found, key=lambda one: one[1].loss)
    bench.report.add("d", f"ffs: throughput lost, worst: {worst[0]}", f"{worst[1].loss:.2f} %")
    if bench.plots:
        labels = [what for what, _, _ in found]
        series = {"share of the first": [w.mean(0) for _, w, _ in found], "target": [t[0] for _, _, t in found]}
        plot.bars(bench.plots / "sched-d.svg", "Endless co-runs under ffs (FLEP fig. 13)", "% of the work", labels, series)
    for _, of, _ in contests:
        stage_leave(stage, of)


def stage_leave(stage, roles):
    for mode in ("MPS", "Weir"):
        stage.leave(mode, [role for role in roles if (mode, role) in stage.players])


def part_f(bench):
    stage = stage_of(bench)
    counts = (2,) if bench.node.simulated else (2, 4, 8)
    # Single launches: what else a round does, as its fills of memory, passes no gate, and is nobody's turn.
    target = Role("md5-search", copy=99, kernel="md5_search", us=THROTTLE_US)
    throttles = [Role("matrix-multiply", copy=i, kernel="matrix_multiply", us=THROTTLE_US) for i in range(max(counts))]
    stage.set_policy("wfq", scheduling=SCHEDULING)
    for mode in ("MPS", "Weir"):
        stage.cast(mode, [target, *throttles])
    window, seconds = (0.1, 0.3) if bench.node.simulated else (0.2, SKIPPED + 2)
    found = []
    for n in counts:
        others = throttles[: n - 1]
        of = [target, *others]
        found.append((f"{n} equal", contend(bench, "f", f"{n} equal", of, [100 // n] * n, window, "wfq", seconds, ("MPS",), SCHEDULING), of))
        # Shares are whole numbers: those of one tenant would be divided, these are rounded.
        shares = [TARGET, *[max(1, round((100 - TARGET) / len(others)))] * len(others)]
        what = f"{shares[0]} of {sum(shares)}, beside {len(others)}"
        found.append((what, contend(bench, "f", what, of, shares, window, "wfq", seconds, (), SCHEDULING), of))
    off = max(windows.worst(wanted) for _, (windows, wanted), _ in found)
    bench.report.at_most("f", "wfq: furthest from its share, 200 ms windows", off, LIMIT, " points")
    for figure, (what, (windows, _), of) in zip(("9", "11"), found[-2:]):
        draw(bench, f"sched-f-{figure}", f"wfq, {what} (GLoop fig. 9, 11)", windows, [f"{i}" for i in range(len(of))])
    stage_leave(stage, [target, *throttles])


def overlap_us(us, lost):
    """How much of the end of each launch leaves room for another client's, in the mean, by what is lost below MPS alone. There
    clients that always have work are served launch by launch, so that each ends beside another's begin, and one of each
    takes sum(us) / used in all instead of sum(us). What is lost indeed has other reasons, and is no overlap."""
    used = max(1, 1 - lost / 100)
    return sum(us) / len(us) * (1 - 1 / used)


def client_line(i, share, us, plain, overlap):
    """A round is one launch, of so many @us below Weir, and @plain without. Where it runs as it is the rest is its gate, and what
    libweir does, before it begins: another client's may run meanwhile."""
    launch, leaves = round(1e3 * us), ""
    if us <= SHORT_US:
        overlap += max(0, us - plain)
        leaves = " evict=never"
    return f"client c{i} always share={share} launch={launch}ns work={DEPTH * launch}ns overlap={round(1e3 * overlap)}ns{leaves}\n"


def simulate(bench, contest, overlap, us):
    """(shares, per cent lost) by weir-sim, over ten seconds. @us: of a launch of each, without Weir. What it is below Weir, each
    alone, is no matter of who runs when: it is put in as it was measured."""
    launches = zip(contest.shares, us, contest.windows.plain)
    trace = "".join(client_line(i, share, u / part, u, overlap) for i, (share, u, part) in enumerate(launches))
    argv = [bench.node.program("weir-sim"), "--policy", contest.policy, "--json", "--mps", "--evict", EVICT, "--cost", COST, "--look", LOOK]
    argv += ["--late", f"{2000 * contest.late:.0f}ns", "-"]  # at most, by the mean
    argv += ["--quantum", QUANTUM, "--min-quantum", QUANTUM] if contest.policy == "wfq" else []
    done = subprocess.run(argv, input=trace + "end 10s\n", capture_output=True, text=True, timeout=60, check=True)
    result = json.loads(done.stdout)
    ran = [client["gpuSeconds"] for client in result["clients"]]
    used = sum(r * plain for r, plain in zip(ran, contest.windows.plain))
    return [100 * r / sum(ran) for r in ran], 100 - 100 * used / result["seconds"]


def plain_loss(bench, roles):
    """By whichever contest of these roles was played below MPS alone."""
    return next(contest.plain for contest in bench.contests if contest.roles == roles and contest.plain is not None)


def part_k(bench):
    crowd = "".join(f"client c{i} level=low share=1 every=2s work=1ms\n" for i in range(1000)) + "end 1h\n"
    begin = time.monotonic()
    argv = [bench.node.program("weir-sim"), "--policy", "wfq", "--json", "-"]
    subprocess.run([*argv, "--for", "1m"] if bench.node.simulated else argv, input=crowd, capture_output=True, text=True, timeout=120, check=True)
    bench.report.at_most("k", "weir-sim: 1 000 clients, 1 h", time.monotonic() - begin, 10, " s")
    if not bench.contests:
        bench.report.skipped("k", "nothing to compare with: d and f were not run")
        return
    far = []
    for contest in bench.contests:
        us = [stage_of(bench).alone["MPS", role] for role in contest.roles]
        overlap = overlap_us(us, plain_loss(bench, contest.roles))
        said, lost = simulate(bench, contest, overlap, us)
        was = [contest.windows.mean(i) for i in range(len(us))]
        off = max(abs(a - b) for a, b in zip(said, was))
        what = f"{contest.part}: {contest.what}"
        told = f"{':'.join(f'{share:.1f}' for share in said)}, loss {lost:.2f} %"
        print(f"    {what}: {told}; on the GPU loss {contest.windows.loss:.2f} %; {overlap:.1f} us of each end overlap, "
              f"timers {contest.late:.0f} us late", flush=True)
        far.append((off, abs(lost - contest.windows.loss), what))
    for i, name in ((0, "shares"), (1, "throughput")):
        worst = max(far, key=lambda one: one[i])
        bench.report.at_most("k", f"weir-sim's {name} of d and f: furthest off", worst[i], SIM_LIMIT, " points", worst[2])
        mean = sum(one[i] for one in far) / len(far)
        bench.report.add("k", f"weir-sim's {name}: mean", f"{mean:.2f} points", baselines=f"{len(far)} contests")
