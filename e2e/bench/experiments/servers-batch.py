"""Servers of a higher level are busy a fifth of the time each; a batch job of a low level runs without end under `wfq`.
The agent learns how long servers can wait before it counts; in a second round the pods say so."""

import servers
import turnarounds
from bursts import HIGH
from report import at_least, at_most
from workers import DEPTH, SLOTS, Job, counted, pool_of

SHOWS = "three servers at 20 % each beside a batch job: their p99, and what the batch job keeps"
PAPER = "GLoop figures 13, 14"
BOUNDS = {"servers' p99": at_most(1.05), "the batch job's part": at_least(95)}
BASELINES = ("servers without the batch job", "MPS", "time-slicing")
PRINTED = (turnarounds.SWITCH,)
NEEDS = ("gpu", "mps", "root")
SIMULATED = True
TENANTS = SLOTS
MODES = ("mps", "timeslice")

SERVERS = 3
SERVER_PART = 0.2  # of the GPU, for each server
REQUESTS = {"5ms": 5000, "0.5ms": 500}  # by name of --parts: us that one lasts
# us: a client with requests of 5 ms can wait for a kernel of the batch job, the longest of which has 244; a form would
# cost a tenth. Weir finds this out by itself, and must not be worse without being told.
BLOCKING_US = 300
ALWAYS = 100_000  # us: a server's kernels never need to leave, as no client is of a higher level
TOLD = f"Weir, latency {BLOCKING_US} us"
WAYS = {"time-slicing": "time-slicing", "MPS": "MPS", "Weir": "Weir", TOLD: "Weir"}  # by name: the mode
PLAIN = [name for name, mode in WAYS.items() if mode != "Weir"]


class Consolidation:
    """The servers and the batch job, by way of sharing. In TOLD, the pods say how long their kernels may block others."""

    def __init__(self, bench, us):
        self.pool = pool_of(bench)
        self.seconds = servers.length(bench, 2.0)
        self.plain = Job("euler", "large", copy=5)
        self.batch = {name: self.plain for name in WAYS} | {TOLD: Job("euler", "large", copy=5, latency=BLOCKING_US)}
        self.servers = {name: self.serve(us, name) for name in WAYS}
        self.pool.set_policy("wfq")
        for name in PLAIN:
            self.enter(name)
        self.us = self.pool.alone["MPS", self.servers["MPS"][0]]
        self.every = int(self.us / SERVER_PART * 1e3)

    @staticmethod
    def serve(us, name):
        tenant, latency = HIGH if WAYS[name] == "Weir" else "", ALWAYS if name == TOLD else 0
        return [Job("matrix-multiply", "small", tenant, 20 + i, "matrix_multiply", us, latency) for i in range(SERVERS)]

    def enter(self, name):
        self.pool.ensure(WAYS[name], [*self.servers[name], self.batch[name]])

    def leave(self, name):
        self.pool.leave(WAYS[name], [*self.servers[name], self.batch[name]])

    def commands(self, servers):
        n = int(self.seconds * 1e9 / self.every)
        return [(job, ("rounds", i * self.every // SERVERS, self.every, n, 0)) for i, job in enumerate(servers)]

    def alone(self):
        way = self.pool.base
        return servers.turnarounds(self.pool.ask(way, self.commands(self.servers[way]), self.seconds))

    def batch_alone(self, name):
        """The batch job's rate alone, in the forms that it got beside servers, divided by its rate without libweir."""
        return self.pool.alone["MPS", self.plain] / self.pool.round_us(WAYS[name], self.batch[name], 0.5)

    def beside(self, name):
        """Turnarounds of the servers, missed rounds, and the part of the GPU that the batch job got."""
        end = int(self.seconds * 1e9)
        commands = [*self.commands(self.servers[name]), (self.batch[name], ("endless", 0, end, DEPTH, 0))]
        *answers, answer = self.pool.ask(WAYS[name], commands, self.seconds)
        got = len([e for e in answer["ends"] if e <= end]) * self.pool.alone["MPS", self.plain] / (self.seconds * 1e6)
        return servers.turnarounds(answers), sum(answer["missed"] for answer in answers), got


def consolidate(bench, us):
    scene, (idle, busy) = Consolidation(bench, us), turnarounds.switches_us(bench)
    alone = scene.alone()
    base = servers.quantile(alone, 0.99)
    what = f"requests of {us / 1e3:g} ms"
    bench.report.add(f"{SERVERS} servers, {what}, without the batch job", f"{servers.quantile(alone, 0.5):.0f}/{base:.0f} us (n={len(alone)})")
    for name, mode in WAYS.items():
        batch = scene.batch[name]
        before = None
        if mode == "Weir":  # Weir learns how long servers can wait
            scene.enter(name)
            scene.beside(name)
            before = scene.pool.counters([batch])
        times, missed, got = scene.beside(name)
        if before:
            print(f"    batch job: {counted(*before, *scene.pool.counters([batch]))}", flush=True)
        late, rest = servers.quantile(times, 0.99) / base, 100 * got / (1 - SERVERS * SERVER_PART)
        shown = f"{servers.quantile(times, 0.5):.0f}/{servers.quantile(times, 0.99):.0f} us (n={len(times)}, {missed} not even begun)"
        # Each request takes the GPU from the batch job, whose kernels run to their end if servers can wait so long, and
        # gives it back: the batch job is saved and restored once, in two switches.
        ideal = max(0, 100 * (1 - SERVERS * SERVER_PART * (busy + idle) / us / (1 - SERVERS * SERVER_PART)))
        of = f"batch job alone, in the forms that it has then, {100 * scene.batch_alone(name):.1f} %" if before else ""
        if mode == "Weir":
            of += f"; ideal with switches of {busy:.0f} and {idle:.0f} us for each request: {ideal:.1f} %" if busy else ""
            bench.report.judge(f"{name}, {what}: servers' p99 against without batch job", late, turnarounds.reachable(bench, BOUNDS["servers' p99"], 1 + busy / base), shown)
            bench.report.judge(f"{name}, {what}: the batch job's part of the rest", rest, turnarounds.reachable(bench, BOUNDS["the batch job's part"], ideal), of)
        else:
            text = f"{shown}; batch job {rest:.1f} % of the rest"
            bench.report.add(f"{name}, {what}: servers' p99", f"{late:.2f}x", baselines=text)
        scene.leave(name)


def run(bench):
    names = list(REQUESTS)[: 1 if bench.node.simulated else None]
    for name in bench.part_of(names):
        consolidate(bench, REQUESTS[name])
