"""What a share means under the default policy: four clients of one level with 10, 20, 30 and 40 shares that always have
work, with kernels that come as PTX and with closed ones. And what that costs short work: pairs of a long and a short
kernel, against hpf, which knows no shares."""

import statistics

import loops
import sharing
import turnarounds
from clock import Clock
from node import Failure, Tenant
from papers import SHORT, large, small
from report import at_most
from workers import SLOTS, Job, pool_of, sample

SHOWS = "10:20:30:40 under the default policy, PTX and closed kernels; ANTT against hpf's"
PAPER = ""
BOUNDS = {"off the share": at_most(2, " points"), "ANTT against hpf, mean": at_most(1.03, "x")}
BASELINES = ("hpf", "MPS")
NEEDS = ("gpu", "mps", "pytorch", "root")
SIMULATED = True
NAMES = ("part-a", "part-b", "part-c", "part-d")
TENANTS = (*SLOTS, *(Tenant(name, "normal") for name in NAMES))
MODES = ("mps", "timeslice")

DEFAULT = "whpf"
PARTS = (10, 20, 30, 40)
ROUND_US = 500  # of a launch
WINDOW = 1.0  # seconds: 33 rounds of the policy
# A client's first work may take its part of 200 ms at once.
SETTLE_PTX, WINDOWS = 1.5, 3
SETTLE, SECONDS = 3.0, 3


def run(bench):
    pool = pool_of(bench)
    antt_against_hpf(bench, pool)
    parts_of_ptx(bench, pool)
    pool.leave_all()
    parts_of_closed(bench)


def antt_against_hpf(bench, pool):
    pairs = [(large(a), small(b)) for a in ("NN", "PF") for b in SHORT]
    pairs = sample(pairs, 1 if bench.node.simulated else len(pairs))
    jobs = {job: None for pair in pairs for job in pair}
    turnarounds.ensure_all(bench, jobs, jobs)
    alone = turnarounds.singles(bench, jobs)
    found = {}
    for policy in ("hpf", DEFAULT):
        pool.set_policy(policy)
        turnarounds.learn(bench, pairs)
        found[policy] = [antt_of(bench, pair, alone) for pair in pairs]
    ratios = [ours / theirs for ours, theirs in zip(found[DEFAULT], found["hpf"])]
    text = "; ".join(f"{policy} {', '.join(f'{antt:.2f}' for antt in antts)}" for policy, antts in found.items())
    bench.report.judge(f"{DEFAULT}: ANTT against hpf, {len(pairs)} pairs, mean", statistics.fmean(ratios), BOUNDS["ANTT against hpf, mean"], text)


def antt_of(bench, pair, alone):
    together = turnarounds.medians(bench, "Weir", list(pair), turnarounds.behind(pair))
    return turnarounds.antt(together, [alone[job] for job in pair])


def parts_of_ptx(bench, pool):
    jobs = [Job("matrix-multiply", copy=i, kernel="matrix_multiply", us=ROUND_US) for i in range(len(PARTS))]
    pool.set_policy(DEFAULT)
    for mode in ("MPS", "Weir"):
        pool.ensure(mode, jobs)
    window, seconds = (0.3, 0.6) if bench.node.simulated else (WINDOW, SETTLE_PTX + WINDOWS * WINDOW)
    windows, wanted = sharing.co_run(
        bench, "PTX 10:20:30:40", jobs, PARTS, window, DEFAULT, seconds, ("MPS",), skipped=SETTLE_PTX
    )
    bench.report.judge(f"{DEFAULT}: PTX, furthest from its share, windows of {window:g} s", windows.worst(wanted), BOUNDS["off the share"])


def parts_of_closed(bench):
    workload = "filler" if bench.node.simulated else "mm"
    bench.node.change_tenants({name: {"share": share} for name, share in zip(NAMES, PARTS)})
    loops.begin_node(bench, "")
    clients = [loops.loop_of(bench, name, (workload,)) for name in NAMES]
    try:
        for client in clients:
            client.wait_ready()
        if bench.node.weirctl("policy").strip() != DEFAULT:
            raise Failure(f"the default policy is not {DEFAULT}")
        if loops.has_hardware(bench, clients):
            judge_closed(bench, clients, workload)
    finally:
        bench.node.change_tenants({name: {"share": 0} for name in NAMES})
        loops.end_node(bench, clients)


def judge_closed(bench, clients, workload):
    """Steps are all the same, so their rates are parts of the GPU."""
    with Clock(bench.node.simulated):
        progress, begin, _ = loops.together([(client, workload) for client in clients], SETTLE + SECONDS + 0.1)
    seconds = list(zip(*(p.windows(begin + SETTLE, SECONDS) for p in progress)))
    rows = [[100 * rate / (sum(row) or 1) for rate in row] for row in seconds]
    off = max(abs(part - want) for row in rows for part, want in zip(row, PARTS))
    text = "; ".join(":".join(f"{part:.1f}" for part in row) for row in rows)
    bench.report.judge(f"{DEFAULT}: closed kernels, furthest from its share, worst second", off, BOUNDS["off the share"], text)
