"""What goes wrong around a server that is an event loop on the GPU, one fault after the other, while a server of a higher
level, the witness, answers its own client. In the mode mps each level has an MPS server of its own: a process that is killed
in a kernel takes others of its MPS server with it, and no others.

The witness's p99 during a fault counts against its p99 just before, several times. What the programs of a fault cost others
by being there is no fault: so the same programs come and go without it, as often. And the GPU must change between levels all
the time: a third server, the neighbour, answers a client in both."""

import contextlib
import dataclasses
import errno
import os
import pathlib
import resource
import statistics
import subprocess
import time

import level_servers
import ports
import throttles
from bursts import HIGH, LOW
from experiment import MPS
from node import Failure
from servers import quantile
from workers import SLOTS

SERVICE = "echo"
ENDLESS = 600  # seconds; they are stopped
START_S = 20  # until a server starts: an MPS server takes no clients for a while when one was killed
LEFT_S = 10  # until nothing is left of a fault
FAULT_S = 1.5  # of a fault, which is repeated meanwhile, and of its programs without it, before
ROUNDS = 3  # of both: the median counts, as on a machine that others use p99 may double
WITNESS_RATE = 1000  # requests a second to it
CONNECTIONS = 4  # of clients that behave
FIRST = 1 << 16  # number of the first connection of those that do not
RESETS, RESETS_AT_A_TIME = 900, 64
SLOW = 10_000
KILLED_CONNECTIONS, KILLS = 64, 4
WIDE, CRAWLING = 65536, 4  # bytes of an echo, and connections that read them byte by byte
DISK_BYTES = 65536
FILES, FILE_BYTES = 4, 20000  # that a program reads whose result does not fit on a full disk
COPIED, PIECE = 256 << 20, 16384  # bytes of a file that a program copies, and of a read or write
WHOLE = 4 << 20  # bytes of a file of which a copy ends
BEGUN = 1 << 20  # bytes that it has written when it is killed, at least
# Tenants of the lowest level: a server that no fault is about; throttles, before and after all faults.
NEIGHBOUR, *SHARERS = [tenant.name for tenant in SLOTS[-3:]]
SHARED_WINDOWS = (1.0, 2)  # seconds, and how many


def pick(bench, simulated, real):
    return simulated if bench.node.simulated else real


def seconds(bench):
    """Of a client that measures."""
    return pick(bench, 0.3, 1.0)


@dataclasses.dataclass(frozen=True)
class Held:
    """Open descriptors of a server, what its callbacks wait for, the agent's clients."""

    descriptors: int
    callbacks: tuple
    clients: frozenset

    def holds_more(self, before):
        """Than @before. Of descriptors there may be fewer: what starting has opened closes at some time."""
        more = self.descriptors > before.descriptors or self.callbacks != before.callbacks
        return more or self.clients != before.clients

    def __str__(self):
        waits = ", ".join(f"{n} for {what}" for what, n in self.callbacks if n)
        return f"{self.descriptors} descriptors, callbacks wait {waits or 'for nothing'}, {len(self.clients)} clients"


class Server:
    """A server and its port."""

    def __init__(self, bench, stack, tenant, service=SERVICE, **options):
        self.bench, self.service, self.options = bench, service, options
        end = time.monotonic() + START_S
        while True:
            try:
                serving = ports.serving(bench, service, "loop", True, tenant, **ports.blocks(bench, service), **options)
                self.port, self.client = stack.enter_context(serving)
                return
            except Failure:
                if time.monotonic() > end:
                    raise
                time.sleep(0.25)

    @property
    def sizes(self):
        """Of its requests, for clients."""
        return {name: value for name, value in self.options.items() if name == "size"}

    @property
    def lives(self):
        return self.client.process.poll() is None

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.client.process.pid}/fd")) if self.lives else 0

    def held(self):
        known = {self.bench.node.identity_of(client): client for client in self.bench.node.status()}
        waits = known.get(self.bench.node.identity(self.client), {}).get("loopsWaitFor", {})
        return Held(self.descriptors(), tuple(waits.items()), frozenset(known))

    def ask(self):
        return ports.ask(self.bench, self.service, self.port, seconds(self.bench), CONNECTIONS, **self.sizes)

    def rude(self, way, **options):
        argv = ports.argv_of(self.bench, "loop-rude", service=self.service, way=way, port=self.port, first=FIRST, **self.sizes, **options)
        return self.bench.node.start(f"rude-{way}", argv, LOW, False)


def until(check):
    """Whether @check comes true within LEFT_S."""
    end = time.monotonic() + LEFT_S
    while not (good := check()) and time.monotonic() < end:
        time.sleep(0.05)
    return good


@contextlib.contextmanager
def many_descriptors(wanted):
    """Of processes that start within it, as far as this process may allow it."""
    soft, hard = before = resource.getrlimit(resource.RLIMIT_NOFILE)
    for limits in ((max(wanted, soft), max(wanted, hard)), (min(max(wanted, soft), hard), hard)):
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
            break
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


@contextlib.contextmanager
def small_disk(bench):
    """A folder on a disk that is full; None: this process may not mount."""
    folder = bench.node.folder / "disk"
    folder.mkdir(exist_ok=True)
    argv = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES},mode=777", "tmpfs", folder]
    mounted = subprocess.run(argv, capture_output=True, check=False).returncode == 0
    try:
        if mounted:
            (folder / "other").write_bytes(bytes(DISK_BYTES))
        yield folder if mounted else None
    finally:
        if mounted:
            subprocess.run(["umount", "-l", folder], check=False)


def write_to(bench, path):
    """A program on the GPU whose kernel writes a result there, when it has ended."""
    argv = ports.argv_of(bench, "loop-grep", way="loop", folder=ports.files(bench), size=FILES, bytes=FILE_BYTES, result=path)
    client = bench.node.start("grep", argv, LOW, True)
    client.process.wait(ports.TIMEOUT)
    return client


def source(bench, size):
    """A file to be copied."""
    path = pathlib.Path(ports.files(bench)) / f"source-{size}"
    if not path.exists():
        path.write_bytes(bytes(size))
        path.chmod(0o644)
    return path


def start_copy(bench, size):
    """A program that copies a file of @size bytes; the file that it writes."""
    text = source(bench, size)
    result = text.with_name(f"copy-{time.monotonic_ns()}")
    argv = [bench.node.program("loop-runner"), *bench.node.sizes, "--kernel", "copy_file", "--n", str(pick(bench, 4096, PIECE))]
    return bench.node.start("copy", [*argv, "--text", str(text), "--text2", str(result)], LOW, True), result


@contextlib.contextmanager
def wide_server(bench):
    with contextlib.ExitStack() as stack:
        server = Server(bench, stack, LOW, size=WIDE)
        server.ask()
        yield server


# Faults. Each returns whether it went as it must, and what happened, in words. Not @wrong: its programs come and go, but do
# nothing wrong.


def resets(scene, wrong):
    if not wrong:
        return True, ports.shown(scene.server.ask())
    wanted = pick(scene.bench, 90, RESETS)
    done = scene.server.rude("reset", iterations=wanted, connections=min(wanted, RESETS_AT_A_TIME)).result()
    return done["done"] == wanted, f"{wanted} in {done['seconds']:.2f} s, then {ports.shown(scene.server.ask())}"


def full_disk(scene, wrong):
    """A device that is always full, and a disk."""
    if not wrong:
        result = pathlib.Path(ports.files(scene.bench)) / "result"
        done = [write_to(scene.bench, result).process.returncode for _ in range(2)]
        return done == [0, 0] and result.stat().st_size > 0, "two results"
    found = {"/dev/full": write_to(scene.bench, "/dev/full").last_words()}
    with small_disk(scene.bench) as folder:
        if folder:
            found["a full disk"] = write_to(scene.bench, folder / "result").last_words()
    told = all(f"{-errno.ENOSPC}: {os.strerror(errno.ENOSPC)}" in words for words in found.values())
    return told, "; ".join(f"{where}: {words}" for where, words in found.items())


def killed_clients(scene, wrong):
    server = scene.server
    for _ in range(KILLS):
        client = ports.start_asking(scene.bench, SERVICE, server.port, ENDLESS, KILLED_CONNECTIONS, first=FIRST)
        client.wait_ready()
        time.sleep(0.2)
        if wrong:
            client.kill()
        else:
            client.stop()
            client.result(ports.TIMEOUT)
    return True, f"{KILLS} with {KILLED_CONNECTIONS} connections, then {ports.shown(server.ask())}"


def slow_clients(scene, wrong):
    """They send a byte and stop, and later the rest."""
    if not wrong:
        return True, "; ".join(ports.shown(scene.server.ask()) for _ in range(2))
    server, wanted = scene.server, pick(scene.bench, 200, SLOW)
    before, alone = server.descriptors(), server.ask()
    slow = server.rude("stop", connections=wanted)
    slow.wait_ready()
    until(lambda: server.descriptors() - before >= wanted)
    there, beside = server.descriptors() - before, server.ask()
    slow.stop()
    answered = slow.result()["done"]
    scene.beside_slow = alone, beside
    told = f"{there} connections at a time; another client meanwhile: {ports.shown(beside)}; all go on: {answered} answered"
    return there == answered == wanted, told


def narrow_clients(scene, wrong):
    with wide_server(scene.bench) as server:
        if not wrong:
            return True, ports.shown(server.ask())
        before, connections = server.descriptors(), pick(scene.bench, 2, CRAWLING)
        done = server.rude("crawl", connections=connections).result()
        clean = until(lambda: server.descriptors() <= before)
    told = f"{connections} replies of {WIDE} bytes, read byte by byte in {done['seconds']:.2f} s, are right"
    return done["done"] == connections and clean, told


def killed_servers(scene, wrong):
    """In the middle of requests, one after the other."""
    for _ in range(pick(scene.bench, 1, KILLS)):
        with contextlib.ExitStack() as stack:
            victim = Server(scene.bench, stack, LOW)
            asking = ports.start_asking(scene.bench, SERVICE, victim.port, ENDLESS, CONNECTIONS)
            asking.wait_ready()
            time.sleep(seconds(scene.bench) / 2)
            if wrong:
                victim.client.kill()
                asking.kill()  # it fails by itself, too, but perhaps later
            else:
                asking.stop()
                asking.result(ports.TIMEOUT)
    return True, f"{pick(scene.bench, 1, KILLS)} while they answer"


def whole_copies(bench):
    """As many, of shorter files."""
    for _ in range(KILLS):
        client, result = start_copy(bench, pick(bench, 1 << 16, WHOLE))
        client.result(ports.TIMEOUT)
        size = result.stat().st_size
        result.unlink()
        if not size:
            return False, "a copy is empty"
    return True, f"{KILLS} of {WHOLE >> 20} MiB"


def killed_copies(scene, wrong):
    """Programs that read and write files, in the middle of it."""
    if not wrong:
        return whole_copies(scene.bench)
    bench, size = scene.bench, pick(scene.bench, 4 << 20, COPIED)
    done = []
    for _ in range(KILLS):
        client, result = start_copy(bench, size)
        client.wait_ready()
        least = pick(bench, 1, BEGUN)
        until(lambda: result.exists() and result.stat().st_size >= least or client.process.poll() is not None)
        client.kill()
        done.append(result.stat().st_size if result.exists() else 0)
        result.unlink(missing_ok=True)
    told = f"{KILLS} that had copied {', '.join(f'{n / size:.1%}' for n in done)} of {size >> 20} MiB"
    return all(0 < n < size for n in done), told


FAULTS = {
    "connections that end by resets": resets,
    "a full disk": full_disk,
    "clients that are killed": killed_clients,
    "clients that send a byte and stop": slow_clients,
    "clients that take little at a time": narrow_clients,
    # The last ones: those of the same MPS server may end, too.
    "programs that are killed in reads and writes": killed_copies,
    "servers that are killed": killed_servers,
}


@dataclasses.dataclass
class Found:
    """Of a fault, however often. @left: what is held behind it. @rounds: when its programs came and went without it, and when
    with it: when each began and ended, in seconds of the machine's monotonic clock."""

    good: bool
    told: str
    before: Held
    left: Held
    rounds: list


class Scene:
    """@server: around which things go wrong. @witness: of a higher level; @asking: its client. @neighbour: of the
    server's level; @busy: its client, which asks as fast as it can. @beside_slow: figures of a client alone and beside slow ones."""

    def __init__(self, bench, stack):
        self.bench = bench
        stack.enter_context(many_descriptors(pick(bench, 1000, SLOW + 2000)))
        self.server = Server(bench, stack, LOW, files=pick(bench, 500, SLOW + 1000))
        self.witness = Server(bench, stack, HIGH, "kv")
        rate = pick(bench, 20, WITNESS_RATE)
        self.asking = ports.start_asking(bench, "kv", self.witness.port, ENDLESS, CONNECTIONS, rate, list=None)
        self.asking.wait_ready()
        self.neighbour = Server(bench, stack, NEIGHBOUR)
        self.busy = ports.start_asking(bench, SERVICE, self.neighbour.port, ENDLESS, CONNECTIONS)
        self.busy.wait_ready()
        self.server.ask()  # what the start and the first requests open and close does not count
        self.beside_slow = None
        self.known = set()  # faults that have come

    def held_at_rest(self):
        """When what came before has closed its connections."""
        held, end = None, time.monotonic() + LEFT_S
        while held != (held := self.server.held()) and time.monotonic() < end:
            time.sleep(0.1)
        return held

    def is_clean(self, before):
        """A server that ended with another one of its MPS server holds nothing, and the agent does not know it."""
        left = self.server.held()
        return not left.holds_more(before) if self.server.lives else left.clients < before.clients

    def repeat(self, fault, wrong):
        """How it went, what happened, how often, and when it began and ended."""
        began, good, n = time.monotonic(), True, 0
        while good and (n == 0 or time.monotonic() < began + pick(self.bench, 0, FAULT_S)):
            try:
                good, told = fault(self, wrong)
            except Failure as failure:
                good, told = False, str(failure)
            n += 1
        return good, told if n == 1 else f"{n} times: {told}", (began, time.monotonic())

    def try_without(self, name, fault):
        """When the programs of the fault came and went without it."""
        if not self.bench.node.simulated and fault not in self.known:
            fault(self, False)  # the driver compiles the kernels of a program that it does not know yet, for up to 30 s
            self.known.add(fault)
        good, told, when = self.repeat(fault, False)
        if not good:
            self.bench.report.holds(f"the programs of '{name}', when nothing goes wrong", good, told)
        return when

    def try_fault(self, name, fault):
        rounds, good = [], True
        while good and len(rounds) < pick(self.bench, 1, ROUNDS):
            calm = self.try_without(name, fault)
            before = self.held_at_rest()
            good, told, when = self.repeat(fault, True)
            good &= until(lambda: self.is_clean(before))
            rounds.append((calm, when))
        return Found(good, told, before, self.server.held(), rounds)

    def try_all(self):
        """What it found, by fault; the requests of the witness's client."""
        found = {name: self.try_fault(name, fault) for name, fault in FAULTS.items()}
        for client in (self.asking, self.busy):
            client.stop()
        if self.neighbour.lives:
            self.busy.result(ports.TIMEOUT)
        return found, ports.requests_of(self.asking.result(ports.TIMEOUT))


def times(requests, began, ended):
    """us of the requests that were due then."""
    return [one.us for one in requests if began <= one.due < ended]


def shown(us):
    return f"{quantile(us, 0.99):.0f} us (slowest {max(us):.0f}, n={len(us)})"


def show_witness(bench, what, rounds, bound):
    """@rounds: us of the requests without and with the fault."""
    told = "; ".join(f"p99 {shown(us)}, without it {shown(calm)}" for calm, us in rounds)
    ratio = statistics.median(quantile(us, 0.99) / quantile(calm, 0.99) for calm, us in rounds)
    told += "; the same programs come and go without it, and a third server answers meanwhile in both"
    bench.report.judge(f"{what}: p99 of a server above against without, median of {len(rounds)}", ratio, bound, told)


def show(bench, scene, found, requests, bound):
    where = "an MPS server for each level" if bench.mode == MPS else "no MPS"
    for name, one in found.items():
        rounds = [[times(requests, *when) for when in both] for both in one.rounds]
        some, what = all(all(both) for both in rounds), f"{name} ({where})"
        bench.report.holds(what, one.good and some, one.told, f"before: {one.before}; after: {one.left}")
        if some:
            show_witness(bench, what, rounds, bound)
    what, lives = f"another server of the killed servers' level ({where})", scene.server.lives
    told = "lives on" if lives else f"ends with them: {scene.server.client.last_words()}"
    if bench.mode == MPS:
        bench.report.add(what, told)
    else:
        bench.report.holds(what, lives, told)


def show_end(bench):
    """When all have ended."""

    def left():
        return len(bench.node.status()), sum(sum(gpu["demand"]) for gpu in bench.node.gpus())

    clean = until(lambda: left() == (0, 0))
    bench.report.holds("all have ended: the agent has no clients and no demand", clean, "{} clients, demand {}".format(*left()))


def shared(bench):
    """What two throttles get, window by window, with equal shares."""
    window, n = pick(bench, (0.2, 1), SHARED_WINDOWS)
    bench.node.weirctl("policy", "wfq")
    rates = throttles.rates_together(bench, SHARERS, window, n)
    bench.node.weirctl("policy", "whpf")
    return rates


def show_shares(bench, before, after, bounds):
    told = f"before {throttles.shown(before)}; after {throttles.shown(after)}"
    bench.report.judge("two loops when all have ended: furthest from half of the GPU", throttles.off(after), bounds["shares after faults"], told)
    work = 100 * throttles.total(after) / (throttles.total(before) or 1)
    bench.report.judge("two loops when all have ended: their work, of that before", work, bounds["work after faults"], told)


def run(bench, bounds):
    """Returns the figures of a client alone and beside slow ones."""
    with contextlib.ExitStack() as stack:
        if bench.mode == MPS:
            bench.node.stop_mps()
            stack.enter_context(level_servers.levels(bench))
        else:
            bench.node.share_gpu(mps=False)
        before = shared(bench)
        with contextlib.ExitStack() as servers:
            scene = Scene(bench, servers)
            show(bench, scene, *scene.try_all(), bounds["beside a fault"])
        show_end(bench)
        show_shares(bench, before, shared(bench), bounds)
    return scene.beside_slow
