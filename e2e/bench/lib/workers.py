"""Workers (programs/worker.c): programs that start once and run their benchmark on command, alone or together, in each way
of sharing a GPU."""

import bisect
import dataclasses
import math
import statistics
import subprocess
import time

from experiment import MPS
from node import Failure, Tenant

# Ways of sharing: whether under the MPS daemon, and whether with libweir. In the mode timeslice, Weir is outside MPS.
MODES = {"time-slicing": (False, False), "MPS": (True, False), "Weir": (True, True)}
SLOTS = tuple(Tenant(f"slot-{i:02}", "low") for i in range(40))  # TENANTS of experiments with workers
MS = 1_000_000  # ns
LEAD = 30 * MS  # from a command to the begin of its rounds
DEPTH, DEPTH_MAX = 4, 64  # rounds queued
# Of a client, in the agent's status.
COUNTERS = ("launches", "evictions", "gates", "gatesClosed", "waits", "waitSeconds", "preempted")
# The number of passes of a kernel starts at PROBE and is corrected FITS times, each time by the median of TIMED_ROUNDS.
PROBE, FITS = 4, 3
TIMED_ROUNDS, ROUND_GAP_MS = 9, 5
CLOSE = 0.01  # relative error of a kernel's length that is not corrected: it varies by as much
# Each worker with Weir first runs alone for so long: libweir measures, compiles and compares up to a dozen forms.
SETTLE = 1.0  # seconds
SETTLE_ROUNDS = 300  # at least
SETTLE_BRIEF = 0.1  # seconds, if libweir has nothing to compare


@dataclasses.dataclass(frozen=True)
class Job:
    """@tenant: empty: a slot of its own, of the lowest level. @copy: distinguishes jobs that are otherwise the same. @us: a
    round is one launch of @kernel, with as many passes over its data as take so long; 0: a round is the whole
    benchmark. @latency: us, WEIR_PREEMPT_LATENCY_US; 0: unset. @elements: size of the input; 0: that of class @size.
    @form: WEIR_FORM; empty: unset. @simulated: class of the input on the simulated GPU.
    @brief: its kernels are too short for forms."""

    workload: str
    size: str = "small"
    tenant: str = ""
    copy: int = 0
    kernel: str = ""
    us: int = 0
    latency: int = 0
    elements: int = 0
    form: str = ""
    simulated: str = "trivial"
    brief: bool = False

    def __str__(self):
        return f"{self.workload} ({self.us / 1e3:g} ms)" if self.us else f"{self.workload} ({self.size})"


class Worker:
    def __init__(self, client, tenant):
        self.client, self.tenant = client, tenant


class WorkerPool:
    """@mode: of the experiments (experiment.py). @base: the way of sharing that is the same without libweir. @alone: us of a
    round, by way and job. @passes: by kernel and the time that it is to last."""

    def __init__(self, node, mode):
        self.node, self.mode, self.base = node, mode, "MPS" if mode == MPS else "time-slicing"
        self.workers, self.alone, self.shares, self.passes = {}, {}, {}, {}
        node.agent_under_mps = mode == MPS
        if node.simulated:
            node.simulate("" if mode == MPS else "slices = 1\n")
        self.slots = [tenant.name for tenant in SLOTS]

    def ensure(self, mode, jobs, rounds=SETTLE_ROUNDS):
        """Starts the jobs that do not run yet. When all are ready, each is measured alone, with Weir for @rounds or more."""
        mps, weir = MODES[mode]
        mps = mps and not (weir and self.mode != MPS)
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
            self.measure(mode, job, rounds)

    def start(self, job, mps, weir):
        tenant = job.tenant or (self.slots.pop(0) if weir else "low")
        size = job.simulated if self.node.simulated else job.size
        argv = [self.node.bench("worker"), *self.node.sizes, "--only", job.workload, "--class", size]
        argv += ["--kernel", job.kernel] if job.us else []
        argv += ["--size", str(job.elements)] if job.elements and not self.node.simulated else []
        settings = {"WEIR_PREEMPT_LATENCY_US": job.latency, "WEIR_FORM": job.form}
        env = {name: str(value) for name, value in settings.items() if weir and value}
        client = self.node.start(
            f"worker-{job.workload}", argv, tenant, weir, env=env, mps=mps, stdin=subprocess.PIPE
        )
        return Worker(client, tenant)

    def round_us(self, mode, job, seconds):
        """Mean time of a round, in the later half of @seconds. The time doubles until a round ends in it."""
        seconds = 0.05 if self.node.simulated else seconds
        ends = []
        while not ends:
            (ends,) = self.endless(mode, [job], seconds)
            seconds *= 2
        later = ends[len(ends) // 2 :]
        return (later[-1] - later[0]) / 1e3 / (len(later) - 1) if len(later) > 1 else ends[0] / 1e3

    def set_passes(self, mode, job):
        """The number of passes is found once and holds for all modes, as the kernel is the same."""
        if (job.kernel, job.us) not in self.passes:
            n = 2 if job.us > 2000 else 1
            self.passes[job.kernel, job.us] = n if self.node.simulated else self.fitting_passes(mode, job)
        self.tell_passes(mode, job, self.passes[job.kernel, job.us])

    def tell_passes(self, mode, job, passes):
        client = self.workers[mode, job].client
        client.tell("passes", passes)
        client.answer(60)

    def context(self, mode, job):
        """Bytes of registers and shared memory that a block of its kernel takes of an SM."""
        client = self.workers[mode, job].client
        client.tell("context")
        return client.answer(60)["context"]

    def turnaround(self, mode, job, passes):
        """us from the launch to the end, alone."""
        self.tell_passes(mode, job, passes)
        every = ROUND_GAP_MS + 3 * self.round_us(mode, job, 0.02) / 1e3
        (alone,) = self.timed_rounds(mode, [job], [0], every, TIMED_ROUNDS)
        return statistics.median(alone)

    def fitting_passes(self, mode, job):
        """The number of passes with which a round lasts as long as it is to. A round also has a launch, and passes differ."""
        n = PROBE
        for _ in range(FITS):
            error = self.turnaround(mode, job, n) / job.us
            if abs(error - 1) <= CLOSE:
                break
            n = max(1, round(n / error))
        return n

    def fit_again(self, known):
        """Corrects passes of kernels that are off by more than CLOSE, and returns their jobs: to libweir they are other
        kernels now. @known: us from the launch to the end, by job."""
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

    def measure(self, mode, job, rounds=SETTLE_ROUNDS):
        if job.us:
            self.set_passes(mode, job)
        settle = SETTLE_BRIEF if job.brief else max(SETTLE, rounds * job.us / 1e6)
        self.alone[mode, job] = self.round_us(mode, job, settle if mode == "Weir" else 0.2)

    def leave(self, mode, jobs):
        """All end at the same time, as each first compares results with the CPU's."""
        gone = {job: self.workers.pop((mode, job)) for job in jobs}
        for worker in gone.values():
            worker.client.process.stdin.close()
        for job, worker in gone.items():
            worker.client.leave()
            if mode == "Weir" and not job.tenant:
                self.slots.append(worker.tenant)

    def leave_all(self):
        for mode in MODES:
            self.leave(mode, [job for m, job in self.workers if m == mode])

    def set_policy(self, name, shares=None, scheduling=""):
        """@shares: job to hundredths of the GPU; others have the agent's default. Call it before ensure(), so that what
        libweir learns alone is of use from the first moment."""
        tenants = {self.workers["Weir", job].tenant: share for job, share in (shares or {}).items()}
        if (tenants, scheduling) != (self.shares, self.node.scheduling):
            self.shares, self.node.scheduling = tenants, scheduling
            self.node.tenants = [dataclasses.replace(t, share=tenants.get(t.name, 0)) for t in self.node.tenants]
            self.node.stop_agent()
        self.node.ensure_agent()
        self.wait_known()
        self.node.weirctl("policy", name)

    def wait_known(self):
        """Waits until all workers have registered with the agent."""
        want = {self.node.identity(worker.client) for (mode, _), worker in self.workers.items() if mode == "Weir"}
        end = time.monotonic() + 15
        while not want <= {self.node.identity_of(client) for client in self.node.status()}:
            if time.monotonic() > end:
                raise Failure("workers do not find the agent")
            time.sleep(0.05)

    def clients(self, jobs):
        """The agent's status of each job's client."""
        known = {self.node.identity_of(client): client for client in self.node.status()}
        return [known[self.node.identity(self.workers["Weir", job].client)] for job in jobs]

    def counters(self, jobs):
        """The agent's counters of each job, after its client's last report has arrived."""
        time.sleep(0.2)
        return [{name: client[name] for name in COUNTERS} for client in self.clients(jobs)]

    def tuning(self, jobs):
        """Whether libweir still compares forms of kernels that these jobs launched within the last second."""
        time.sleep(0.2)
        return any(client["tuning"] for client in self.clients(jobs))

    def ask(self, mode, commands, seconds):
        """Sends @commands, (job, words), and returns the answers. Times in them count from a common begin."""
        begin = time.monotonic_ns() + LEAD
        for job, (verb, at, *rest) in commands:
            if verb not in ("rounds", "several"):
                rest[0] += begin
            self.workers[mode, job].client.tell(verb, begin + at, *rest)
        return [self.workers[mode, job].client.answer(seconds + 60) for job, _ in commands]

    def depth(self, job, queued_us):
        """Rounds that take @queued_us alone, but DEPTH at least."""
        return min(DEPTH_MAX, max(DEPTH, math.ceil(queued_us / self.alone["MPS", job]))) if queued_us else DEPTH

    def endless(self, mode, jobs, seconds, priorities=(), queued_us=0):
        """The ends of each job's rounds, in ns. At least DEPTH rounds and @queued_us are queued."""
        commands = [
            (job, ("endless", 0, int(seconds * 1e9), self.depth(job, queued_us), priorities[i] if priorities else 0))
            for i, job in enumerate(jobs)
        ]
        return [answer["ends"] for answer in self.ask(mode, commands, seconds)]

    def check(self, jobs, seconds):
        """Compares the results of each job's rounds with the CPU's, in turn, while the others are at work under Weir. Returns how many
        rounds of each. A worker whose results differ fails."""
        found = []
        for checked in jobs:
            verbs = {job: ("check", 0, int(seconds * 1e9), 1, 0) if job is checked else ("endless", 0, int(seconds * 1e9), DEPTH, 0) for job in jobs}
            answers = self.ask("Weir", list(verbs.items()), seconds)
            found.append(len(answers[jobs.index(checked)]["ends"]))
        return found

    def timed_rounds(self, mode, jobs, offsets_us, every_ms, n, priorities=()):
        """The turnarounds of each job in us. The jobs start together, @n times."""
        commands = [
            (job, ("rounds", int(offset * 1e3), int(every_ms * MS), n, priorities[i] if priorities else 0))
            for i, (job, offset) in enumerate(zip(jobs, offsets_us))
        ]
        answers = self.ask(mode, commands, every_ms * n / 1e3)
        for job, answer in zip(jobs, answers):
            if not answer["rounds"]:
                raise Failure(f"{job} missed all its {n} rounds")
        return [[(end - launch) / 1e3 for launch, end in answer["rounds"]] for answer in answers]


def counted(before, after):
    """The difference of two counters() of a job, as text."""
    return ", ".join(f"{after[name] - before[name]:.4g} {name}" for name in COUNTERS)


def pool_of(bench):
    """The pool of all experiments of a run that have the same mode."""
    if not bench.pool or bench.pool.mode != bench.mode:
        if bench.pool:
            bench.pool.leave_all()
        bench.node.stop_agent()
        bench.node.stop_mps()
        bench.pool, bench.co_runs = WorkerPool(bench.node, bench.mode), []
    return bench.pool


def sample(items, n):
    """@n of the items, evenly spaced; all if there are fewer."""
    items = list(items)
    n = max(1, min(n, len(items)))
    return [items[i * len(items) // n] for i in range(n)]


def progress(ends, at):
    """Rounds done until a time; the round that runs then counts in part."""
    i = bisect.bisect_right(ends, at)
    if i == len(ends):
        return float(i)
    before = ends[i - 1] if i else 0
    return i + (at - before) / (ends[i] - before)
