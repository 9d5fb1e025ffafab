"""Players (bench/player.c) on a stage: programs that are started once, and play their benchmark when they
are told to, alone or together, in each way of sharing a GPU."""

import bisect
import dataclasses
import statistics
import subprocess
import time

from node import Failure, Tenant

# Ways of sharing: below the MPS daemon, with libweir.
MODES = {"time-slicing": (False, False), "MPS": (True, False), "Weir": (True, True)}
SEATS = 40
TENANTS = [Tenant(f"seat-{i:02}", "low") for i in range(SEATS)]
MS = 1_000_000  # ns
LEAD = 30 * MS  # from a command to its begin
DEPTH = 4  # rounds queued
COUNTERS = ("launches", "evictions", "gates", "gatesClosed", "waits", "waitSeconds")  # that the agent shows of a client
PROBE = 4  # passes over the data, to see how long they are,
FITS = 3  # times, each with the number that seems right after the one before,
SHOTS, SHOT_MS = 9, 5  # by so many launches
CLOSE = 0.01  # to what a kernel is to last; how long it lasts varies by as much
SETTLE = 1.0  # seconds of each player with Weir alone: measured, compiled, the form chosen;
SETTLE_ROUNDS = 300  # at least, for there may be a dozen forms to compare, and the best once more


@dataclasses.dataclass(frozen=True)
class Role:
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


class Player:
    def __init__(self, client, tenant):
        self.client, self.tenant = client, tenant


class Stage:
    """@alone: us of a round of each role, by mode. @passes: over its data, of a kernel and how long it is to
    last."""

    def __init__(self, node):
        self.node, self.players, self.alone, self.shares, self.passes = node, {}, {}, {}, {}
        self.seats = [tenant.name for tenant in TENANTS]

    def cast(self, mode, roles):
        """Starts who is not there yet; each is measured alone, behind the others."""
        mps, weir = MODES[mode]
        if mps:
            self.node.ensure_mps()
        if weir:
            self.node.ensure_agent()
        new = [role for role in roles if (mode, role) not in self.players]
        for role in new:
            self.players[mode, role] = self.start(role, mps, weir)
        for role in new:
            self.players[mode, role].client.wait_ready()
        for role in new:
            self.measure(mode, role)

    def start(self, role, mps, weir):
        tenant = role.tenant or (self.seats.pop(0) if weir else "low")
        size = "trivial" if self.node.simulated else role.size
        argv = [self.node.bench("worker"), *self.node.sizes, "--only", role.workload, "--class", size]
        argv += ["--kernel", role.kernel] if role.us else []
        argv += ["--size", str(role.elements)] if role.elements and not self.node.simulated else []
        env = {"WEIR_PREEMPT_LATENCY_US": str(role.latency)} if weir and role.latency else None
        client = self.node.start(
            f"player-{role.workload}", argv, tenant, weir, env=env, mps=mps, stdin=subprocess.PIPE
        )
        return Player(client, tenant)

    def round_us(self, mode, role, seconds):
        """Of the later half of those of so long a time, or of a longer one if none was done."""
        seconds = 0.05 if self.node.simulated else seconds
        ends = []
        while not ends:
            (ends,) = self.endless(mode, [role], seconds)
            seconds *= 2
        later = ends[len(ends) // 2 :]
        return (later[-1] - later[0]) / 1e3 / (len(later) - 1) if len(later) > 1 else ends[0] / 1e3

    def set_passes(self, mode, role):
        """What is found in one mode holds for all: it is the same kernel."""
        if (role.kernel, role.us) not in self.passes:
            n = 2 if role.us > 2000 else 1
            self.passes[role.kernel, role.us] = n if self.node.simulated else self.fitting_passes(mode, role)
        self.tell_passes(mode, role, self.passes[role.kernel, role.us])

    def tell_passes(self, mode, role, passes):
        client = self.players[mode, role].client
        client.tell("passes", passes)
        client.answer(60)

    def turnaround(self, mode, role, passes):
        """us from the launch to the end, alone."""
        self.tell_passes(mode, role, passes)
        every = SHOT_MS + 3 * self.round_us(mode, role, 0.02) / 1e3
        (alone,) = self.shots(mode, [role], [0], every, SHOTS)
        return statistics.median(alone)

    def fitting_passes(self, mode, role):
        """So many that a round lasts as long as it is to; it has a launch besides, and passes are not all as long."""
        n = PROBE
        for _ in range(FITS):
            n = max(1, round(n * role.us / self.turnaround(mode, role, n)))
        return n

    def fit_again(self, known):
        """@known: us from the launch to the end of single kernels, by role, where they are played. Returns those that are
        another kernel for libweir now: they last otherwise by more than CLOSE, which passes can mend."""
        changed = []
        for role, us in known.items():
            key = role.kernel, role.us
            before, passes = self.passes[key], max(1, round(self.passes[key] * role.us / us))
            if passes == before or abs(us / role.us - 1) <= CLOSE:
                continue
            self.passes[key] = passes
            changed.append(role)
            for mode, other in self.players:
                if (other.kernel, other.us) == key:
                    self.tell_passes(mode, other, passes)
                    self.alone[mode, other] *= passes / before
        return changed

    def measure(self, mode, role):
        if role.us:
            self.set_passes(mode, role)
        settle = max(SETTLE, SETTLE_ROUNDS * role.us / 1e6)
        self.alone[mode, role] = self.round_us(mode, role, settle if mode == "Weir" else 0.2)

    def leave(self, mode, roles):
        for role in roles:
            player = self.players.pop((mode, role))
            player.client.leave()
            if mode == "Weir" and not role.tenant:
                self.seats.append(player.tenant)

    def leave_all(self):
        for mode in MODES:
            self.leave(mode, [role for m, role in self.players if m == mode])

    def set_policy(self, name, shares=None, scheduling=""):
        """@shares: role to hundredths of the GPU. Who is known by none has the agent's own. Before who plays is cast:
        what it finds alone is of use then from the first moment."""
        tenants = {self.players["Weir", role].tenant: share for role, share in (shares or {}).items()}
        if (tenants, scheduling) != (self.shares, self.node.scheduling):
            self.shares, self.node.scheduling = tenants, scheduling
            self.node.tenants = [dataclasses.replace(t, share=tenants.get(t.name, 0)) for t in self.node.tenants]
            self.node.stop_agent()
        self.node.ensure_agent()
        self.wait_known()
        self.node.weirctl("policy", name)

    def wait_known(self):
        """Until all players have found the agent."""
        want = {player.client.process.pid for (mode, _), player in self.players.items() if mode == "Weir"}
        end = time.monotonic() + 15
        while not want <= {client["pid"] for client in self.node.status()}:
            if time.monotonic() > end:
                raise Failure("players do not find the agent")
            time.sleep(0.05)

    def clients(self, roles):
        """What the agent says of each."""
        known = {client["pid"]: client for client in self.node.status()}
        return [known[self.players["Weir", role].client.process.pid] for role in roles]

    def counters(self, roles):
        """What the agent has counted of each so far; what its client told last is seen a moment later."""
        time.sleep(0.2)
        return [{name: client[name] for name in COUNTERS} for client in self.clients(roles)]

    def comparing(self, roles):
        """Whether kernels that they launched within the last second are not in the form yet that they will have. What
        their clients told last is seen a moment later."""
        time.sleep(0.2)
        return any(client["tuning"] for client in self.clients(roles))

    def ask(self, mode, commands, seconds):
        """@commands: (role, words); times in them count from a common begin."""
        begin = time.monotonic_ns() + LEAD
        for role, (verb, at, *rest) in commands:
            if verb == "endless":
                rest[0] += begin
            self.players[mode, role].client.tell(verb, begin + at, *rest)
        return [self.players[mode, role].client.answer(seconds + 60) for role, _ in commands]

    def endless(self, mode, roles, seconds, priorities=()):
        """Ends of the rounds of each, in ns."""
        commands = [
            (role, ("endless", 0, int(seconds * 1e9), DEPTH, priorities[i] if priorities else 0))
            for i, role in enumerate(roles)
        ]
        return [answer["ends"] for answer in self.ask(mode, commands, seconds)]

    def shots(self, mode, roles, offsets_us, every_ms, n, priorities=()):
        """Turnarounds of each in us: a list for each role; each of the @n times together."""
        commands = [
            (role, ("rounds", int(offset * 1e3), int(every_ms * MS), n, priorities[i] if priorities else 0))
            for i, (role, offset) in enumerate(zip(roles, offsets_us))
        ]
        answers = self.ask(mode, commands, every_ms * n / 1e3)
        for role, answer in zip(roles, answers):
            if not answer["rounds"]:
                raise Failure(f"{role} missed all its {n} shots")
        return [[(end - launch) / 1e3 for launch, end in answer["rounds"]] for answer in answers]


def counted(before, after):
    """What came of a time, in words: counters of one role at its begin and at its end."""
    return ", ".join(f"{after[name] - before[name]:.4g} {name}" for name in COUNTERS)


def stage_of(bench):
    """One for all parts."""
    if not bench.stage:
        bench.stage = Stage(bench.node)
    return bench.stage


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
