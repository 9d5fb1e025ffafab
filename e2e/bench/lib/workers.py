"""Players (bench/worker.c) on a pool: programs that are started once, and play their benchmark when they
are told to, alone or together, in each way of sharing a GPU."""

import bisect
import dataclasses
import statistics
import subprocess
import time

from node import Failure, Tenant

# Ways of sharing: under the MPS daemon, with libweir.
MODES = {"time-slicing": (False, False), "MPS": (True, False), "Weir": (True, True)}
SLOTS = tuple(Tenant(f"slot-{i:02}", "low") for i in range(40))  # TENANTS of experiments with workers
MS = 1_000_000  # ns
LEAD = 30 * MS  # from a command to its begin
DEPTH = 4  # rounds queued
COUNTERS = ("launches", "evictions", "gates", "gatesClosed", "waits", "waitSeconds")  # that the agent shows of a client
PROBE = 4  # passes over the data, to see how long they are,
FITS = 3  # times, each with the number that seems right after the one before,
TIMED_ROUNDS, ROUND_GAP_MS = 9, 5  # by so many launches
CLOSE = 0.01  # to what a kernel is to last; how long it lasts varies by as much
SETTLE = 1.0  # seconds of each worker with Weir alone: measured, compiled, the form chosen;
SETTLE_ROUNDS = 300  # at least, for there may be a dozen forms to compare, and the best once more


@dataclasses.dataclass(frozen=True)
class Job:
    """@tenant: "": a seat of its own, of the lowest level. @copy: tells equal ones apart. @us: a round is
    one launch of @kernel over the data of class @size, so often that it takes so long, from the launch to the end; 0: a round is all
    that the benchmark does. @latency: us, what shorter kernels need no form that leaves for; 0: as by default.
    @elements: of the input, instead of those of the class; 0: these."""

    workload: str
    size: str = "small"
    tenant: str = ""
    copy: int = 0
    kernel: str = ""
    us: int = 0
    latency: int = 0
    elements: int = 0

    def __str__(self):
        return f"{self.workload} ({self.us / 1e3:g} ms)" if self.us else f"{self.workload} ({self.size})"


class Worker:
    def __init__(self, client, tenant):
        self.client, self.tenant = client, tenant


class WorkerPool:
    """@alone: us of a round of each job, by mode. @passes: over its data, of a kernel and how long it is to
    last."""

    def __init__(self, node):
        self.node, self.workers, self.alone, self.shares, self.passes = node, {}, {}, {}, {}
        self.slots = [tenant.name for tenant in SLOTS]

    def ensure(self, mode, jobs):
        """Starts who is not there yet; each is measured alone, behind the others."""
        mps, weir = MODES[mode]
        if mps:
            self.node.ensure_mps()
        if weir:
            self.node.ensure_agent()
        new = [job for job in jobs if (mode, job) not in self.workers]
        for job in new:
            self.workers[mode, job] = self.start(job, mps, weir)
        for job in new:
            self.workers[mode, job].client.wait_ready()
        for job in new:
            self.measure(mode, job)

    def start(self, job, mps, weir):
        tenant = job.tenant or (self.slots.pop(0) if weir else "low")
        size = "trivial" if self.node.simulated else job.size
        argv = [self.node.bench("worker"), *self.node.sizes, "--only", job.workload, "--class", size]
        argv += ["--kernel", job.kernel] if job.us else []
        argv += ["--size", str(job.elements)] if job.elements and not self.node.simulated else []
        env = {"WEIR_PREEMPT_LATENCY_US": str(job.latency)} if weir and job.latency else None
        client = self.node.start(
            f"worker-{job.workload}", argv, tenant, weir, env=env, mps=mps, stdin=subprocess.PIPE
        )
        return Worker(client, tenant)

    def round_us(self, mode, job, seconds):
        """Of the later half of those of so long a time, or of a longer one if none was done."""
        seconds = 0.05 if self.node.simulated else seconds
        ends = []
        while not ends:
            (ends,) = self.endless(mode, [job], seconds)
            seconds *= 2
        later = ends[len(ends) // 2 :]
        return (later[-1] - later[0]) / 1e3 / (len(later) - 1) if len(later) > 1 else ends[0] / 1e3

    def set_passes(self, mode, job):
        """What is found in one mode holds for all: it is the same kernel."""
        if (job.kernel, job.us) not in self.passes:
            n = 2 if job.us > 2000 else 1
            self.passes[job.kernel, job.us] = n if self.node.simulated else self.fitting_passes(mode, job)
        self.tell_passes(mode, job, self.passes[job.kernel, job.us])

    def tell_passes(self, mode, job, passes):
        client = self.workers[mode, job].client
        client.tell("passes", passes)
        client.answer(60)

    def turnaround(self, mode, job, passes):
        """us from the launch to the end, alone."""
        self.tell_passes(mode, job, passes)
        every = ROUND_GAP_MS + 3 * self.round_us(mode, job, 0.02) / 1e3
        (alone,) = self.timed_rounds(mode, [job], [0], every, TIMED_ROUNDS)
        return statistics.median(alone)

    def fitting_passes(self, mode, job):
        """So many that a round lasts as long as it is to; it has a launch besides, and passes are not all as long."""
        n = PROBE
        for _ in range(FITS):
            n = max(1, round(n * job.us / self.turnaround(mode, job, n)))
        return n

    def fit_again(self, known):
        """@known: us from the launch to the end of single kernels, by job, where they are played. Returns those that are
        another kernel for libweir now: they last otherwise by more than CLOSE, which passes can mend."""
        changed = []
        for job, us in known.items():
            key = job.kernel, job.us
            before, passes = self.passes[key], max(1, round(self.passes[key] * job.us / us))
            if passes == before or abs(us / job.us - 1) <= CLOSE:
                continue
            self.passes[key] = passes
            changed.append(job)
            for mode, other in self.workers:
                if (other.kernel, other.us) == key:
                    self.tell_passes(mode, other, passes)
                    self.alone[mode, other] *= passes / before
        return changed

    def measure(self, mode, job):
        if job.us:
            self.set_passes(mode, job)
        settle = max(SETTLE, SETTLE_ROUNDS * job.us / 1e6)
        self.alone[mode, job] = self.round_us(mode, job, settle if mode == "Weir" else 0.2)

    def leave(self, mode, jobs):
        for job in jobs:
            worker = self.workers.pop((mode, job))
            worker.client.leave()
            if mode == "Weir" and not job.tenant:
                self.slots.append(worker.tenant)

    def leave_all(self):
        for mode in MODES:
            self.leave(mode, [job for m, job in self.workers if m == mode])

    def set_policy(self, name, shares=None, scheduling=""):
        """@shares: job to hundredths of the GPU. Who is known by none has the agent's own. Before who plays is cast:
        what it finds alone is of use then from the first moment."""
        tenants = {self.workers["Weir", job].tenant: share for job, share in (shares or {}).items()}
        if (tenants, scheduling) != (self.shares, self.node.scheduling):
            self.shares, self.node.scheduling = tenants, scheduling
            self.node.tenants = [dataclasses.replace(t, share=tenants.get(t.name, 0)) for t in self.node.tenants]
            self.node.stop_agent()
        self.node.ensure_agent()
        self.wait_known()
        self.node.weirctl("policy", name)

    def wait_known(self):
        """Until all workers have found the agent."""
        want = {worker.client.process.pid for (mode, _), worker in self.workers.items() if mode == "Weir"}
        end = time.monotonic() + 15
        while not want <= {client["pid"] for client in self.node.status()}:
            if time.monotonic() > end:
                raise Failure("workers do not find the agent")
            time.sleep(0.05)

    def clients(self, jobs):
        """What the agent says of each."""
        known = {client["pid"]: client for client in self.node.status()}
        return [known[self.workers["Weir", job].client.process.pid] for job in jobs]

    def counters(self, jobs):
        """What the agent has counted of each so far; what its client told last is seen a moment later."""
        time.sleep(0.2)
        return [{name: client[name] for name in COUNTERS} for client in self.clients(jobs)]

    def tuning(self, jobs):
        """Whether kernels that they launched within the last second are not in the form yet that they will have. What
        their clients told last is seen a moment later."""
        time.sleep(0.2)
        return any(client["tuning"] for client in self.clients(jobs))

    def ask(self, mode, commands, seconds):
        """@commands: (job, words); times in them count from a common begin."""
        begin = time.monotonic_ns() + LEAD
        for job, (verb, at, *rest) in commands:
            if verb == "endless":
                rest[0] += begin
            self.workers[mode, job].client.tell(verb, begin + at, *rest)
        return [self.workers[mode, job].client.answer(seconds + 60) for job, _ in commands]

    def endless(self, mode, jobs, seconds, priorities=()):
        """Ends of the rounds of each, in ns."""
        commands = [
            (job, ("endless", 0, int(seconds * 1e9), DEPTH, priorities[i] if priorities else 0))
            for i, job in enumerate(jobs)
        ]
        return [answer["ends"] for answer in self.ask(mode, commands, seconds)]

    def timed_rounds(self, mode, jobs, offsets_us, every_ms, n, priorities=()):
        """Turnarounds of each in us: a list for each job; each of the @n times together."""
        commands = [
            (job, ("rounds", int(offset * 1e3), int(every_ms * MS), n, priorities[i] if priorities else 0))
            for i, (job, offset) in enumerate(zip(jobs, offsets_us))
        ]
        answers = self.ask(mode, commands, every_ms * n / 1e3)
        for job, answer in zip(jobs, answers):
            if not answer["rounds"]:
                raise Failure(f"{job} missed all its {n} shots")
        return [[(end - launch) / 1e3 for launch, end in answer["rounds"]] for answer in answers]


def counted(before, after):
    """What came of a time, in words: counters of one job at its begin and at its end."""
    return ", ".join(f"{after[name] - before[name]:.4g} {name}" for name in COUNTERS)


def pool_of(bench):
    """One for all parts."""
    if not bench.pool:
        bench.pool = WorkerPool(bench.node)
    return bench.pool


def sample(items, n):
    """@n of them, evenly; all if there are fewer."""
    items = list(items)
    n = max(1, min(n, len(items)))
    return [items[i * len(items) // n] for i in range(n)]


def progress(ends, at):
    """Rounds done at a time, with the part of the one that was running."""
    i = bisect.bisect_right(ends, at)
    if i == len(ends):
        return float(i)
    before = ends[i - 1] if i else 0
    return i + (at - before) / (ends[i] - before)
