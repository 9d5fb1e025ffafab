import time

import servers
from bursts import LOW
from papers import EFFISHA, FLEP
from report import at_most
from workers import SLOTS, Job, pool_of

SHOWS = "error of predicted kernel times: of sizes never seen, and of launches as the agent counts it"
PAPER = "FLEP"
BOUNDS = {"sizes never seen": at_most(6.9, " %"), "launches, alone": at_most(6.9, " %")}  # FLEP's
BASELINES = ()
NEEDS = ("gpu", "root")
SIMULATED = True
TENANTS = SLOTS
MODES = ("mps", "timeslice")


def live_errors(bench):
    """Errors of launches that libweir predicted and then measured, as the agent counts them: the papers' benchmarks, each
    alone, then all at the same time."""
    pool = pool_of(bench)
    names = dict.fromkeys([workload for workload, *_ in FLEP.values()] + [workload for workload, _ in EFFISHA])
    jobs = [Job(workload, "small", copy=50) for workload in list(names)[: 2 if bench.node.simulated else None]]
    pool.ensure("Weir", jobs)
    alone = predictions(pool, jobs)
    pool.endless("Weir", jobs, servers.length(bench, bench.seconds))
    both = predictions(pool, jobs)
    beside = [(n - m, error - before) for (n, error), (m, before) in zip(both, alone)]
    note = f"{sum(n for n, _ in alone)} launches of {len(jobs)} workloads"
    bench.report.judge("prediction error of launches, each workload alone, mean over them", mean_error(alone), BOUNDS["launches, alone"], note)
    note = f"{sum(n for n, _ in beside)} launches"
    bench.report.add("the same, all at a time", f"{mean_error(beside):.2f} %", baselines=note)
    pool.leave("Weir", jobs)


def predictions(pool, jobs):
    """(launches, sum of their errors) of each so far, after the last reports have arrived."""
    time.sleep(0.2)
    known = {client["pid"]: client for client in pool.node.status()}
    clients = [known[pool.workers["Weir", job].client.process.pid] for job in jobs]
    return [(client["predictions"], client["predictions"] * client.get("predictionError", 0)) for client in clients]


def mean_error(counted):
    """The mean over jobs in per cent, of (launches, sum of errors) of each."""
    errors = [100 * error / n for n, error in counted if n]
    return sum(errors) / max(1, len(errors))


def run(bench):
    argv = [bench.node.bench("bench-predict"), *bench.node.sizes]
    argv += ["--only", "vector-add"] if bench.node.simulated else []
    client = bench.node.start("bench-predict", argv, LOW, False, files=False)
    result = client.result(200)
    error = 100 * result["mean_error"]
    what = "prediction error of sizes never seen, mean over workloads"
    bench.report.judge(what, error, BOUNDS["sizes never seen"], f"{result['workloads']} workloads")
    live_errors(bench)
