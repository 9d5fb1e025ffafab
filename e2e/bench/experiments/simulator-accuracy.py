"""weir-sim simulates the co-runs that shares-ffs and shares-wfq measured in the same run. It is told how long launches
last, how much of them overlaps by what MPS makes of each, and what libweir and gates take between them. In the mode
timeslice it is told what a switch between running kernels costs, because the hardware shares the GPU by slices there."""

import json
import subprocess
import time

import sharing
import turnarounds
from experiment import MPS
from report import at_most
from workers import DEPTH, pool_of

SHOWS = "weir-sim against the co-runs of shares-ffs and shares-wfq, which must run before it"
PAPER = ""
BOUNDS = {"1 000 clients, 1 h": at_most(10, " s"), "shares": at_most(2.0, " points"), "throughput": at_most(2.0, " points")}
BASELINES = ("the co-runs on the GPU",)
NEEDS = ("gpu",)
SIMULATED = True
MODES = ("mps", "timeslice")

# Kernels up to SHORT_US run to their end, because libweir leaves them as they are among clients of one level. EVICT: half
# of a gate's interval. COST: the agent's evictionCost. LOOK: the agent's SCHEDULER_LOOK_NS.
SHORT_US, EVICT, COST, LOOK = 1000, "50us", "200us", "800us"


def machine(bench, switch):
    """weir-sim's options for what kernels of several clients do to each other. @switch: us, between running kernels."""
    return ["--mps"] if bench.mode == MPS else ["--hardware", "--switch", f"{round(1e3 * switch)}ns"]


def overlap_us(us, lost):
    """By how many us the end of a launch overlaps another client's begin, on average. MPS serves busy clients launch by
    launch, so one launch of each takes sum(us) / used instead of sum(us). A real loss has other reasons."""
    used = max(1, 1 - lost / 100)
    return sum(us) / len(us) * (1 - 1 / used)


def client_line(i, share, us, plain, overlap):
    """A line of the trace. A round is one launch of @us with Weir, and of @plain without. The difference is the gate and
    libweir's own work, during which another client's kernel may run if this one has no form."""
    launch, leaves = round(1e3 * us), ""
    if us <= SHORT_US:
        overlap += max(0, us - plain)
        leaves = " evict=never"
    return f"client c{i} always share={share} launch={launch}ns work={DEPTH * launch}ns overlap={round(1e3 * overlap)}ns{leaves}\n"


def simulate(bench, co_run, overlap, us, switch):
    """(shares, per cent lost) by weir-sim, over ten seconds. @us: of a launch of each, without Weir. The time with Weir is
    an input, as it was measured alone: weir-sim only decides who runs when."""
    launches = zip(co_run.shares, us, co_run.windows.plain)
    trace = "".join(client_line(i, share, u / part, u, overlap) for i, (share, u, part) in enumerate(launches))
    argv = [bench.node.program("weir-sim"), "--policy", co_run.policy, "--json", *machine(bench, switch), "--evict", EVICT, "--cost", COST, "--look", LOOK]
    argv += ["--late", f"{2000 * co_run.late:.0f}ns", "-"]  # at most, by the mean
    argv += ["--quantum", sharing.QUANTUM, "--min-quantum", sharing.QUANTUM] if co_run.policy == "wfq" else []
    done = subprocess.run(argv, input=trace + "end 10s\n", capture_output=True, text=True, timeout=60, check=True)
    result = json.loads(done.stdout)
    ran = [client["gpuSeconds"] for client in result["clients"]]
    used = sum(r * plain for r, plain in zip(ran, co_run.windows.plain))
    return [100 * r / sum(ran) for r in ran], 100 - 100 * used / result["seconds"]


def plain_loss(bench, jobs):
    """The loss under MPS without Weir, from the co-run of these jobs that measured it."""
    return next(co_run.plain for co_run in bench.co_runs if co_run.jobs == jobs and co_run.plain is not None)


def run(bench):
    crowd = "".join(f"client c{i} level=low share=1 every=2s work=1ms\n" for i in range(1000)) + "end 1h\n"
    begin = time.monotonic()
    argv = [bench.node.program("weir-sim"), "--policy", "wfq", "--json", "-"]
    subprocess.run([*argv, "--for", "1m"] if bench.node.simulated else argv, input=crowd, capture_output=True, text=True, timeout=120, check=True)
    bench.report.judge("weir-sim: 1 000 clients, 1 h", time.monotonic() - begin, BOUNDS["1 000 clients, 1 h"])
    if not bench.co_runs:
        bench.report.skipped("nothing to compare with: run shares-ffs and shares-wfq before")
        return
    far, switch = [], turnarounds.switches_us(bench)[1]
    for co_run in bench.co_runs:
        us = [pool_of(bench).alone["MPS", job] for job in co_run.jobs]
        overlap = overlap_us(us, plain_loss(bench, co_run.jobs)) if bench.mode == MPS else 0
        said, lost = simulate(bench, co_run, overlap, us, switch)
        was = [co_run.windows.mean(i) for i in range(len(us))]
        off = max(abs(a - b) for a, b in zip(said, was))
        what = f"{co_run.experiment}: {co_run.what}"
        told = f"{':'.join(f'{share:.1f}' for share in said)}, loss {lost:.2f} %"
        print(f"    {what}: {told}; on the GPU loss {co_run.windows.loss:.2f} %; {overlap:.1f} us of each end overlap, "
              f"timers {co_run.late:.0f} us late", flush=True)
        far.append((off, abs(lost - co_run.windows.loss), what))
    for i, name in ((0, "shares"), (1, "throughput")):
        worst = max(far, key=lambda one: one[i])
        bench.report.judge(f"weir-sim's {name} of the co-runs: furthest off", worst[i], BOUNDS[name], worst[2])
        mean = sum(one[i] for one in far) / len(far)
        bench.report.add(f"weir-sim's {name}: mean", f"{mean:.2f} points", baselines=f"{len(far)} co_runs")
