"""Parts g, h, i and j: servers that must answer in time beside those that take all they can get."""

import contextlib
import time

import sharing
from node import Tenant
from players import DEPTH, Role, stage_of
from sharing import HIGH, LOW

SERVERS = 3
PART = 0.2  # of the GPU, for each server
OBJECTIVES = {"500us": 500, "2ms": 2000, "10ms": 10000}  # us
TENANTS = [Tenant(f"slo-{slo}", "low", slo=slo) for slo in OBJECTIVES]
EQUALS = 3
PERIOD_MS = 20  # of the one with an objective
TORCH = ("train", "train", "train", "mm", "mm", "mm")  # part j; two bursts beside them
P99_LIMITS = {"g": 1.05, "j": 1.10}


def quantile(values, q):
    values = sorted(values)
    return values[min(len(values) - 1, int(q * len(values)))]


def length(bench, seconds):
    return 0.3 if bench.node.simulated else seconds


def turnarounds(answers):
    return [(end - launch) / 1e3 for answer in answers for launch, end in answer["shots"]]


class Consolidation:
    """Servers that are busy a fifth of the time each, and a batch job."""

    def __init__(self, bench):
        self.stage = stage_of(bench)
        self.seconds = length(bench, 2.0)
        self.batch = Role("euler", "large", copy=5)
        self.servers = {
            mode: [Role("matrix-multiply", "small", HIGH if mode == "Weir" else "", 20 + i) for i in range(SERVERS)]
            for mode in ("time-slicing", "MPS", "Weir")
        }
        for mode, servers in self.servers.items():
            self.stage.cast(mode, [*servers, self.batch])
        self.us = self.stage.alone["MPS", self.servers["MPS"][0]]
        self.every = int(self.us / PART * 1e3)

    def commands(self, servers):
        n = int(self.seconds * 1e9 / self.every)
        return [(role, ("shots", i * self.every // SERVERS, self.every, n, 0)) for i, role in enumerate(servers)]

    def alone(self):
        return turnarounds(self.stage.ask("MPS", self.commands(self.servers["MPS"]), self.seconds))

    def beside(self, mode):
        """Turnarounds of the servers, missed shots, and what part of a GPU without servers the batch job got."""
        end = int(self.seconds * 1e9)
        commands = [*self.commands(self.servers[mode]), (self.batch, ("endless", 0, end, DEPTH, 0))]
        *answers, batch = self.stage.ask(mode, commands, self.seconds)
        got = len([e for e in batch["ends"] if e <= end]) * self.stage.alone["MPS", self.batch] / (self.seconds * 1e6)
        return turnarounds(answers), sum(answer["missed"] for answer in answers), got


def part_g(bench):
    scene = Consolidation(bench)
    alone = scene.alone()
    base = quantile(alone, 0.99)
    bench.report.add("g", f"{SERVERS} servers, without the batch job", f"{quantile(alone, 0.5):.0f}/{base:.0f} us (n={len(alone)})")
    for mode in ("time-slicing", "MPS", "Weir"):
        us, missed, got = scene.beside(mode)
        rest = 100 * got / (1 - SERVERS * PART)
        shown = f"{quantile(us, 0.5):.0f}/{quantile(us, 0.99):.0f} us (n={len(us)}, {missed} not even begun)"
        if mode != "Weir":
            bench.report.add("g", f"{mode}: servers' p99", f"{quantile(us, 0.99) / base:.2f}x", baselines=f"{shown}; batch job {rest:.1f} % of the rest")
            continue
        bench.report.at_most("g", "Weir: servers' p99 against without batch job", quantile(us, 0.99) / base, P99_LIMITS["g"], "x", shown)
        bench.report.at_least("g", "Weir: the batch job's part of the rest", rest, 95)
    for mode, servers in scene.servers.items():
        scene.stage.leave(mode, [*servers, scene.batch])


def part_h(bench):
    argv = [bench.node.bench("bench-predict"), *bench.node.sizes]
    argv += ["--only", "vector-add"] if bench.node.simulated else []
    client = bench.node.start("bench-predict", argv, LOW, False, files=False)
    result = client.result(90)
    error = 100 * result["mean_error"]
    bench.report.at_most("h", "prediction error, mean over workloads", error, 6.9, " %", f"{result['workloads']} workloads")


def starts(node, player):
    """(starts, late ones) so far."""
    pid = player.client.process.pid
    known = next((client for client in node.status() if client["pid"] == pid), {})
    return known.get("starts", 0), known.get("startsLate", 0)


def work(stage, answers, roles):
    return sum(len(answer["ends"]) * stage.alone["Weir", role] for answer, role in zip(answers, roles))


def part_i(bench):
    stage = stage_of(bench)
    equals = [Role("matrix-multiply", copy=30 + i) for i in range(EQUALS)]
    askers = {slo: Role("reduction", "small", f"slo-{slo}", 40) for slo in OBJECTIVES}
    first = Role("reduction", "small", HIGH, 40)
    stage.cast("Weir", [*equals, *askers.values(), first])
    stage.set_policy("wfq")
    seconds = length(bench, 3.0)
    n = int(seconds * 1e3 / PERIOD_MS)

    def play(asker):
        commands = [(role, ("endless", 0, int(seconds * 1e9), DEPTH, 0)) for role in equals]
        commands.append((asker, ("shots", 0, PERIOD_MS * 1_000_000, n, 0)))
        *answers, shots = stage.ask("Weir", commands, seconds)
        return work(stage, answers, equals), turnarounds([shots])

    kept, _ = play(first)
    for slo, asker in askers.items():
        before = starts(bench.node, stage.players["Weir", asker])
        got, us = play(asker)
        time.sleep(0.2)
        after = starts(bench.node, stage.players["Weir", asker])
        all_, late = (b - a for a, b in zip(before, after))
        shown = f"{all_} starts, {late} late; turnaround {quantile(us, 0.5):.0f}/{quantile(us, 0.99):.0f} us, alone {stage.alone['Weir', asker]:.0f} us"
        bench.report.at_least("i", f"latencySlo {slo}: attained, as the agent counts", 100 * (1 - late / max(1, all_)), 99.9, " %", shown)
        # The agent counts what gates hold; the user, also what is left of others' kernels.
        limit = stage.alone["Weir", asker] + OBJECTIVES[slo]
        within = 100 * sum(t <= limit for t in us) / len(us)
        bench.report.at_least("i", f"latencySlo {slo}: done within it and the time alone", within, 99.9, " %")
        bench.report.at_least("i", f"latencySlo {slo}: the others' work against below a priority", 100 * got / kept, 100, " %")
    add_live_error(bench, "i")
    stage.leave("Weir", [*equals, *askers.values(), first])


def add_live_error(bench, part):
    """What libweir predicted of the launches that it measured, in all clients that are there now."""
    known = [client for client in bench.node.status() if client.get("predictions")]
    n = sum(client["predictions"] for client in known)
    if n:
        error = 100 * sum(client["predictions"] * client["predictionError"] for client in known) / n
        bench.report.add(part, "live prediction error, mean over launches", f"{error:.2f} %", baselines=f"{n} launches of {len(known)} clients")


def torch_rates(bench, weir, mps, seconds):
    """Rates of all that PyTorch does beside two bursts, and these."""
    node = bench.node
    if mps:
        node.ensure_mps()
    else:
        node.stop_mps()
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(node.running(f"torch-{w}", bench.low_argv(w), LOW, weir)) for w in TORCH]
        argv = bench.burst_argv(1 << 40, seconds)
        bursts = [node.start("burst", argv, HIGH, weir) for _ in range(2)]
        results = [burst.result() for burst in bursts]
    return [client.result()[w]["rate"] for client, w in zip(clients, TORCH)], max(r["p99"] for r in results)


def part_j(bench):
    if bench.node.simulated:
        bench.report.add("j", "PyTorch does not run on the simulated GPU", "none")
        return
    seconds = 2 * bench.seconds
    alone = {w: bench.node.start("alone", bench.low_argv(w, 1), LOW, False).result()[w]["rate"] for w in sorted(set(TORCH))}
    argv = bench.burst_argv(1 << 40, seconds)
    pair = [bench.node.start("burst", argv, HIGH, False) for _ in range(2)]
    base = max(burst.result()["p99"] for burst in pair)
    bench.node.ensure_agent()
    found = {}
    for name, weir, mps in (("time-slicing", False, False), ("MPS", False, True), ("Weir", True, True)):
        rates, p99 = torch_rates(bench, weir, mps, seconds)
        found[name] = sum(rate / alone[w] for rate, w in zip(rates, TORCH)), p99 / base
    best = max(found["time-slicing"][0], found["MPS"][0])
    note = "; ".join(f"{name} {total:.3f}, p99 {p99:.2f}x" for name, (total, p99) in found.items())
    bench.report.at_least("j", f"8 clients, {seconds:.0f} s: throughput against the best baseline", 100 * found["Weir"][0] / best, 95, " %", note)
    bench.report.at_most("j", "8 clients: high-priority p99 against alone", found["Weir"][1], P99_LIMITS["j"], "x", f"alone {base:.0f} us")
