"""Clients that queue work without end, on command, and what they got in each second: PyTorch (programs/low.py), or filler
on the simulated GPU."""

import bisect
import subprocess
import threading
import time

from node import Failure
from servers import quantile

POLL = 0.02  # seconds, on the simulated GPU
# A piece was interrupted if it took longer than NEAR times that quantile of all pieces.
UNINTERRUPTED, NEAR, SLOWEST = 0.1, 1.25, 2


class Progress:
    """Steps that were done at each time of a run. @pieces: (time, ms) of pieces of steps (programs/low.py)."""

    def __init__(self, points, pieces=()):
        self.times, self.steps = zip(*points)
        self.pieces = pieces

    def at(self, when):
        i = bisect.bisect_right(self.times, when)
        if i == 0 or i == len(self.times):
            return self.steps[min(i, len(self.steps) - 1)]
        before, after = self.times[i - 1], self.times[i]
        part = (when - before) / (after - before)
        return self.steps[i - 1] + part * (self.steps[i] - self.steps[i - 1])

    def windows(self, begin, n, seconds=1.0):
        """Steps a second in each of @n windows from @begin on."""
        at = [self.at(begin + i * seconds) for i in range(n + 1)]
        return [(after - before) / seconds for before, after in zip(at, at[1:])]

    def rate(self, begin, end):
        return (self.at(end) - self.at(begin)) / (end - begin)

    def piece_ms(self, begin, end):
        """Of a piece that nobody interrupted; 0: not known."""
        return uninterrupted([ms for at, ms in self.pieces if begin <= at <= end])

    def piece_windows(self, begin, n, seconds=1.0):
        return [self.piece_ms(begin + i * seconds, begin + (i + 1) * seconds) for i in range(n)]


def uninterrupted(times):
    """The mean time of pieces that no other client interrupted; 0: there are no pieces."""
    limit = NEAR * quantile(times, UNINTERRUPTED) if times else 0
    near = [ms for ms in times if ms <= limit]
    return sum(near) / len(near) if near else 0


class StepTime:
    """The GPU time of a workload's step. A client at the board's power limit lowers the clock for all, and steps then take
    longer, so steps a second understate the GPU time that a client got. A step takes as much longer as a piece of it.
    @ms: of a step in a short burst, at the full clock; @piece: of a piece of it then; 0: not known."""

    def __init__(self, ms, piece):
        self.ms, self.piece = ms, piece

    def at(self, piece, slower=0):
        """ms when a piece takes @piece ms. No clock is above the full one. None is so low that it takes SLOWEST times as
        long: then all were interrupted, or waited for the processor. So they were as far as they take more than @slower
        times as long; 0: not known."""
        known = self.piece and self.piece < piece < SLOWEST * self.piece
        times = piece / self.piece if known else 1
        return self.ms * (min(times, slower) if slower else times)

    def __str__(self):
        return f"{self.ms:.3f} ms, a piece of it {self.piece:.3f} ms"


class TorchLoop:
    def __init__(self, bench, tenant, workloads, weir=True, priority=False):
        argv = [*bench.low_argv(",".join(workloads)), "--turns", "--queued", *(["--priority"] if priority else [])]
        self.client = bench.node.start(f"loop-{tenant}", argv, tenant, weir, stdin=subprocess.PIPE)
        self.workload = ""

    def wait_ready(self):
        self.client.wait_ready()

    def begin(self, workload, seconds):
        self.workload = workload
        self.client.tell(workload, seconds)

    def end(self, timeout=60):
        result = self.client.answer(timeout)[self.workload]
        n, windows = result["steps"], result["windows"]
        if not windows:
            raise Failure(f"{self.client.name}: no {self.workload} in its time")
        pieces = [(end, ms) for (_, end), some in zip(windows, result["pieces"]) for ms in some]
        return Progress([(windows[0][0], 0)] + [(end, n * (i + 1)) for i, (_, end) in enumerate(windows)], pieces)

    def step_time(self, workload):
        self.client.tell(workload, "busy")
        result = self.client.answer(60)[workload]
        return StepTime(result["ms"], uninterrupted(result["pieces"]))

    def leave(self):
        self.client.leave()


class FillerLoop:
    """Runs all the time; a run is what it did meanwhile, as the agent says. @workloads are all the same."""

    def __init__(self, bench, tenant, workloads, weir=True, priority=False):
        self.node, self.poller, self.points = bench.node, None, []
        self.client = bench.node.start(f"loop-{tenant}", [bench.node.program("filler"), "--depth", "4"], tenant, True)

    def wait_ready(self):
        self.client.wait_ready()

    def begin(self, workload, seconds):
        self.points = []
        self.poller = threading.Thread(target=self.poll, args=(time.monotonic() + seconds,))
        self.poller.start()

    def launches(self):
        known = {client["pid"]: client for client in self.node.status()}
        return known[self.client.process.pid]["launches"]

    def poll(self, end):
        while time.monotonic() < end or len(self.points) < 2:
            self.points.append((time.monotonic(), self.launches()))
            time.sleep(POLL)

    def end(self, timeout=60):
        self.poller.join(timeout)
        if len(self.points) < 2:
            raise Failure(f"{self.client.name}: the agent does not say what it did")
        return Progress(self.points)

    def step_time(self, workload):
        self.begin(workload, 0.5)
        progress = self.end()
        return StepTime(1e3 / max(1e-3, progress.rate(progress.times[0], progress.times[-1])), 0)

    def leave(self):
        self.client.stop()
        self.client.wait_end(60)


def loop_of(bench, tenant, workloads, weir=True, priority=False):
    """@priority: in a stream of the greatest priority."""
    return (FillerLoop if bench.node.simulated else TorchLoop)(bench, tenant, workloads, weir, priority)


def begin_node(bench, scheduling):
    """An agent with a part of its configuration, and no MPS daemon. On the simulated GPU channel groups take turns, unless
    processes of experiments before still use it."""
    bench.node.stop_mps()
    bench.node.stop_agent()
    if bench.node.simulated:
        bench.node.simulate("slices = 1\n")
    bench.node.scheduling = scheduling
    bench.node.ensure_agent()


def end_node(bench, loops):
    for loop in loops:
        loop.client.kill()
    bench.node.stop_agent()
    bench.node.scheduling = ""
    if bench.node.simulated:
        bench.node.simulate("")


def has_hardware(bench, loops):
    """Whether the hardware can stop and slice all of them; reports it if not. The simulated one need not."""
    if wait_known(bench, loops, lambda known: known["hardwarePreemption"]):
        return True
    why = "; ".join(gpu.get("hardwarePreemptionReason", "") for gpu in bench.node.gpus()) or "no"
    if bench.node.simulated:
        bench.report.add("hardware preemption", why)
    else:
        bench.report.holds("hardware preemption", False, why)
    return False


def known(bench, loop):
    """The agent's status of a loop's client; an empty dict: it does not know it yet."""
    return next((c for c in bench.node.status() if c["pid"] == loop.client.process.pid), {})


def wait_known(bench, loops, check=lambda known: True, timeout=15):
    """Waits until the agent says of each loop what @check wants. False: it does not."""
    end = time.monotonic() + timeout
    while not all(status and check(status) for status in (known(bench, loop) for loop in loops)):
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def together(runs, seconds):
    """Runs (loop, workload) at the same time. Returns their progress, and from when to when all of them ran."""
    for loop, workload in runs:
        loop.begin(workload, seconds)
    begin = time.monotonic()
    progress = [loop.end() for loop, _ in runs]
    return progress, max(begin, *(p.times[0] for p in progress)), min(begin + seconds, *(p.times[-1] for p in progress))


def used(progress, step, begin, n, slower=()):
    """The per cent of each second's time that a client got on the GPU. @slower: of Clock, in each second."""
    pieces = zip(progress.windows(begin, n), progress.piece_windows(begin, n), slower or [0] * n)
    return [rate * step.at(piece, most) / 10 for rate, piece, most in pieces]


def rate_alone(loop, workload, seconds):
    progress, begin, end = together([(loop, workload)], seconds)
    return progress[0].rate(begin, end)
