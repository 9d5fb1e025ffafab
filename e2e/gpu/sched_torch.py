"""Part j: PyTorch that trains, computes, and answers requests: eight clients of one GPU."""

import statistics
import time

from node import Failure, Tenant
from players import stage_of
from sharing import LOW

BATCH = ("train", "train", "train", "infer", "infer", "infer")
SERVERS = 2  # that answer requests by an `infer` each, with priority
# Each is a container of its own, as pods are.
BATCH_TENANTS = [Tenant(f"torch-{i}", "low") for i in range(len(BATCH))]
SERVER_TENANTS = [Tenant(f"torch-server-{i}", "high") for i in range(SERVERS)]
TENANTS = [*BATCH_TENANTS, *SERVER_TENANTS]
GAP_MS = 30  # between the requests of one, on average
SECONDS = 20  # for each of --seconds: three of these are the minute
SETTLE = 2.0  # seconds in which all are there, before what is counted
P99_LIMIT = 1.10
# Ways of sharing: libweir, below the MPS daemon, servers in streams of the greatest priority; the agent's policy.
MODES = {
    "time-slicing": (False, False, False, None),
    "MPS": (False, True, False, None),
    "MPS + stream priority": (False, True, True, None),
    "Weir": (True, True, False, "hpf"),
}
JUDGED = "Weir"  # with the agent's own policy


def server_argv(bench, seed, priority):
    argv = [*bench.low_argv("infer"), "--gap-ms", str(GAP_MS), "--seed", str(seed)]
    return [*argv, "--priority"] if priority else argv


def all_ready(clients):
    for client in clients:
        client.wait_ready()


def show_said(bench, clients, mps):
    """Whether these know that their kernels run at the same time as others', or do not."""
    pids = {client.process.pid for client in clients}
    said = [known["concurrent"] for known in bench.node.status() if known["pid"] in pids]
    right = len(said) >= len(clients) and set(said) == {mps}
    what = "below MPS" if mps else "with time slices"
    bench.report.holds("j", f"clients say that they are {what}", right, f"{said.count(mps)} of {len(clients)}")


def play(bench, batch, seconds, weir, mps, priority):
    """What all of them and the servers did: results of `low.py`, of the batch clients first, the begin of what counts,
    and the SM clock from then on."""
    node = bench.node
    if mps:
        node.ensure_mps()
    else:
        node.stop_mps()
    clients = [node.start(f"torch-{w}", bench.low_argv(w), tenant.name, weir) for w, tenant in zip(batch, BATCH_TENANTS)]
    clients += [node.start("torch-server", server_argv(bench, i, priority), tenant.name, weir) for i, tenant in enumerate(SERVER_TENANTS)]
    try:
        all_ready(clients)
        time.sleep(SETTLE)
        if weir:
            show_said(bench, clients, mps)
        begin = time.monotonic()
        with node.sm_clock() as clock:
            time.sleep(seconds)
    except Failure:
        for client in clients:
            client.kill()
        raise
    for client in clients:
        client.stop()
    results = [next(iter(client.result().values())) for client in clients]
    return results[: len(batch)], results[len(batch) :], begin, mhz(clock)


def mhz(clock):
    """As text; the board's power limit lowers it for all clients alike."""
    return f"{statistics.median(clock):.0f} MHz" if clock else "clock not known"


def steps_done(result, begin, end):
    """Between two times, with parts of windows."""
    inside = (max(0, min(e, end) - max(b, begin)) / (e - b) for b, e in result["windows"])
    return result["steps"] * sum(inside)


def answered(results, begin, end):
    """Seconds that each request took, of those that came between two times."""
    return [e - b for result in results for b, e in result["windows"] if begin <= b < end]


def p99(values):
    return sorted(values)[int(0.99 * len(values))]


def part_j(bench):
    if bench.node.simulated:
        bench.report.add("j", "PyTorch does not run on the simulated GPU", "none")
        return
    seconds = SECONDS * bench.seconds
    found = bench.node.start("alone", bench.low_argv(",".join(sorted(set(BATCH))), 1), LOW, False).result()
    alone = {workload: found[workload]["rate"] for workload in BATCH}
    _, servers, begin, clock_alone = play(bench, (), seconds, False, True, False)
    base = p99(answered(servers, begin, begin + seconds))
    totals, latencies, notes = {}, {}, []
    for mode, (*way, policy) in MODES.items():
        if policy:
            stage_of(bench).set_policy(policy)
        batch, servers, begin, clock = play(bench, BATCH, seconds, *way)
        rates = [steps_done(result, begin, begin + seconds) / seconds / alone[w] for result, w in zip(batch + servers, (*BATCH, *["infer"] * SERVERS))]
        latencies[mode] = p99(answered(servers, begin, begin + seconds)) / base
        totals[mode] = sum(rates)
        notes.append(f"{mode} {totals[mode]:.3f}, p99 {latencies[mode]:.2f}x, {clock}")
        print(f"    {notes[-1]}: " + ":".join(f"{100 * rate:.1f}" for rate in rates), flush=True)
    best = max(total for mode, total in totals.items() if not MODES[mode][0])
    what = f"8 clients, {seconds:.0f} s"
    bench.report.at_least("j", f"{what}: throughput against the best baseline", 100 * totals[JUDGED] / best, 95, " %", "; ".join(notes))
    bench.report.at_most("j", f"{what}: high-priority p99 against alone", latencies[JUDGED], P99_LIMIT, "x", f"alone {1e6 * base:.0f} us, {clock_alone}")
