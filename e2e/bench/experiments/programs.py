"""Whole CUDA programs that know nothing of Weir (e2e/workloads/programs), each without Weir, with Weir, below a HIGH
that sends bursts, and killed in the middle of its work. HIGH's requests count from the start of the program to its end.

HIGH's time stands beside what the GPU took of it (e2e/workloads/spin-timed.h): a machine whose CPUs are shared stops
HIGH's thread now and then, whoever is on the GPU. Two controls show how often: a moment before each program, when HIGH
is alone, and some seconds beside processes that use no GPU.

While a process opens or closes its context, the driver keeps HIGH's kernels waiting, whether the process knows Weir or
not. A third control, processes without Weir, shows how long. So the GPU's time is also judged for the requests between
the two, when the program is at work. The fastest request beside each program tells whether the GPU's clock is lower.

Under MPS the death of a client in a kernel, or a failed assertion, ends the others, whatever Weir does; and MPS does
not run everything. So programs are killed under time-slicing, and what MPS does not run is below HIGH there."""

import dataclasses
import re
import statistics
import time

from bursts import LOW
from endless import TIMED, EndlessBursts, Stolen, busy_cpus, p99, where_time_went
from node import Failure
from report import at_most
from watch import Watch

SHOWS = "whole CUDA programs: right alone, below HIGH, and when others are killed; HIGH's p99 beside each"
PAPER = ""
BOUNDS = {
    "p99 against alone": at_most(1.1), "p99 against alone, on the GPU": at_most(1.1),
    "p99 against alone, on the GPU, at work": at_most(1.1),
}
BASELINES = ("the program without Weir", "HIGH alone")
NEEDS = ("gpu", "mps", "root")
SIMULATED = True

# libweir may run their kernels in forms.
IN_FORMS = (
    "long-launch", "many-launches", "four-threads", "constant-memory", "textures", "surfaces", "device-printf",
    "device-malloc", "runtime-module", "async-alloc", "per-thread-stream", "host-functions",
)
# No form fits these.
WHOLE = {
    "cooperative": "cooperative grids run as they are",
    "conditional-graph": "graphs run as they are",
    "dynamic-parallelism": "linked by nvcc: machine code only",
    "clusters": "clusters are refused",
}
FAULTS = "device-assert"
ALL = (*IN_FORMS, *WHOLE, FAULTS)
# All others have their PTX with them, in forms or not: HIGH beside each of them is judged.
WITHOUT_PTX = ("dynamic-parallelism",)
VICTIM = "normal"  # the level of those that are killed: one up, where they have demand bits
SECONDS = 3  # of a program's work below HIGH: its start and its end are some of HIGH's requests, too
SLOW = 1.1  # of HIGH's requests, against p99 alone: those are listed
ALONE = 6  # seconds of HIGH's requests before the programs
PAUSE = 0.3  # seconds of them before each program
BUSY, BUSY_CPUS = 3, 4  # seconds of them beside so many processes that use no GPU
OPENED = 6  # processes without Weir that open and close the GPU
ENOUGH = 200  # seconds; the programs that are left then are cut
RIGHT = re.compile(r": right, (\d+) rounds, ([0-9a-f]{16})$", re.MULTILINE)
REFUSAL = re.compile(r"kernel (\S+) runs natively: ([^\"\n]*)")


class Programs:
    """Runs programs and compares their results. @outside: those that are not run under MPS, and why. @wrong: what did
    not end right, in words."""

    def __init__(self, bench):
        self.bench, self.node = bench, bench.node
        self.names = bench.part_of([name for name in ALL if self.node.cuda_program(name)])
        self.seconds = 0.1 if self.node.simulated else SECONDS
        self.pauses, self.pauses_stolen = [], Stolen()  # HIGH's requests then
        self.outside = {FAULTS: "its failure ends other clients under MPS"} if FAULTS in self.names else {}
        self.checksums, self.wrong, self.count = {}, [], 0

    def start(self, name, tenant, weir, mps, seconds=0):
        argv = [self.node.cuda_program(name), *self.node.sizes, "--seconds", str(seconds)]
        return self.node.start(name, argv, tenant, weir, mps=mps, env={"WEIR_LOG": "debug"} if weir else None)

    def judge(self, client, how):
        """Waits for its end. It has to print the checksum that it printed first."""
        self.count += 1
        try:
            client.wait_end(60)
        except Failure as failure:
            client.kill()
            self.wrong.append(f"{how}: {failure}")
            return
        said = RIGHT.search(client.output)
        checksum = said[2] if said else client.output[-100:]
        if checksum != self.checksums.setdefault(client.name, checksum) or not said:
            self.wrong.append(f"{how}: {client.name} printed {checksum}")

    def alone(self, name):
        if name in WHOLE:
            self.try_under_mps(name)
        self.judge(self.start(name, LOW, False, mps=False), "alone")
        self.judge(self.start(name, LOW, True, mps=name not in self.outside), "alone with Weir")

    def try_under_mps(self, name):
        client = self.start(name, LOW, False, mps=True)
        try:
            client.wait_end(60)
        except Failure as failure:
            client.kill()
            self.outside[name] = f"not under MPS, which says without Weir: {failure}"

    def below(self, name, high, mps):
        with self.pauses_stolen:
            self.pauses += alone_for(high, 0.1 if self.node.simulated else PAUSE)
        begin = time.time()
        with Watch(self.node) as watch, Stolen() as stolen:
            client = self.start(name, LOW, True, mps, self.seconds)
            self.judge(client, "below HIGH")
        rounds = RIGHT.search(client.output)
        held = f"{name} held {sum(watch.held(client).values())} times in {rounds[1] if rounds else 0} rounds, {stolen}"
        return Below(high.requests(begin, time.time()), client, held, begin)


@dataclasses.dataclass
class Below:
    """HIGH's @requests while @client ran, from @begin on; in words how often it was stopped, and what the machine lost."""

    requests: list
    client: object
    held: str
    begin: float

    def __post_init__(self):
        first, last = (self.client.folder / name for name in ("ready", "stdout"))
        at, until = ((file.stat().st_mtime if file.exists() else 0) - self.begin for file in (first, last))
        self.opening = [one for one in self.requests if one.began < at]
        self.closing = [one for one in self.requests if one.began >= at and one.at > until]
        self.at_work = [one for one in self.requests if one.began >= at and one.at <= until]

    def late(self, limit_us):
        """How many are late on the GPU in each part, in words."""
        parts = {"opens": self.opening, "works": self.at_work, "closes": self.closing}
        counts = (f"{sum(one.on_gpu > limit_us for one in part)} while it {name}" for name, part in parts.items())
        return f"late on the GPU: {', '.join(counts)}"


def alone_for(high, seconds):
    """HIGH's requests of that time."""
    begin = time.time()
    time.sleep(seconds)
    return high.requests(begin, time.time())


class Alone:
    """HIGH alone, without Weir: p99 as HIGH sees it, and of the GPU's part."""

    def __init__(self, bench):
        with EndlessBursts(bench, False, extra=TIMED) as high, Stolen() as stolen:
            requests = alone_for(high, 0.1 if bench.node.simulated else ALONE)
        self.p99, self.on_gpu = p99s_of(requests)
        self.median = statistics.median(one.us for one in requests)
        self.words = f"{self.median:.0f}/{self.p99:.0f} us, GPU {self.on_gpu:.0f} us (n={len(requests)})"
        self.slow = f"{self.where(requests)}; {stolen}"

    def where(self, requests):
        return where_time_went(requests, SLOW * self.p99)

    def ratios(self, requests):
        """Of p99, to that alone: as HIGH sees it, and of the GPU's part."""
        us, on_gpu = p99s_of(requests)
        return us / self.p99, on_gpu / self.on_gpu


def p99s_of(requests):
    return p99([one.us for one in requests]), p99([one.on_gpu for one in requests])


def said_of(client):
    """Why kernels have no forms, as libweir says."""
    return "; ".join(sorted({f"{kernel}: {why}" for kernel, why in REFUSAL.findall(client.errors)}))


def show_latency(bench, programs, name, alone, below):
    us, on_gpu = p99s_of(below.requests)
    least = min(one.on_gpu for one in below.requests)
    words = f"p99 {us:.0f} us (n={len(below.requests)}), alone {alone.words}; {below.held}; {alone.where(below.requests)}"
    on_gpu_words = f"p99 {on_gpu:.0f} us, the fastest {least:.0f}; {below.late(SLOW * alone.on_gpu)}"
    said = "; ".join(filter(None, (said_of(below.client) or WHOLE.get(name), programs.outside.get(name))))
    what = f"HIGH's p99 beside {name}"
    ratio, gpu_ratio = alone.ratios(below.requests)
    at_work = alone.ratios(below.at_work or below.requests)[1]
    if name not in WITHOUT_PTX:
        bench.report.judge(what, ratio, BOUNDS["p99 against alone"], words + (f"; {said}" if said else ""))
        bench.report.judge(f"{what}, on the GPU", gpu_ratio, BOUNDS["p99 against alone, on the GPU"], on_gpu_words)
        bench.report.judge(
            f"{what}, on the GPU, at work", at_work, BOUNDS["p99 against alone, on the GPU, at work"],
            f"n={len(below.at_work)}")
    else:
        figure = f"{ratio:.3f}x, on the GPU {gpu_ratio:.3f}x, at work {at_work:.3f}x"
        bench.report.add(what, figure, baselines=f"{words}; {on_gpu_words}; {said}")
    if name == "clusters":
        said = said_of(below.client)
        bench.report.holds("clusters: refused, and said", "clusters" in said, said or "not said")


def show_control(bench, what, requests, alone, stolen):
    if requests:
        ratio, gpu_ratio = alone.ratios(requests)
        words = f"n={len(requests)}; {alone.where(requests)}; {stolen}"
        bench.report.add(what, f"{ratio:.3f}x, on the GPU {gpu_ratio:.3f}x", baselines=words)


def open_and_close(bench, high, alone):
    """HIGH beside processes without Weir that do next to nothing on the GPU."""
    tiny, opened = ["--kernels", "1", "--iterations", "1", "--requests", "1"], 1 if bench.node.simulated else OPENED
    begin = time.time()
    for _ in range(opened):
        argv = [bench.node.program("burst"), *bench.node.sizes, *tiny]
        bench.node.start("opened", argv, LOW, False).wait_end(60)
    late = sorted(one.on_gpu / alone.on_gpu for one in high.requests(begin, time.time()))
    late = [ratio for ratio in late if ratio > SLOW]
    bench.report.add(
        f"HIGH beside {opened} processes without Weir that open and close the GPU", f"{len(late)} late on the GPU",
        baselines=", ".join(f"{ratio:.2f}x" for ratio in late) or "-")


def run_below_high(bench, programs, alone, until):
    left = [name for name in programs.names if name not in programs.outside]
    with EndlessBursts(bench, True, extra=TIMED) as high:
        while left and time.monotonic() < until:
            name = left.pop(0)
            show_latency(bench, programs, name, alone, programs.below(name, high, mps=True))
        open_and_close(bench, high, alone)
        with busy_cpus(BUSY_CPUS), Stolen() as stolen:
            busy = alone_for(high, 0.1 if bench.node.simulated else BUSY)
    show_control(bench, "HIGH alone between the programs, with Weir", programs.pauses, alone, programs.pauses_stolen)
    show_control(bench, f"HIGH beside {BUSY_CPUS} processes without the GPU, with Weir", busy, alone, stolen)
    if left:
        bench.report.cut(f"not below HIGH: {', '.join(left)}")


class Killed:
    """Programs that are killed beside @high, one after the other. @wrong: what stayed of one, in words."""

    def __init__(self, programs, high):
        self.programs, self.node, self.high = programs, programs.node, high
        self.wrong, self.count = [], 0

    def accounts(self):
        return len(list((self.node.state / "memory").glob("account-*")))

    def left(self, pid):
        """What is left of a process, beside HIGH."""
        found = []
        if any(known["pid"] == pid for known in self.node.status()):
            found.append("a client")
        if any(bin(int(word)).count("1") > 1 for gpu in self.node.gpus() for word in gpu["demand"]):
            found.append("a demand bit")
        if self.accounts() > 1:
            found.append("memory")
        return found

    def is_at_work(self, client):
        return client.ready_file.exists() and any(known["pid"] == client.process.pid for known in self.node.status())

    def kill(self, name):
        client = self.programs.start(name, VICTIM, True, False, seconds=600)
        self.count += 1
        wait(lambda: self.is_at_work(client) or client.process.poll() is not None, 30)
        time.sleep(0.05 if self.node.simulated else 0.2)
        ended = client.process.poll() is not None
        begin = time.time()
        client.kill()
        if ended:
            self.wrong.append(f"{name}: ended before it was killed, {client.last_words()}")
        elif not wait(lambda: not self.left(client.process.pid), 5):
            self.wrong.append(f"{name}: {', '.join(self.left(client.process.pid))} stayed")
        self.high.between(begin, begin + 1)  # or a Failure


def wait(condition, seconds):
    """Whether the condition came true in time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def run_under_timeslicing(bench, programs, alone, until):
    """Those that MPS does not run below HIGH, and all programs killed. HIGH checks its own values at its end."""
    bench.node.share_gpu(mps=False)
    with EndlessBursts(bench, True, mps=False, extra=TIMED) as high:
        for name in programs.outside:
            show_latency(bench, programs, name, alone, programs.below(name, high, mps=False))
        killed, left = Killed(programs, high), list(programs.names)
        while left and time.monotonic() < until:
            killed.kill(left.pop(0))
    if left:
        bench.report.cut(f"not killed: {', '.join(left)}")
    bench.report.holds(
        "nothing stays of a killed program", not killed.wrong,
        f"{killed.count} killed; {'; '.join(killed.wrong) or 'no client, demand bit or memory; HIGH went on'}",
    )


def run(bench):
    until = time.monotonic() + ENOUGH
    bench.node.share_gpu(mps=True)
    programs = Programs(bench)
    for name in programs.names:
        programs.alone(name)
    alone = Alone(bench)
    bench.report.add("HIGH alone", "1.000x", baselines=f"{alone.words}; {alone.slow}")
    run_below_high(bench, programs, alone, until - 60)
    run_under_timeslicing(bench, programs, alone, until)
    bench.report.holds(
        "every result is right", not programs.wrong,
        f"{programs.count} runs of {len(programs.names)} programs; {'; '.join(programs.wrong) or 'equal checksums'}",
    )
