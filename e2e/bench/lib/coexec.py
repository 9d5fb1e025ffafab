"""Kernels that run at the same time, each with a bounded number of blocks on an SM (FlexSched)."""

import dataclasses
import json
import statistics
import subprocess
import time

from looking import Looking
from workers import DEPTH, LEAD, MODES, Job, pool_of, progress

WITHOUT_WEIR = "MPS", "time-slicing"
PRIORITY, SLICES = "MPS + stream priority", "slices"  # other ways of sharing

# Kernels of FlexSched's table 2 and others of ours, by what bounds them on an H100. That shows in how fast they are with a few blocks on
# an SM. Most kernels of table 2 are bound there by neither memory nor arithmetic: their speed falls with each block less.
MEMORY = {
    "RED": ("reduction", "reduction"), "VA": ("vector-add", "vector_add"), "TRI": ("triad", "triad"),
    "NN": ("nearest-neighbour", "nearest_distance"), "HST": ("histogram", "histogram_256"),
}  # fmt: skip
COMPUTE = {
    "MD5": ("md5-search", "md5_search"), "MRI": ("magnetic-resonance", "resonance"), "CP": ("cutoff-potential", "cutoff_potential"),
    "MM": ("matrix-multiply", "matrix_multiply"), "GCEDD": ("canny", "canny_gauss"),
}  # fmt: skip
# Of FlexSched's table 2, the others.
BALANCED = {
    "BS": ("black-scholes", "black_scholes"), "SPMV": ("sparse-multiply", "sparse_multiply"),
    "CCONV": ("convolution", "convolve_columns"), "RCONV": ("convolution", "convolve_rows"),
    "SCEDD": ("canny", "canny_sobel"), "NCEDD": ("canny", "canny_thin"), "HCEDD": ("canny", "canny_follow"),
    "PF": ("path-find", "path_find"),
}  # fmt: skip
KERNELS = {**MEMORY, **COMPUTE, **BALANCED}
# FlexSched's table 2: ms of each kernel there, and what it is bound by.
FLEXSCHED = {
    "HST": (4.18, "MB"), "BS": (4.47, "MB"), "VA": (7.24, "MB"), "SPMV": (10.6, "MB"), "RED": (5.05, "MB"), "CCONV": (1.6, "MB"),
    "RCONV": (1.45, "MB"), "GCEDD": (5.26, "CB"), "SCEDD": (9.65, "CB"), "NCEDD": (7.1, "CB"), "HCEDD": (2.15, "CB"), "PF": (6.77, "CB"),
    "MM": (10.38, "CB"),
}  # fmt: skip
# The data of a slice stay in the L2 cache from pass to pass: in slices alone, triads are 2.3 times as fast as native ones. So the form
# of these is not left to libweir's choice.
PERSISTENT = {*MEMORY, "BS", "SPMV", "CCONV", "RCONV"}
US = 2000  # of a launch
UNBOUNDED = 32  # workers on an SM: more than fit, so launches are in a form, but not bounded
SKIPPED, SECONDS = 0.06, 0.12  # of a co-run: first seconds, in which launches with the former bound end; those that count
FORMED = 0.8  # seconds alone in which a kernel gets its form
FORMED_MOST = 8.0  # at most


def job_of(name, form="", copy=0):
    workload, kernel = KERNELS[name]
    return Job(workload, kernel=kernel, us=US, form=form, copy=copy, simulated="small")  # more blocks than fit


def numbers(pool, jobs):
    """The agent's numbers of the jobs' clients."""
    return {job: client["client"] for job, client in zip(jobs, pool.clients(jobs))}


def bound(pool, clients, bounds):
    """Bounds jobs by hand. @clients: as numbers() returns it. @bounds: job to workers on an SM; 0: as many as fit."""
    for job, workers in bounds.items():
        pool.node.weirctl("bound", str(clients[job]), "--workers", str(workers))


def form(pool, clients, job):
    """Runs a job alone until its kernel has a form whose workers can be bounded. Returns the parts of an SM that a block takes; None:
    there is no such form."""
    bound(pool, clients, {job: UNBOUNDED})
    end = time.monotonic() + FORMED_MOST
    while True:
        pool.round_us("Weir", job, FORMED)
        (client,) = pool.clients([job])
        if ("workerParts" in client and not pool.tuning([job])) or time.monotonic() > end:
            break
    bound(pool, clients, {job: 0})
    return client.get("workerParts")


def fits(parts, workers):
    """Whether so many workers of each kernel fit on an SM. @parts: of an SM, for a worker of each kernel."""
    return all(sum(p[i] * n for p, n in zip(parts, workers)) <= 1 + 1e-9 for i in range(4))


def room(parts, workers, i):
    """The most workers of kernel @i beside those of the others."""
    n = 0
    while fits(parts, [n + 1 if k == i else w for k, w in enumerate(workers)]):
        n += 1
    return n


def configurations(parts):
    """Of a pair: (workers of the first, of the second), as many as fit (FlexSched, equation 1)."""
    found, a = [], 1
    while (b := room(parts, [a, 0], 1)) > 0:
        if room(parts, [0, b], 0) == a:  # else one more of the first fits
            found.append((a, b))
        a += 1
    return found


def few(configurations, n):
    """@n of the configurations, evenly spaced, without the first and the last; all if there are fewer."""
    if len(configurations) <= n:
        return configurations
    return [configurations[(k + 1) * (len(configurations) + 1) // (n + 1) - 1] for k in range(n)]


def speed_up(pool, mode, jobs, alone, seconds=SECONDS, skipped=SKIPPED, priorities=()):
    """Time that the work of a co-run takes in sequence, without Weir, over that of the co-run; and each job's rate, relative to
    alone."""
    if pool.node.simulated:
        seconds, skipped = 0.1, 0.05
    ends = pool.endless(mode, jobs, seconds + skipped, priorities)
    end, begin = (seconds + skipped) * 1e9, skipped * 1e9
    rates = [(progress(e, end) - progress(e, begin)) * alone[job] / 1e6 / seconds for job, e in zip(jobs, ends)]
    return sum(rates), rates


@dataclasses.dataclass
class Pair:
    """What was measured of two kernels. @by: configuration to (speed-up, rates). @baselines: speed-up by way of sharing. @again: that
    of the best configuration, measured once more: the best of several is high by chance."""

    names: tuple
    by: dict
    baselines: dict = dataclasses.field(default_factory=dict)
    again: float = 0

    @property
    def best(self):
        return max(self.by, key=lambda c: self.by[c][0])

    @property
    def highest(self):
        return self.by[self.best][0]

    def __str__(self):
        curve = ", ".join(f"{a}+{b} {s:.2f} ({r[0]:.2f} {r[1]:.2f})" for (a, b), (s, r) in self.by.items())
        baselines = ", ".join(f"{way} {found:.2f}" for way, found in self.baselines.items())
        return f"{'_'.join(self.names)}: {baselines}, again {self.again:.2f}; {curve}"


@dataclasses.dataclass
class Watched:
    """A co-run under the policy. @samples: (seconds, whether it searches, workers of each job, clients that run). @tries: of the
    latest search, by the workers of each job: how fast each job got on, as the agent saw it."""

    ends: list
    samples: list
    tries: dict

    @property
    def search(self):
        """(begin, end) in seconds; None: none was seen."""
        times = [t for t, searching, *_ in self.samples if searching]
        return (times[0], times[-1]) if len(times) > 1 else None

    @property
    def settled(self):
        """Seconds until the last change of the configuration: behind the search, those that may be the best are used in turn."""
        *before, last = [(workers, n) for _, _, workers, n in self.samples]
        same = next((i for i, one in enumerate(reversed(before)) if one != last), len(before))
        return self.samples[len(before) - same][0]

    @property
    def chosen(self):
        """The workers at the end; None: not all jobs run at the same time."""
        _, _, workers, n = self.samples[-1]
        return tuple(workers) if n == len(workers) else None

    @property
    def timeline(self):
        """`seconds workers+workers…`, with ? while numbers of workers are tried."""
        lines = []
        for now, searching, workers, _ in self.samples:
            line = "+".join(map(str, workers)) + " ?" * searching
            if not lines or lines[-1][1] != line:
                lines.append((now, line))
        return ", ".join(f"{now:.2f} {line}" for now, line in lines)

    @property
    def together(self):
        """Clients that ran at the same time in the later half, on average."""
        return statistics.fmean(n for *_, n in self.samples[len(self.samples) // 2 :])

    def speed_up(self, jobs, alone, begin, end):
        return sum((progress(e, end * 1e9) - progress(e, begin * 1e9)) * alone[j] / 1e6 for j, e in zip(jobs, self.ends)) / (end - begin)


def watch(pool, jobs, seconds):
    begin = time.monotonic_ns() + LEAD
    clients = [pool.workers["Weir", job].client for job in jobs]
    for client in clients:
        client.tell("endless", begin, begin + int(seconds * 1e9), DEPTH, 0)
    samples, tries = [], {}
    while (now := (time.monotonic_ns() - begin) / 1e9) < seconds - 0.03:
        said = json.loads(pool.node.weirctl("status", "--json"))
        plans = [plan for gpu in said["gpus"] for plan in gpu.get("coexec", [])]
        known = {pool.node.identity_of(client): client for client in said["clients"]}
        known = [known[pool.node.identity(client)] for client in clients]
        workers = [client.get("workers", 0) for client in known]
        samples.append((now, any(p["searching"] for p in plans), workers, max((p["clients"] for p in plans), default=0)))
        for plan in plans:
            tries = tries_of(plan, [client["client"] for client in known]) or tries
        time.sleep(0.01)
    return Watched([client.answer(seconds + 60)["ends"] for client in clients], samples, tries)


def tries_of(plan, numbers):
    """The plan's tries, if all clients @numbers are its members, and in their order."""
    members = [member["client"] for member in plan["members"]]
    if sorted(members) != sorted(numbers):
        return {}
    order = [members.index(number) for number in numbers]
    return {tuple(one["workers"][k] for k in order): [round(one["rates"][k], 2) for k in order] for one in plan["tries"]
            if len(one["workers"]) == len(order)}  # fmt: skip


class Timeline(Looking):
    """Which jobs of a queue run at the same time under the policy, until it ends. As text: `seconds job:workers …`, with ? while
    numbers of workers are tried."""

    def __init__(self, pool, jobs):
        super().__init__()
        self.pool, self.lines = pool, []
        self.names = {pool.node.identity(pool.workers["Weir", job].client): job.kernel for job in jobs}
        self.begin = time.monotonic()

    def look(self):
        said = json.loads(self.pool.node.weirctl("status", "--json"))
        names = {client["client"]: self.names.get(self.pool.node.identity_of(client)) for client in said["clients"]}
        workers = {client["client"]: client.get("workers", 0) for client in said["clients"]}
        plans = [plan for gpu in said["gpus"] for plan in gpu.get("coexec", [])]
        return "; ".join(" ".join(f"{names[m['client']]}:{workers[m['client']]}" for m in plan["members"])
                         + (" ?" if plan["searching"] else f" {plan['speedUp']:.2f}") for plan in plans)  # fmt: skip

    def look_on(self):
        while not self.over.is_set():
            now, line = time.monotonic() - self.begin, self.look()
            if not self.lines or self.lines[-1][1] != line:
                self.lines.append((now, line))
            time.sleep(0.005)

    def __exit__(self, *of):
        super().__exit__(*of)
        self.end = time.monotonic() - self.begin

    @property
    def searched(self):
        """Seconds of the searches."""
        ends = [now for now, _ in self.lines[1:]] + [self.end]
        return sum(end - now for end, (now, line) in zip(ends, self.lines) if line.endswith("?"))

    def __str__(self):
        return ", ".join(f"{now:.2f} {line or '-'}" for now, line in self.lines)


class Torch:
    """A PyTorch client that trains, one for each way of sharing. @alone: steps a second, without Weir."""

    def __init__(self, bench, pool):
        self.clients = {}
        for mode, (mps, weir) in MODES.items():
            tenant = pool.slots.pop(0) if weir else "low"
            argv = [*bench.low_argv("train"), "--turns"]
            self.clients[mode] = bench.node.start("torch", argv, tenant, weir, mps=mps, stdin=subprocess.PIPE)
        for client in self.clients.values():
            client.wait_ready()
        self.rate("Weir", 1.0)
        self.alone = self.rate("MPS", 1.0)

    def rate(self, mode, seconds, beside=lambda: None):
        """Steps a second in the later half of @seconds, during which beside() is called."""
        self.clients[mode].tell("train", seconds)
        beside()
        told = self.clients[mode].answer(seconds + 60)["train"]
        windows = told["windows"][len(told["windows"]) // 2 :]
        return told["steps"] * len(windows) / (windows[-1][1] - windows[0][0])

    def together(self, pool, mode, jobs, alone, seconds, priorities=()):
        """Speed-up over sequential of training and @jobs."""
        found = []
        rate = self.rate(mode, seconds, lambda: found.append(speed_up(pool, mode, jobs, alone, seconds / 2, seconds / 2, priorities)[0]))
        return found[0] + rate / self.alone


def makespan(pool, mode, jobs, rounds, apart_ms):
    """Seconds from the begin of the first job, in whose order they come, to the end of the last."""
    commands = [(job, ("several", int(i * apart_ms * 1e6), rounds[job], DEPTH, 0)) for i, job in enumerate(jobs)]
    answers = pool.ask(mode, commands, 60)
    return max((i * apart_ms / 1e3 + answer["ends"][-1] / 1e9) for i, answer in enumerate(answers))


class Kernels:
    """Workers of kernels, in each way of sharing, with their forms found. @alone: us of a round without Weir. @sliced: those whose
    form is slices, by name. @left: names of kernels whose workers have left."""

    def __init__(self, bench, names, sliced=()):
        self.pool = pool_of(bench)
        self.plain, self.sliced, self.clients, self.alone, self.parts, self.left = {}, {}, {}, {}, {}, set()
        if bench.node.simulated:
            bench.node.simulate("sm_blocks = 4\n")
        self.add(names, sliced)

    @property
    def names(self):
        return list(self.plain)

    def add(self, names, sliced=()):
        """Those of @names that are not there yet. They take turns afterwards. On the simulated GPU times are no guide to the form."""
        names = [name for name in names if name not in self.plain]
        plain = {name: job_of(name, form="persistent" if self.pool.node.simulated or name in PERSISTENT else "") for name in names}
        sliced = {name: job_of(name, form="sliced") for name in names if name in sliced}
        for mode in WITHOUT_WEIR:
            self.pool.ensure(mode, plain.values())
        self.pool.ensure("Weir", [*plain.values(), *sliced.values()])
        self.pool.wait_known()
        self.pool.node.weirctl("policy", "levels")
        self.plain, self.sliced = self.plain | plain, self.sliced | sliced
        self.clients |= numbers(self.pool, list(plain.values()))
        for name, job in plain.items():
            self.alone |= dict.fromkeys(filter(None, (job, sliced.get(name))), self.pool.alone["MPS", job])
            self.parts[name] = form(self.pool, self.clients, job)
            print(f"    {name}: {self.alone[job]:.0f} us, parts of an SM {json.dumps(self.parts[name])}", flush=True)

    def leave_all_but(self, names):
        """Each worker that leaves compares the results of a last round with the CPU's, and raises Failure if they differ."""
        gone = {name: self.plain.pop(name) for name in self.names if name not in names}
        sliced, self.sliced = list(self.sliced.values()), {}
        self.left.update(gone)
        self.pool.leave("Weir", [*gone.values(), *sliced])
        for mode in WITHOUT_WEIR:
            self.pool.leave(mode, list(gone.values()))

    def baselines(self, names, measure):
        """Speed-up over sequential of kernels in each way without the policy, which must be none; priority: the best of those in which
        one kernel has it. @measure(mode, jobs, priorities) measures one."""
        jobs = [self.plain[name] for name in names]
        prior = [tuple(int(k == i) for k in range(len(jobs))) for i in range(len(jobs))]
        found = {mode: measure(mode, jobs, ()) for mode in WITHOUT_WEIR}
        found[PRIORITY] = max(measure("MPS", jobs, priorities) for priorities in prior)
        if all(name in self.sliced for name in names):
            found[SLICES] = measure("Weir", [self.sliced[name] for name in names], ())
        return found

    def turns(self, jobs):
        """Speed-up over sequential of @jobs that take turns under Weir."""
        return statistics.fmean(self.alone[job] / self.pool.alone["Weir", job] for job in jobs)

    def pair(self, a, b, configurations_of=configurations):
        """Measures all configurations of a pair, set by hand."""
        jobs, names = [self.plain[a], self.plain[b]], (a, b)
        baselines = self.baselines(names, lambda mode, of, priorities: speed_up(self.pool, mode, of, self.alone, priorities=priorities)[0])
        pair = Pair(names, self.by_hand(jobs, configurations_of([self.parts[a], self.parts[b]])), baselines)
        if pair.by:
            pair.again, _ = self.by_hand(jobs, [pair.best])[pair.best]
        print(f"    {pair}", flush=True)
        return pair

    def by_hand(self, jobs, configurations, seconds=SECONDS, skipped=SKIPPED):
        """(speed-up, rates) of each configuration, set by hand. No policy may bound workers meanwhile."""
        by = {}
        for chosen in configurations:
            bound(self.pool, self.clients, dict(zip(jobs, chosen)))
            if self.pool.node.simulated:
                time.sleep(0.05)
            by[chosen] = speed_up(self.pool, "Weir", jobs, self.alone, seconds, skipped)
        bound(self.pool, self.clients, dict.fromkeys(jobs, 0))
        return by
