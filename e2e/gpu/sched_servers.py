"""Parts g, h and i: servers that must answer in time beside those that take all they can get, and how well times are
predicted."""

import statistics
import time

from node import Tenant
from players import DEPTH, Role, counted, progress, stage_of
from sched_pairs import EFFISHA
from sched_shares import FLEP
from sharing import HIGH, LOW

SERVERS = 3
PART = 0.2  # of the GPU, for each server
REQUESTS = (5000, 500)  # us that one lasts; the first has bounds
# us: who asks for 5 ms can wait for a kernel of the batch job, whose longest has 244; in forms that one is slower by a tenth. Weir learns
# as much by itself: its row without that is to be no worse.
PATIENCE = 300
ALWAYS = 100_000  # us: a server's kernels never need to leave, as nobody is above
TOLD = f"Weir, latency {PATIENCE} us"
WAYS = {"time-slicing": "time-slicing", "MPS": "MPS", "Weir": "Weir", TOLD: "Weir"}  # by name: the mode
PLAIN = [name for name, mode in WAYS.items() if mode != "Weir"]
OBJECTIVES = {"500us": 500, "2ms": 2000, "10ms": 10000}  # us
TENANTS = [Tenant(f"slo-{slo}", "low", slo=slo) for slo in OBJECTIVES]
EQUALS = 3
PERIOD_MS = 20  # of the one with an objective
ASKED_S = 0.7  # of one contest
CONTESTS = 5  # below a priority, and as many with an objective
FORGET_S = 10.5  # so long behind somebody above kernels still have forms that leave for it
P99_LIMIT = 1.05
ERROR_LIMIT = 6.9  # per cent: FLEP's


def quantile(values, q):
    values = sorted(values)
    return values[min(len(values) - 1, int(q * len(values)))]


def length(bench, seconds):
    return 0.3 if bench.node.simulated else seconds


def turnarounds(answers):
    return [(end - launch) / 1e3 for answer in answers for launch, end in answer["rounds"]]


class Consolidation:
    """Servers that are busy a fifth of the time each, and a batch job; in TOLD Weir is told for how long kernels of each may keep
    others waiting."""

    def __init__(self, bench, us):
        self.stage = stage_of(bench)
        self.seconds = length(bench, 2.0)
        self.plain = Role("euler", "large", copy=5)
        self.batch = {name: self.plain for name in WAYS} | {TOLD: Role("euler", "large", copy=5, latency=PATIENCE)}
        self.servers = {name: self.serve(us, name) for name in WAYS}
        self.stage.set_policy("wfq")
        for name in PLAIN:
            self.enter(name)
        self.us = self.stage.alone["MPS", self.servers["MPS"][0]]
        self.every = int(self.us / PART * 1e3)

    @staticmethod
    def serve(us, name):
        tenant, latency = HIGH if WAYS[name] == "Weir" else "", ALWAYS if name == TOLD else 0
        return [Role("matrix-multiply", "small", tenant, 20 + i, "matrix_multiply", us, latency) for i in range(SERVERS)]

    def enter(self, name):
        self.stage.cast(WAYS[name], [*self.servers[name], self.batch[name]])

    def leave(self, name):
        self.stage.leave(WAYS[name], [*self.servers[name], self.batch[name]])

    def commands(self, servers):
        n = int(self.seconds * 1e9 / self.every)
        return [(role, ("rounds", i * self.every // SERVERS, self.every, n, 0)) for i, role in enumerate(servers)]

    def alone(self):
        return turnarounds(self.stage.ask("MPS", self.commands(self.servers["MPS"]), self.seconds))

    def batch_alone(self, name):
        """What part of a GPU without libweir the batch job gets alone, in the forms that it has since servers came."""
        return self.stage.alone["MPS", self.plain] / self.stage.round_us(WAYS[name], self.batch[name], 0.5)

    def beside(self, name):
        """Turnarounds of the servers, missed shots, and what part of a GPU without servers the batch job got."""
        end = int(self.seconds * 1e9)
        commands = [*self.commands(self.servers[name]), (self.batch[name], ("endless", 0, end, DEPTH, 0))]
        *answers, answer = self.stage.ask(WAYS[name], commands, self.seconds)
        got = len([e for e in answer["ends"] if e <= end]) * self.stage.alone["MPS", self.plain] / (self.seconds * 1e6)
        return turnarounds(answers), sum(answer["missed"] for answer in answers), got


def part_g(bench):
    for us in REQUESTS:
        consolidate(bench, us, bounded=us == REQUESTS[0])


def consolidate(bench, us, bounded):
    scene = Consolidation(bench, us)
    alone = scene.alone()
    base = quantile(alone, 0.99)
    what = f"requests of {us / 1e3:g} ms"
    bench.report.add("g", f"{SERVERS} servers, {what}, without the batch job", f"{quantile(alone, 0.5):.0f}/{base:.0f} us (n={len(alone)})")
    for name, mode in WAYS.items():
        batch = scene.batch[name]
        before = None
        if mode == "Weir":  # how long servers can wait is learned from what they do, and they alone count
            scene.enter(name)
            scene.beside(name)
            before = scene.stage.counters([batch])
        times, missed, got = scene.beside(name)
        if before:
            print(f"    batch job: {counted(*before, *scene.stage.counters([batch]))}", flush=True)
        late, rest = quantile(times, 0.99) / base, 100 * got / (1 - SERVERS * PART)
        shown = f"{quantile(times, 0.5):.0f}/{quantile(times, 0.99):.0f} us (n={len(times)}, {missed} not even begun)"
        of = f"batch job alone, in the forms that it has then, {100 * scene.batch_alone(name):.1f} %" if before else ""
        if mode == "Weir" and bounded:
            bench.report.at_most("g", f"{name}, {what}: servers' p99 against without batch job", late, P99_LIMIT, "x", shown)
            bench.report.at_least("g", f"{name}, {what}: the batch job's part of the rest", rest, 95, " %", of)
        else:
            text = "; ".join(filter(None, (shown, f"batch job {rest:.1f} % of the rest", of)))
            bench.report.add("g", f"{name}, {what}: servers' p99", f"{late:.2f}x", baselines=text)
        scene.leave(name)


def part_h(bench):
    argv = [bench.node.bench("bench-predict"), *bench.node.sizes]
    argv += ["--only", "vector-add"] if bench.node.simulated else []
    client = bench.node.start("bench-predict", argv, LOW, False, files=False)
    result = client.result(90)
    error = 100 * result["mean_error"]
    what = "prediction error of sizes never seen, mean over workloads"
    bench.report.at_most("h", what, error, ERROR_LIMIT, " %", f"{result['workloads']} workloads")
    live_errors(bench)


def live_errors(bench):
    """What libweir predicted of launches that it then measured, as the agent counts it: the papers' benchmarks, each
    alone, then all at the same time."""
    stage = stage_of(bench)
    names = dict.fromkeys([workload for workload, *_ in FLEP.values()] + [workload for workload, _ in EFFISHA])
    roles = [Role(workload, "small", copy=50) for workload in list(names)[: 2 if bench.node.simulated else None]]
    stage.cast("Weir", roles)
    alone = predictions(stage, roles)
    stage.endless("Weir", roles, length(bench, bench.seconds))
    both = predictions(stage, roles)
    beside = [(n - m, error - before) for (n, error), (m, before) in zip(both, alone)]
    note = f"{sum(n for n, _ in alone)} launches of {len(roles)} workloads"
    bench.report.at_most("h", "prediction error of launches, each workload alone, mean over them", mean_error(alone), ERROR_LIMIT, " %", note)
    note = f"{sum(n for n, _ in beside)} launches"
    bench.report.add("h", "the same, all at a time", f"{mean_error(beside):.2f} %", baselines=note)
    stage.leave("Weir", roles)


def predictions(stage, roles):
    """(launches, sum of their errors) of each so far; what the last ones told comes a moment later."""
    time.sleep(0.2)
    known = {client["pid"]: client for client in stage.node.status()}
    clients = [known[stage.players["Weir", role].client.process.pid] for role in roles]
    return [(client["predictions"], client["predictions"] * client.get("predictionError", 0)) for client in clients]


def mean_error(counted):
    """Per cent, of (launches, sum of errors) of each."""
    errors = [100 * error / n for n, error in counted if n]
    return sum(errors) / max(1, len(errors))


def starts(node, player):
    """(starts, late ones) so far."""
    pid = player.client.process.pid
    known = next((client for client in node.status() if client["pid"] == pid), {})
    return known.get("starts", 0), known.get("startsLate", 0)


def work(stage, answers, roles, seconds):
    return sum(progress(answer["ends"], seconds * 1e9) * stage.alone["Weir", role] for answer, role in zip(answers, roles))


class Objectives:
    """Equals that take all they can get, and one that asks now and then: with a priority, or with an objective. Who was above
    a moment ago still counts, so those with it are not played in turns with the others; of those with objectives
    only the one that is played is there."""

    def __init__(self, bench):
        self.stage = stage_of(bench)
        self.seconds = length(bench, ASKED_S)
        self.forget = length(bench, FORGET_S)
        self.equals = [Role("matrix-multiply", copy=30 + i) for i in range(EQUALS)]
        self.first = Role("reduction", "small", HIGH, 40)
        self.stage.set_policy("wfq")
        self.stage.cast("Weir", [*self.equals, self.first])

    def endless(self, seconds):
        return [(role, ("endless", 0, int(seconds * 1e9), DEPTH, 0)) for role in self.equals]

    def play(self, asker):
        """What work the equals did, and the turnarounds of the one that asks."""
        n = int(self.seconds * 1e3 / PERIOD_MS)
        commands = [*self.endless(self.seconds), (asker, ("rounds", 0, PERIOD_MS * 1_000_000, n, 0))]
        *answers, shots = self.stage.ask("Weir", commands, self.seconds)
        return work(self.stage, answers, self.equals, self.seconds), turnarounds([shots])

    def contests(self, asker):
        """The same of each, of several; the first does not count."""
        return [self.play(asker) for _ in range(1 + CONTESTS)][1:]

    def compare(self, asker):
        """The equals' work below a priority and with @asker's objective, and turnarounds of both."""
        below = self.contests(self.first)
        self.stage.ask("Weir", self.endless(self.forget), self.forget)
        return below, self.contests(asker)


def uncertainty(values):
    """The standard error of their mean."""
    return statistics.stdev(values) / len(values) ** 0.5


def mean_against(values, base):
    """The mean of some in per cent of that of others, and its standard error."""
    ratio = 100 * statistics.mean(values) / statistics.mean(base)
    parts = [uncertainty(some) / statistics.mean(some) for some in (values, base)]
    return ratio, ratio * (parts[0] ** 2 + parts[1] ** 2) ** 0.5


def part_i(bench):
    scene = Objectives(bench)
    for slo in OBJECTIVES:
        judge_objective(bench, scene, slo)
    add_live_error(bench, "i")
    scene.stage.leave("Weir", [*scene.equals, scene.first])


def judge_objective(bench, scene, slo):
    stage, asker = scene.stage, Role("reduction", "small", f"slo-{slo}", 40)
    stage.cast("Weir", [asker])
    before = starts(bench.node, stage.players["Weir", asker])
    below, got = scene.compare(asker)
    time.sleep(0.2)
    after = starts(bench.node, stage.players["Weir", asker])
    alone = stage.alone["Weir", asker]
    stage.leave("Weir", [asker])

    us, first_us = ([t for _, times in some for t in times] for some in (got, below))
    all_, late = (b - a for a, b in zip(before, after))
    times = "/".join(f"{quantile(some, q):.0f}" for some in (us, first_us) for q in (0.5, 0.99))
    shown = f"{all_} starts, {late} late; turnaround, and with a priority: {times} us, alone {alone:.0f} us"
    bench.report.at_least("i", f"latencySlo {slo}: attained, as the agent counts", 100 * (1 - late / max(1, all_)), 99.9, " %", shown)
    # The agent counts what gates hold; the user, also what is left of others' kernels.
    within = 100 * sum(t <= alone + OBJECTIVES[slo] for t in us) / len(us)
    bench.report.at_least("i", f"latencySlo {slo}: done within it and the time alone", within, 99.9, " %")
    base = statistics.mean(work for work, _ in below)
    mean, unsure = mean_against([work for work, _ in got], [work for work, _ in below])
    each = "; below the priority ".join(", ".join(f"{100 * work / base:.2f}" for work, _ in some) for some in (got, below))
    shown = f"{CONTESTS} of {scene.seconds:g} s each: {each}; +- {unsure:.2f}"
    bench.report.at_least("i", f"latencySlo {slo}: the others' work against below a priority", mean, 100, " %", shown)


def add_live_error(bench, part):
    """What libweir predicted of the launches that it measured, in all clients that are there now."""
    known = [client for client in bench.node.status() if client.get("predictions")]
    n = sum(client["predictions"] for client in known)
    if n:
        error = 100 * sum(client["predictions"] * client["predictionError"] for client in known) / n
        bench.report.add(part, "live prediction error, mean over launches", f"{error:.2f} %", baselines=f"{n} launches of {len(known)} clients")
