"""Eleven kernels of one level are launched 3 ms apart under `dynamic`, with three settings of their priorities."""

import json
import subprocess

import turnarounds
from papers import EFFISHA, name
from report import at_least, at_most
from workers import SLOTS, Job, counted, pool_of

SHOWS = "eleven kernels one behind the other under dynamic: ANTT and STP against MPS"
PAPER = "EffiSha figures 11, 12"
BOUNDS = {  # what EffiSha reached
    "random: ANTT cut": at_least(18), "random: STP": at_least(1.35, "x"),
    "group: ANTT cut": at_least(24), "group: STP": at_least(1.42, "x"),
    "SJF: ANTT cut": at_least(65), "SJF: STP": at_least(1.8, "x"),
    "ANTT against time-slicing": at_least(1, "x"),
    "overhead": at_most(2, " %"),
}  # fmt: skip
BASELINES = ("MPS", "time-slicing")
PRINTED = (turnarounds.SWITCH,)
NEEDS = ("gpu", "mps", "root")
SIMULATED = True
TENANTS = SLOTS
MODES = ("mps", "timeslice")

EFFISHA_GAP = 3.0  # ms


def all_done(offsets, together):
    """us after the first launch."""
    return max(offset + us for offset, us in zip(offsets, together))


def ideal(bench, settings, us, switch):
    """What the policy does without Weir's own delays, under time-slicing, as weir-sim finds: the ANTT, and the per cent of
    the kernels' time that its switches take. @settings: the share of each kernel, in the order of launches. @us: their
    times. @switch: us. `dynamic` switches two or three times a kernel, as it serves in quotas; and ranks by priority, which
    need not favour the ANTT."""
    clients = "".join(f"client c{i} share={share}\n" for i, share in enumerate(settings))
    work = "".join(f"work {round(1e6 * EFFISHA_GAP * i)}ns c{i} {round(1e3 * each)}ns\n" for i, each in enumerate(us))
    machine = ["--look", "1us", "--late", "1ns", "--evict", "1us", "--switch", f"{max(1, round(1e3 * switch))}ns"]
    argv = [bench.node.program("weir-sim"), "--policy", "dynamic", "--cost", "1us", *machine, "--json", "-"]
    trace = f"{clients}{work}end 10s\n"
    done = subprocess.run(argv, input=trace, capture_output=True, text=True, timeout=60, check=True)
    found = json.loads(done.stdout)
    return found["antt"], 100 * found["lostSeconds"] / found["busySeconds"]


def run(bench):
    pool, switch = pool_of(bench), turnarounds.switch_us(bench)
    rows = {Job(workload, kernel=kernel, us=round(1e3 * row[0])): row for (workload, kernel), row in EFFISHA.items()}
    jobs = list(rows)
    pool.set_policy("dynamic")
    for mode in turnarounds.MODES:
        pool.ensure(mode, jobs)
    alone = turnarounds.singles(bench, jobs)
    by = [alone[job] for job in jobs]
    offsets = [EFFISHA_GAP * 1e3 * i for i in range(len(jobs))]
    plain = {mode: turnarounds.medians(bench, mode, jobs, offsets) for mode in ("time-slicing", "MPS")}
    base = turnarounds.antt(plain["MPS"], by), turnarounds.stp(plain["MPS"], by)
    sliced = turnarounds.antt(plain["time-slicing"], by), turnarounds.stp(plain["time-slicing"], by)
    later, ideal_later = [], []
    for _ in range(2):  # forms for a client that others wait for are still compared
        turnarounds.medians(bench, "Weir", jobs, offsets)
    for column, setting in enumerate(("random", "group", "SJF"), 1):
        # Shares are in proportion to EffiSha's priorities, so that the order stays.
        most = max(row[column] for row in rows.values())
        shares = {job: max(1, round(100 * row[column] / most)) for job, row in rows.items()}
        pool.set_policy("dynamic", shares)
        before = pool.counters(jobs)
        together = turnarounds.medians(bench, "Weir", jobs, offsets)
        print(f"    {setting}: {turnarounds.shown(together)} us, MPS {turnarounds.shown(plain['MPS'])}, alone {turnarounds.shown(by)}", flush=True)
        for job, *counts in zip(jobs, before, pool.counters(jobs)):
            print(f"        {name(job)}: {counted(*counts)}", flush=True)
        cut = 100 * (1 - turnarounds.antt(together, by) / base[0])
        gain = turnarounds.stp(together, by) / base[1]
        note = f"ANTT {turnarounds.antt(together, by):.2f}, MPS {base[0]:.2f}, time-slicing {sliced[0]:.2f}; {EFFISHA_GAP:g} ms apart"
        bench.report.judge(f"{setting}: ANTT cut against MPS", cut, BOUNDS[f"{setting}: ANTT cut"], note)
        note = f"STP {turnarounds.stp(together, by):.2f}, MPS {base[1]:.2f}, time-slicing {sliced[1]:.2f}"
        bench.report.judge(f"{setting}: STP against MPS", gain, BOUNDS[f"{setting}: STP"], note)
        ideal_antt, lost = ideal(bench, shares.values(), by, switch)
        bound = turnarounds.reachable(bench, BOUNDS["ANTT against time-slicing"], sliced[0] / ideal_antt)
        note = f"the policy's without Weir's delays: ANTT {ideal_antt:.2f}"
        bench.report.judge(f"{setting}: ANTT against time-slicing", sliced[0] / turnarounds.antt(together, by), bound, note)
        ideal_later.append(lost)
        later.append(100 * (all_done(offsets, together) / all_done(offsets, plain["MPS"]) - 1))
    # Each alone, in the form that it got among others: the part of the overhead that the form costs.
    forms = turnarounds.singles(bench, jobs, "Weir")
    print(f"    alone in these forms: {turnarounds.shown(forms[job] for job in jobs)} us", flush=True)
    bound = turnarounds.reachable(bench, BOUNDS["overhead"], max(ideal_later))
    note = f"MPS {all_done(offsets, plain['MPS']) / 1e3:.1f} ms; the policy's switches alone {max(ideal_later):.1f} %; by what the kernels' forms cost alone {100 * (sum(forms.values()) / sum(by) - 1):.1f} %"
    bench.report.judge("scheduling overhead: all are done later than under MPS, worst setting", max(later), bound, note)
    for mode in turnarounds.MODES:
        pool.leave(mode, jobs)
