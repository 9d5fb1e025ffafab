"""A small kernel of a higher level is launched 100 us behind a large one."""

import statistics

import plot
import turnarounds
from bursts import HIGH
from papers import large, name, pairs, small
from report import at_least
from workers import SLOTS, pool_of, sample

SHOWS = "pairs: speed-up over MPS of a small kernel with priority, right behind a large one"
PAPER = "FLEP figure 8"
BOUNDS = {"speed-up, mean": at_least(10, "x"), "speed-up, best": at_least(25, "x"), "of the ideal speed-up": at_least(95)}
BASELINES = ("MPS", "MPS with stream priority", "time-slicing", "the ratio of the kernels' lengths as ideal")
PRINTED = (turnarounds.SWITCH,)
NEEDS = ("gpu", "mps", "root")
SIMULATED = True
TENANTS = SLOTS
MODES = ("mps", "timeslice")


def contrast(pair):
    """How much longer the first one is."""
    return large(pair[0]).us / small(pair[1]).us


def run(bench):
    pool, switch = pool_of(bench), turnarounds.switch_us(bench)
    # The best of all is the one with the most to gain.
    names = list(dict.fromkeys([*sample(pairs(), turnarounds.budget(bench, "pairs")), max(pairs(), key=contrast)]))
    chosen = [(large(a), small(b)) for a, b in names]
    larges, smalls = {a: None for a, _ in chosen}, {b: None for _, b in chosen}
    highs = {small(b): small(b, HIGH) for _, b in names}
    turnarounds.ensure_all(bench, [*larges, *smalls], [*larges, *highs.values()])
    alone, own = turnarounds.singles(bench, smalls), turnarounds.singles(bench, highs.values(), "Weir")
    rows = []
    for a, b in chosen:
        offsets = [0, turnarounds.BEHIND_US]
        row = {mode: turnarounds.medians(bench, mode, [a, b], offsets)[1] for mode in ("time-slicing", "MPS")}
        row["MPS + stream priority"] = turnarounds.medians(bench, "MPS", [a, b], offsets, (0, 1))[1]
        row["Weir"] = turnarounds.medians(bench, "Weir", [a, highs[b]], offsets)[1]
        rows.append((f"{name(a)}_{name(b)}", row, alone[b]))
        print(f"    {rows[-1][0]}: alone {alone[b]:.0f} us; " + ", ".join(f"{mode} {us:.0f}" for mode, us in row.items()), flush=True)
    speed = {mode: [row["MPS"] / row[mode] for _, row, _ in rows] for mode in rows[0][1]}
    ideal = [row["MPS"] / (us + switch) for _, row, us in rows]
    note = f"{len(rows)} of 28 pairs; ideal: mean {statistics.fmean(ideal):.2f}x, best {max(ideal):.2f}x; " + ", ".join(
        f"{mode} {statistics.fmean(speed[mode]):.2f}x" for mode in ("time-slicing", "MPS + stream priority")
    )
    bench.report.judge("the high one's speed-up over MPS, mean", statistics.fmean(speed["Weir"]), turnarounds.reachable(bench, BOUNDS["speed-up, mean"], statistics.fmean(ideal)), note)
    bench.report.judge("the high one's speed-up over MPS, best", max(speed["Weir"]), turnarounds.reachable(bench, BOUNDS["speed-up, best"], max(ideal)))
    reached = [100 * (us + switch) / row["Weir"] for _, row, us in rows]
    bench.report.judge("of the speed-up that an ideal preemption gives, mean", statistics.fmean(reached), BOUNDS["of the ideal speed-up"])
    worst = min(range(len(rows)), key=lambda i: reached[i])
    figure = f"{reached[worst]:.1f} %, {rows[worst][1]['Weir']:.0f} us, alone {rows[worst][2]:.0f} us"
    bench.report.add(f"the least of it: {rows[worst][0]}", figure)
    longer = statistics.fmean([own[high] / alone[b] for b, high in highs.items()])
    bench.report.add("the high one alone, under Weir", f"{longer:.3f}x")
    if bench.plots:
        labels = [label for label, _, _ in rows]
        series = {"ideal": ideal, "Weir": speed["Weir"], "MPS + priority": speed["MPS + stream priority"]}
        plot.bars(bench.plots / f"{bench.report.experiment}.svg", "Speed-up of the high-priority kernel over MPS (FLEP fig. 8)", "x", labels, series)
    pool.leave("Weir", list(highs.values()))
