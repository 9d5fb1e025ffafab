#!/usr/bin/env python3
"""What experiments judge, on made-up figures: which of them count, and that those that are missing are told."""

import pathlib
import sys
import types

BENCH = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(BENCH / "lib"))

import bursts  # noqa: E402
import deaths  # noqa: E402
import faults  # noqa: E402
import forms  # noqa: E402
import losses  # noqa: E402
import steal  # noqa: E402
from coexec import Pair, Watched  # noqa: E402
from experiment import Experiment  # noqa: E402
from report import FAIL, NOT_RUN, PASS, Report, at_most  # noqa: E402


def module(name):
    return Experiment(BENCH / f"experiments/{name}.py", "any").module


def a_bench():
    bench = types.SimpleNamespace(report=Report("test"), node=types.SimpleNamespace(simulated=False), kernels={})
    bench.row = lambda words: next(row for row in bench.report.rows if words in row["what"])
    return bench


def variant(ratio, p99, form="persistent", evictions=50, **more):
    delay_us = {"p50": p99 / 2, "p99": p99}
    usual = {"parts": 1, "saves": 0, "finishes": 0, "together": 0, "delays_us": [p99] * evictions}
    return {"form": form, "ratio": ratio, "evictions": evictions, "delay_us": delay_us, **usual, **more}


def kernel(name, *variants, us=500):
    return {"workload": "w", "kernel": name, "native_us": us, "launches": 1, "block_us": 5, "forms": list(variants)}


def judges_what_libweir_chose():
    """One kernel leaves late, one costs too much, one is good. A variant that nobody chose makes all of them good."""
    of, bench = module("form-overhead"), a_bench()
    cheap = [kernel(name, variant(1.0, 20)) for name in ("late", "dear", "good")]
    bench.kernels = {("small", forms.name_of(one)): one for one in cheap}
    of.judge_cost(bench, {"w/late": 1.0, "w/dear": 1.04, "w/good": 1.02}, {"w/late": (400, "native")})
    row = bench.row("libweir chose")
    assert row["figure"] == 33.33 and row["verdict"] == FAIL and "1 of 3; " in row["baselines"], row
    assert row["baselines"].endswith("small inputs, 3"), row


def knows_least_costs():
    least = lambda *variants, us=500: forms.least_cost(a_bench(), kernel("k", *variants, us=us))
    assert least(variant(1.2, 20), variant(1.1, 120)) == 1.2
    assert least(variant(1.01, 20, saves=1), variant(1.02, 20, evictions=3)) is None
    assert least(variant(1.2, 20), us=90) == 1.0
    assert forms.count_cheap([1.03, 1.04, None]) == 1


def ways(evictions=50):
    resumable = {"form": "resumable", "evictions": evictions}
    return [
        variant(1, 20), variant(1, 20, saves=1, **resumable), variant(1, 20, saves=1, **resumable),
        variant(1, 20, saves=1, together=1, **resumable), variant(1, 20, **resumable), variant(1, 20, finishes=1, **resumable),
    ]


def counts_kernels_without_delays():
    of, bench = module("drain-or-save"), a_bench()
    kernels = [kernel("enough", *ways()), kernel("few", *ways(9)), kernel("one-form", variant(1, 20))]
    assert [one["kernel"] for one, _ in of.with_ways(bench, kernels)] == ["enough"]
    cut = bench.report.record("", "", ("", ""))["cut"]
    assert "without both forms: 1 of 3 kernels: w/one-form" in cut and "fewer than 10 evictions" in cut and "w/few" in cut, cut
    of.show_mixed(bench, [])
    assert [row["verdict"] for row in bench.report.rows] == [NOT_RUN, NOT_RUN]


def counts_the_first_rounds_as_they_are():
    """The driver's part of them is not taken off, and the mean of two starts counts."""
    of, bench = module("second-start"), a_bench()
    of.judge(bench, "lu", 632, [(653, 632, []), (653, 632, [])], [(653, 632), (653, 632)])
    assert bench.row("lu")["figure"] == 1.033 and bench.row("lu")["verdict"] == FAIL
    of.judge(bench, "fft", 100, [(100, 100, []), (110, 100, [])], [(100, 100)] * 2)
    assert bench.row("fft")["figure"] == 1.05 and "1.000x, 1.100x" in bench.row("fft")["baselines"], bench.row("fft")
    of.judge_forms(bench, [(4, 0)], 36)
    assert bench.row("first launch")["verdict"] == PASS and "1 of 36" in bench.row("first launch")["baselines"]
    other = a_bench()
    of.judge_forms(other, [], 36)
    assert other.report.rows[0]["verdict"] == NOT_RUN


def judges_programs_with_ptx():
    of, judged = module("programs"), set()
    one = types.SimpleNamespace(us=100, on_gpu=100, began=0, at=1, released=0)
    alone = types.SimpleNamespace(words="", on_gpu=100, where=lambda _: "", ratios=lambda _: (1.126, 1.12))
    below = types.SimpleNamespace(
        requests=[one], at_work=[one], held="", late=lambda _: "", client=types.SimpleNamespace(errors="kernel k runs natively: clusters"))
    for name in of.ALL:
        bench = a_bench()
        of.show_latency(bench, types.SimpleNamespace(outside={}), name, alone, below)
        judged |= {name} if bench.row(f"HIGH's p99 beside {name}")["verdict"] == FAIL else set()
    assert set(of.ALL) - judged == {"dynamic-parallelism"}, judged


def tells_of_its_floor():
    of, bench = module("proactive"), a_bench()
    assert len(of.PEP) == 16 and len(set(of.PEP.values())) == 16
    of.judge_wait(bench, [{of.REACTIVE: 0.0, of.AT_ONCE: 2.7}, {of.REACTIVE: 0.0, of.AT_ONCE: 0.0}], "")
    row = bench.row("HIGH's wait")
    assert row["figure"] == 1.35 and "2 of 16" in row["what"] and "below 1 us" in row["what"], row
    assert "beside 2;" in row["baselines"] and row["verdict"] == FAIL, row
    of.judge_bytes(bench, [of.Saved(7, 10, 5), of.Saved()])
    assert bench.row("1 of 2 kernels")["figure"] == 0.7
    other = a_bench()
    of.judge_bytes(other, [of.Saved()])
    assert other.report.rows[0]["verdict"] == NOT_RUN


def counts_losses():
    """A LOW that is faster beside HIGH than alone in its form does not make up for what others lose."""

    def seen(temporal, spatial):
        rates = {losses.MPS: 110, losses.PRIORITY: 99, losses.TEMPORAL: temporal, losses.SPATIAL: spatial}
        return losses.Seen(dict.fromkeys(losses.WAYS, 20), dict.fromkeys(losses.WAYS, 30), rates, alone=100, plain=110)

    near = lambda figure, wanted: abs(figure - wanted) < 1e-9
    faster, equal = seen(90, 105), seen(90, 90)
    assert near(faster.loss(losses.SPATIAL), -0.05) and faster.overhead(losses.SPATIAL) == 0
    assert faster.loss(losses.MPS) == 0 and near(faster.loss(losses.PRIORITY), 0.1)
    assert near(losses.less([faster, equal], losses.Seen.overhead), 50) and near(losses.less([faster, equal], losses.Seen.loss), 75)
    assert losses.less([equal], losses.Seen.native_loss) == 0


def judges_every_kernel():
    """Tickets that are too long are judged as well, and once more without them."""
    of, bench, found = module("worker-groups"), a_bench(), []
    for name, block_us, p99, n in (("short", 5, 40, 50), ("long", 700, 800, 11), ("rare", 5, 30, 9)):
        times = {"n": n, "p50": p99 / 2, "p99": p99, "max": p99}
        found.append(({**kernel(name), "block_us": block_us}, {"parts": 1, "ahead": 0, "leave_us": times}, {}))
    of.show_times(bench, found, "leave_us", of.BOUNDS["leave"])
    every, short = bench.row("leave: p99"), bench.row("leave, tickets of")
    assert (every["figure"], every["verdict"]) == (800, FAIL) and "1 of 2 kernels" in every["baselines"], every
    assert (short["figure"], short["verdict"]) == (40, PASS), short
    assert bench.report.cuts == ["leave: 1 of 3 kernels seen less than 10 times: w/rare"], bench.report.cuts
    other = a_bench()
    of.show_times(other, found[2:], "leave_us", of.BOUNDS["leave"])
    assert other.row("leave: p99")["verdict"] == NOT_RUN


def judges_all_pairs():
    of, bench = module("coexec"), a_bench()
    ways = {"MPS": 1.0, "slices": 1.3}
    pairs = [Pair(names, {(1, 1): (first, [])}, ways, again) for names, first, again in (("ab", 1.7, 1.6), ("ac", 1.2, 1.1), ("bc", 1.2, 1.1))]
    of.judge_pairs(bench, pairs)
    every, best = bench.row("all pairs, best"), bench.row("best partner of each kernel, best")
    assert (every["figure"], every["verdict"]) == (1.27, FAIL) and "3 pairs" in every["baselines"], every
    assert (best["figure"], best["verdict"]) == (1.35, FAIL) and "1.45x" in best["baselines"], best
    assert bench.row("all pairs: above")["verdict"] == FAIL and bench.row("kernel: above")["verdict"] == PASS


def knows_settled():
    at = lambda *samples: Watched([], list(samples), {}).settled
    a, b = (0.1, True, [1, 2], 2), (0.2, False, [2, 2], 2)
    assert at(a, b, (0.3, False, [2, 2], 2)) == 0.2 and at(a, b, (0.3, False, [1, 2], 2)) == 0.3
    assert at(a) == at(a, (0.2, False, [1, 2], 2)) == 0.1


def judges_steps():
    """Steps a second are judged beside the GPU time of steps, which take longer at a lower clock."""
    of, bench = module("min-rate"), a_bench()
    bench.mode, bench.node.change_until, bench.node.status = "mps", lambda *_: None, lambda: []
    scene = types.SimpleNamespace(high="high", low="low", plain=["a", "b"], prior=["c"])
    scene.used, scene.together = lambda *_: ([100], [50], [0]), lambda *_: ([50, 49], [22.5, 20], [1600])
    with of.Found(bench, "closed") as found, of.Found(bench, "closed, steps a second") as by_steps:
        of.measure_closed(bench, scene, found, by_steps)
    told = {words: bench.row(f"{words}, 0.5: short") for words in ("closed", "steps a second")}
    assert [(row["figure"], row["verdict"]) for row in told.values()] == [(0, PASS), (5, FAIL)], told
    assert all("MPS + stream priority" in bench.row(f"{'+'.join(pair)} without a rate")["figure"] for pair in of.CLOSED)


def judges_stops():
    """A pause in the kernel's or in this program's motion is no stop, and 3.5 ms are too long. Of clients that end their
    stops the worst one counts."""
    of, bench = module("enforced-hold"), a_bench()
    moved = [False] * 35
    for at in (3, 34):
        moved[at] = True
    assert of.ran_for(moved) == 3.5 and not of.BOUNDS[of.STOPPED].allows(3.5) and of.ran_for([]) == 0
    of.judge_fights(bench, [(1.9, 0.1, 150, 0.5), (2.1, 0.1, 250, 0.5), (1.8, 0.1, None, None)])
    told = [(row["figure"], row["verdict"]) for row in bench.report.rows]
    assert told == [("after 150 ms, after 250 ms, never", FAIL), (2.1, FAIL), (0.1, PASS), (0.5, PASS)], told


def deaths_of(us, runs_us=800, p99=700):
    """Each death's longest request."""
    found = deaths.Deaths({}, died=len(us), high={"p99": p99, "median": 360, "requests": 1000})
    found.longest = {"dies": [deaths.Longest(each) for each in us]}
    found.longest |= {phase: [deaths.Longest(runs_us) for _ in us] for phase in ("starts", "runs")}
    return found


def judges_the_worst_deaths():
    """One long request of 17 is p99 of deaths. That the driver alone takes as long does not hide that HIGH notices it."""
    of, bench = module("mps-deaths"), a_bench()
    late, driver = deaths_of([700] * 16 + [169000]), deaths_of([160000] * 17)
    of.judge_kinds(bench, {"kill": late}, {"kill": driver}, {"kill": deaths_of([700] * 5, p99=600)})
    told = [(row["figure"], row["verdict"]) for row in bench.report.rows]
    assert told == [(211.25, FAIL), (1.056, PASS), (1.167, FAIL)], told


def counts_missing_deaths():
    of, bench = module("mps-deaths"), a_bench()
    bench.seconds, before = 4, deaths.deaths
    deaths.deaths = lambda *_: deaths_of([700] * 16)
    try:
        of.beside(bench, "here", of.DEATHS)
    finally:
        deaths.deaths = before
    assert [bench.row(f"LOW dies of {kind}")["verdict"] for kind in deaths.KINDS] == [FAIL] * 3, bench.report.rows


def judges_graphs_in_ms():
    """HIGH alone is slower in its server, so the ratio to that is good, and HIGH is late all the same."""
    of, bench = module("mps-per-level"), a_bench()
    own, sliced = (of.inference.Pairs(alone=[[alone] * 9], beside=[[beside] * 9]) for alone, beside in ((1.2, 1.56), (1.1, 1.43)))
    of.judge_graphs(bench, "mm", own, sliced)
    verdicts = [bench.row(words)["verdict"] for words in ("LOW=mm, median", "LOW=mm, in ms, median", "LOW=mm, in ms, p99", "graph alone")]
    assert verdicts == [PASS, FAIL, FAIL, FAIL], bench.report.rows


def judges_each_co_run_by_its_own_ideal():
    of, bench = module("shares-wfq"), a_bench()
    bench.mode = "timeslice"
    windows = lambda off: types.SimpleNamespace(worst=lambda wanted, joined=1: off / joined)
    of.judge(bench, [(windows(2.8), [50, 50]), (windows(4.0), [12.5] * 8)], 0.2, 5)
    short, long = bench.row("200 ms windows"), bench.row("1000 ms windows")
    assert (short["figure"], short["bound"], short["verdict"]) == (2.8, "<= 2.6316 points", FAIL), short
    assert (long["figure"], long["verdict"]) == (0.8, PASS), long


def takes_p99_of_all_requests():
    rounds = [{"median": 1, "p99": p99, "requests": 100, "each": [(1, 0)] * 98 + [(p99, 0)] * 2} for p99 in (2, 3, 9)]
    assert bursts.middle(rounds)["p99"] == 3
    rounds[1]["each"][0] = rounds[1]["each"][1] = (9, 0)
    assert bursts.middle(rounds)["p99"] == 9
    assert bursts.middle([{key: each[key] for key in ("median", "p99", "requests")} for each in rounds])["p99"] == 3


def leaves_out_what_was_stolen():
    """Two thefts overlap each other; one request ends when the first begins."""
    thefts = [steal.Interval(0, 2.0, 2.5, 1), steal.Interval(1, 2.4, 3.0, 1), steal.Interval(0, 5.0, 5.1, 1)]
    due = (1.0, 1.95, 2.2, 2.9, 3.0, 4.95, 6.0)
    requests = [types.SimpleNamespace(due=at, us=50_000) for at in due]
    assert [one.due for one in steal.without(requests, thefts)] == [1.0, 1.95, 3.0, 4.95, 6.0]
    assert steal.without(requests, []) == requests


def takes_the_median_of_faults():
    bench, calm = a_bench(), [100] * 50
    faults.show_witness(bench, "a fault", [(calm, [us] * 50) for us in (140, 300, 120)], at_most(1.5))
    row = bench.row("a fault")
    assert (row["figure"], row["verdict"]) == (1.4, PASS) and "median of 3" in row["what"], row


if __name__ == "__main__":
    globals()[sys.argv[1]]()
