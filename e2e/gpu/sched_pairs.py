"""Parts a, b, c and e: kernels that are launched right behind others, once each, and when they are done."""

import random
import statistics

import plot
from players import FITS, Role, counted, sample, stage_of
from sched_shares import FLEP, LARGE, large, pairs, small
from sharing import HIGH

BEHIND_US = 100  # the second one's launch after the first one's
LEARNING = 3  # times at most that a contest is played before it counts
SHORT = ("MD", "MM", "SPMV", "VA")  # FLEP, section 6.3.1: the small ones of figure 10
# EffiSha, table 2: our name of it and the kernel, ms alone, then priorities: random, in groups, shortest first.
EFFISHA = {
    ("neural-net", "net_layer"): (14.25, 2, 2, 1), ("radix-sort", "radix_count"): (5.46, 17, 2, 4),
    ("reduction", "reduction"): (2.06, 17, 2, 7), ("md5-search", "md5_search"): (3.29, 22, 5, 6),
    ("molecular-dynamics", "md_forces"): (13.8, 22, 5, 2), ("scan", "scan_tiles"): (1.41, 7, 5, 8),
    ("triad", "triad"): (1.22, 3, 8, 9), ("stencil", "stencil_9"): (28.4, 20, 8, 0),
    ("fft", "fft_512"): (1.17, 24, 11, 10), ("sparse-multiply", "sparse_multiply"): (4.57, 7, 11, 5),
    ("graph-search", "graph_level"): (5.99, 1, 11, 3),
}  # fmt: skip
EFFISHA_GAP = 3.0  # ms
# What it reached: ANTT cut by per cent, STP times.
EFFISHA_REACHED = {"random": (18, 1.35), "group": (24, 1.42), "SJF": (65, 1.8)}
OVERHEAD_LIMIT = 2  # per cent
MODES = ("MPS", "time-slicing", "Weir")


def times(bench):
    return 2 if bench.node.simulated else 6


def budget(bench, full=28):
    """How many of all there is time for."""
    return 2 if bench.node.simulated else min(full, max(4, round(full * bench.seconds / 3)))


def medians(bench, mode, roles, offsets, priorities=()):
    """us from the launch to the end of each."""
    stage = stage_of(bench)
    every = 10 + 2.5 * sum(stage.alone[mode, role] for role in roles) / 1e3 + max(offsets) / 1e3
    every = 60 if bench.node.simulated else every
    return [statistics.median(of) for of in stage.shots(mode, roles, offsets, every, times(bench), priorities)]


def singles(bench, roles, mode="MPS"):
    """us of each alone, from the launch to the end."""
    return {role: medians(bench, mode, [role], [0])[0] for role in roles}


def cast(bench, roles, governed):
    """All of them, in the ways without libweir, and then @governed below it."""
    stage = stage_of(bench)
    first = [role for role in roles if (role.kernel, role.us) not in stage.passes]
    for mode in ("MPS", "time-slicing"):
        stage.cast(mode, roles)
    if not bench.node.simulated:
        stage.fit_again(singles(bench, first))  # before libweir has learned any
    stage.cast("Weir", governed)
    if not bench.node.simulated:
        fit(bench, roles, governed)


def fit(bench, roles, governed):
    """What is long is so among all that are there: some kernels take a few per cent more or less then."""
    stage = stage_of(bench)
    changed = set()
    for _ in range(FITS):
        other = stage.fit_again(singles(bench, roles))
        changed |= {(role.kernel, role.us) for role in other}
        if not other:
            break
    for role in governed:
        if (role.kernel, role.us) in changed:
            stage.measure("Weir", role)
    print("    passes: " + ", ".join(f"{name(role)} {stage.passes[role.kernel, role.us]}" for role in roles), flush=True)


def antt(together, alone):
    return sum(t / a for t, a in zip(together, alone)) / len(alone)


def stp(together, alone):
    return sum(a / t for t, a in zip(together, alone))


def shown(times):
    return "/".join(f"{us:.0f}" for us in times)


def mean(values):
    return sum(values) / len(values)


def name(role):
    return next((short for short, (workload, *_) in FLEP.items() if workload == role.workload), role.workload)


def contrast(pair):
    """How much longer the first one is."""
    return large(pair[0]).us / small(pair[1]).us


def part_a(bench):
    stage = stage_of(bench)
    # The best of all is the one with the most to gain.
    names = list(dict.fromkeys([*sample(pairs(), budget(bench)), max(pairs(), key=contrast)]))
    chosen = [(large(a), small(b)) for a, b in names]
    larges, smalls = {a: None for a, _ in chosen}, {b: None for _, b in chosen}
    highs = {small(b): small(b, HIGH) for _, b in names}
    cast(bench, [*larges, *smalls], [*larges, *highs.values()])
    alone, own = singles(bench, smalls), singles(bench, highs.values(), "Weir")
    rows = []
    for a, b in chosen:
        offsets = [0, BEHIND_US]
        row = {mode: medians(bench, mode, [a, b], offsets)[1] for mode in ("time-slicing", "MPS")}
        row["MPS + stream priority"] = medians(bench, "MPS", [a, b], offsets, (0, 1))[1]
        row["Weir"] = medians(bench, "Weir", [a, highs[b]], offsets)[1]
        rows.append((f"{name(a)}_{name(b)}", row, alone[b]))
        print(f"    {rows[-1][0]}: alone {alone[b]:.0f} us; " + ", ".join(f"{mode} {us:.0f}" for mode, us in row.items()), flush=True)
    speed = {mode: [row["MPS"] / row[mode] for _, row, _ in rows] for mode in rows[0][1]}
    ideal = [row["MPS"] / us for _, row, us in rows]
    note = f"{len(rows)} of 28 pairs; ideal: mean {mean(ideal):.2f}x, best {max(ideal):.2f}x; " + ", ".join(
        f"{mode} {mean(speed[mode]):.2f}x" for mode in ("time-slicing", "MPS + stream priority")
    )
    bench.report.at_least("a", "the high one's speed-up over MPS, mean", mean(speed["Weir"]), 10, "x", note)
    bench.report.at_least("a", "the high one's speed-up over MPS, best", max(speed["Weir"]), 25, "x")
    reached = [100 * us / row["Weir"] for _, row, us in rows]
    bench.report.at_least("a", "of the speed-up that an ideal preemption gives, mean", mean(reached), 95)
    worst = min(range(len(rows)), key=lambda i: reached[i])
    figure = f"{reached[worst]:.1f} %, {rows[worst][1]['Weir']:.0f} us, alone {rows[worst][2]:.0f} us"
    bench.report.add("a", f"the least of it: {rows[worst][0]}", figure)
    longer = mean([own[high] / alone[b] for b, high in highs.items()])
    bench.report.add("a", "the high one alone, below Weir", f"{longer:.3f}x")
    if bench.plots:
        labels = [label for label, _, _ in rows]
        series = {"ideal": ideal, "Weir": speed["Weir"], "MPS + priority": speed["MPS + stream priority"]}
        plot.bars(bench.plots / "sched-a.svg", "Speed-up of the high-priority kernel over MPS (FLEP fig. 8)", "x", labels, series)
    stage.leave("Weir", list(highs.values()))


def reordered_times(bench, group, offsets, by):
    """Without preemption, but with who waits in the order of their lengths: MPS serves first come first,
    so they come in that order, and what each is late or early is its own."""
    order = [0, *sorted(range(1, len(group)), key=lambda i: by[i])]
    roles = [group[i] for i in order]
    found = medians(bench, "MPS", roles, offsets)
    times = dict(zip(order, (us + offsets[at] - offsets[i] for at, (i, us) in enumerate(zip(order, found)))))
    return [times[i] for i in range(len(group))]


def behind(group):
    return [BEHIND_US * i for i in range(len(group))]


def compares(bench, group):
    """Plays it, and says whether forms are still compared then."""
    medians(bench, "Weir", list(group), behind(group))
    return stage_of(bench).comparing(group)


def learn(bench, groups):
    """Plays each while what runs among others is still being compared."""
    for _ in range(LEARNING):
        groups = [group for group in groups if compares(bench, group)]
    if groups:
        print(f"    forms are not settled in {len(groups)} contests", flush=True)


def co_runs(bench, part, groups, full):
    """Equals, the first one large, under hpf: rows of (label, improvement, STP lost in per cent)."""
    stage = stage_of(bench)
    roles = {role: None for group in groups for role in group}
    cast(bench, roles, roles)
    alone = singles(bench, roles)
    stage.set_policy("hpf")
    learn(bench, groups)
    rows = []
    for group in groups:
        offsets = behind(group)
        by = [alone[role] for role in group]
        together = {mode: medians(bench, mode, list(group), offsets) for mode in MODES}
        reordered = antt(reordered_times(bench, group, offsets, by), by)
        antts = {mode: antt(together[mode], by) for mode in MODES}
        label = "_".join(name(role) for role in group)
        print(f"    {label}: alone {shown(by)} us; " + ", ".join(f"{mode} {shown(us)}" for mode, us in together.items()), flush=True)
        lost = 100 * (1 - stp(together["Weir"], by) / stp(together["MPS"], by))
        ideal = antts["MPS"] / antt_ideal(by)
        rows.append((label, antts["MPS"] / antts["Weir"], lost, antts["MPS"] / antts["time-slicing"], antts["MPS"] / reordered, ideal))
    note = f"{len(rows)} of {full}; ideal {mean([r[5] for r in rows]):.2f}x; " + "time-slicing {:.2f}x, reordering {:.2f}x".format(*(mean([r[i] for r in rows]) for i in (3, 4)))
    if bench.plots:
        plot.bars(
            bench.plots / f"sched-{part}.svg", f"ANTT under hpf against MPS, {full} {'pairs' if part == 'b' else 'triplets'} of equals", "x",
            [r[0] for r in rows], {"ideal": [r[5] for r in rows], "Weir": [r[1] for r in rows], "time-slicing": [r[3] for r in rows]},
        )  # fmt: skip
    return rows, note


def antt_ideal(by):
    """Shortest first with preemption that costs nothing, all there at once."""
    done, total = 0, 0
    for us in sorted(by):
        done += us
        total += done / us
    return total / len(by)


def part_b(bench):
    of = [(large(a), small(b)) for b in SHORT for a in FLEP if a != b]
    rows, note = co_runs(bench, "b", sample(of, budget(bench)), 28)
    bench.report.at_least("b", "hpf: ANTT improvement over MPS, mean", mean([r[1] for r in rows]), 8, "x", note)
    best = max(rows, key=lambda r: r[1])
    bench.report.add("b", f"hpf: the best, {best[0]}", f"{best[1]:.2f}x")
    bench.report.at_most("b", "hpf: STP lost against MPS, mean", mean([r[2] for r in rows]), 3, " %")


def part_c(bench):
    numbers = random.Random(1)
    triplets = []
    while len(triplets) < 28:
        a, b, c = numbers.sample(list(FLEP), 3)
        if a in (*LARGE, "VA", "MD"):
            triplets.append((large(a), small(b), small(c)))
    rows, note = co_runs(bench, "c", sample(triplets, budget(bench)), 28)
    bench.report.at_least("c", "hpf: ANTT improvement over MPS, mean of triplets", mean([r[1] for r in rows]), 6.6, "x", note)


def all_done(offsets, together):
    """us after the first launch."""
    return max(offset + us for offset, us in zip(offsets, together))


def part_e(bench):
    stage = stage_of(bench)
    rows = {Role(workload, kernel=kernel, us=round(1e3 * row[0])): row for (workload, kernel), row in EFFISHA.items()}
    roles = list(rows)
    stage.set_policy("dynamic")
    for mode in MODES:
        stage.cast(mode, roles)
    alone = singles(bench, roles)
    by = [alone[role] for role in roles]
    offsets = [EFFISHA_GAP * 1e3 * i for i in range(len(roles))]
    plain = {mode: medians(bench, mode, roles, offsets) for mode in ("time-slicing", "MPS")}
    base = antt(plain["MPS"], by), stp(plain["MPS"], by)
    sliced = antt(plain["time-slicing"], by), stp(plain["time-slicing"], by)
    later = []
    for _ in range(2):  # what runs while others wait is still being compared
        medians(bench, "Weir", roles, offsets)
    for column, setting in enumerate(("random", "group", "SJF"), 1):
        # The agent has priorities up to 20: in proportion, so that the order stays.
        most = max(row[column] for row in rows.values())
        shares = {role: max(1, round(100 * row[column] / most)) for role, row in rows.items()}
        stage.set_policy("dynamic", shares)
        before = stage.counters(roles)
        together = medians(bench, "Weir", roles, offsets)
        print(f"    {setting}: {shown(together)} us, MPS {shown(plain['MPS'])}, alone {shown(by)}", flush=True)
        for role, *counts in zip(roles, before, stage.counters(roles)):
            print(f"        {name(role)}: {counted(*counts)}", flush=True)
        cut = 100 * (1 - antt(together, by) / base[0])
        gain = stp(together, by) / base[1]
        limit = EFFISHA_REACHED[setting]
        note = f"ANTT {antt(together, by):.2f}, MPS {base[0]:.2f}, time-slicing {sliced[0]:.2f}; {EFFISHA_GAP:g} ms apart"
        bench.report.at_least("e", f"{setting}: ANTT cut against MPS", cut, limit[0], " %", note)
        note = f"STP {stp(together, by):.2f}, MPS {base[1]:.2f}, time-slicing {sliced[1]:.2f}"
        bench.report.at_least("e", f"{setting}: STP against MPS", gain, limit[1], "x", note)
        bench.report.at_least("e", f"{setting}: ANTT against time-slicing", sliced[0] / antt(together, by), 1, "x")
        later.append(100 * (all_done(offsets, together) / all_done(offsets, plain["MPS"]) - 1))
    # Each alone, in the form that it has since others waited for it: what of the overhead is its kernel's.
    forms = singles(bench, roles, "Weir")
    print(f"    alone in these forms: {shown(forms[role] for role in roles)} us", flush=True)
    note = f"MPS {all_done(offsets, plain['MPS']) / 1e3:.1f} ms; by what the kernels' forms cost alone {100 * (sum(forms.values()) / sum(by) - 1):.1f} %"
    bench.report.at_most("e", "scheduling overhead: all are done later than under MPS, worst setting", max(later), OVERHEAD_LIMIT, " %", note)
    for mode in MODES:
        stage.leave(mode, roles)
