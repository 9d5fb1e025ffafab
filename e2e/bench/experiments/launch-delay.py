"""A small kernel of a higher level is launched some time after a large one: the later, the less of it is left to wait for."""

import statistics

import plot
import turnarounds
from bursts import HIGH
from papers import large, name, small
from report import at_least
from workers import SLOTS, pool_of

SHOWS = "speed-up over MPS of a small kernel with priority, by its delay behind a large one"
PAPER = "FLEP figure 9"
BOUNDS = {"of the ideal speed-up": at_least(95), "speed-up behind the large one's end": at_least(0.95, "x")}
BASELINES = ("MPS", "what is left of the large kernel as ideal")
PRINTED = (turnarounds.SWITCH,)
NEEDS = ("gpu", "mps", "root")
SIMULATED = True
TENANTS = SLOTS
MODES = ("mps", "timeslice")

PAIRS = (("NN", "SPMV"), ("CFD", "MM"), ("PF", "VA"), ("PL", "MD"))
PARTS = (0.1, 0.3, 0.5, 0.7, 0.9, 1.2)  # of the large kernel's time, from its launch to that of the small one


def run(bench):
    pool, switch = pool_of(bench), turnarounds.switch_us(bench)
    chosen = PAIRS[: 1 if bench.node.simulated else None]
    jobs = {(a, b): (large(a), small(b), small(b, HIGH)) for a, b in chosen}
    turnarounds.ensure_all(bench, list(dict.fromkeys(job for a, b, _ in jobs.values() for job in (a, b))),
                           list(dict.fromkeys(job for a, _, high in jobs.values() for job in (a, high))))
    alone = turnarounds.singles(bench, list(dict.fromkeys(job for a, b, _ in jobs.values() for job in (a, b))))
    curves, reached, behind = {}, [], []
    for (a, b), (big, little, high) in jobs.items():
        speeds = []
        for part in PARTS:
            offsets = [0, part * alone[big]]
            plain, weir = (turnarounds.medians(bench, mode, [big, one], offsets)[1] for mode, one in (("MPS", little), ("Weir", high)))
            speeds.append(plain / weir)
            # Behind the end of the large one there is nothing to preempt.
            (reached if part < 1 else behind).append(100 * (alone[little] + switch) / weir if part < 1 else plain / weir)
        label = f"{name(big)}_{name(little)}"
        curves[label] = speeds
        told = f"at {' '.join(f'{part:g}' for part in PARTS)} of {alone[big]:.0f} us; the small one alone {alone[little]:.0f} us"
        bench.report.add(f"{label}: speed-up by delay", " ".join(f"{speed:.2f}" for speed in speeds) + "x", baselines=told)
    bench.report.judge("of the speed-up that an ideal preemption gives, mean", statistics.fmean(reached), BOUNDS["of the ideal speed-up"])
    bound = BOUNDS["speed-up behind the large one's end"]
    bound = turnarounds.reachable(bench, bound, min(alone[b] / (alone[b] + switch) for _, b, _ in jobs.values()))
    bench.report.judge("behind the large one's end, least", min(behind), bound)
    if bench.plots:
        title = "Speed-up over MPS by launch delay (FLEP fig. 9)"
        plot.lines(bench.plots / f"{bench.report.experiment}.svg", title, "x", list(PARTS), curves)
    pool.leave("Weir", list(dict.fromkeys(high for _, _, high in jobs.values())))
