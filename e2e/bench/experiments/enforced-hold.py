"""A client with a kernel that never leaves is held by hand for some seconds; one that clears its hold word; one that
lets its channel group go on by itself, again and again: twice, because the agent knows it the second time. Its kernel
counts in a page that the experiment watches."""

import datetime
import mmap
import pathlib
import re
import signal
import struct
import time

from node import Failure
from report import at_most

SHOWS = "how soon and how well a hold stops a client that does not obey"
PAPER = ""
BOUNDS = {
    "stopped, does not leave": at_most(5, " ms"),
    "stopped, clears its hold word": at_most(5, " ms"),
    "runs while held, does not leave": at_most(2, " %"),
    "runs while held, clears its hold word": at_most(2, " %"),
    "runs while held, ends its stops": at_most(2, " %"),
    "stopped once it is seen, ends its stops": at_most(5, " ms"),
    "goes on, agent killed": at_most(2, " s"),
    "gone, killed while it is stopped": at_most(2, " s"),
}
BASELINES = ("before the hold",)
NEEDS = ("gpu", "root")
SIMULATED = True

HOLD_SECONDS = 10
WAYS = {"does not leave": "", "clears its hold word": "hold", "ends its stops": "stop"}


class Page:
    """What the kernel counts."""

    def __init__(self, path):
        self.file = open(path, "r+b")
        self.map = mmap.mmap(self.file.fileno(), 4096)

    @property
    def count(self):
        return struct.unpack_from("I", self.map)[0]

    def moves(self, seconds):
        before = self.count
        time.sleep(seconds)
        return self.count - before

    def await_motion(self, seconds):
        """Seconds until the count changes."""
        before, begin = self.count, time.monotonic()
        while self.count == before:
            if time.monotonic() > begin + seconds:
                raise Failure("the kernel does not run")
        return time.monotonic() - begin


def file_of(bench, name):
    """In memory: the driver registers no page of another file."""
    return pathlib.Path("/dev/shm") / f"{bench.node.folder.name}-{name}"


def start(bench, name, disobey, path):
    argv = [bench.node.program("counter"), "--file", str(path)]
    argv += ["--disobey", disobey] if disobey else []
    return bench.node.running(name, argv, "low", True)


def number_of(bench, client):
    """The agent's number of the client, once it has hardware preemption."""
    end = time.monotonic() + 20
    while time.monotonic() < end:
        for known in bench.node.status():
            if known["pid"] == client.process.pid and known["hardwarePreemption"]:
                return str(known["client"])
        time.sleep(0.05)
    raise Failure("the client has no hardware preemption")


def bits(page, begin, seconds):
    """For each 100 us since @begin whether the count moved."""
    moved, last = [], page.count
    while (now := time.monotonic()) < begin + seconds:
        at = int((now - begin) * 10000)
        count = page.count
        if count != last:
            moved += [False] * (at + 1 - len(moved))
            moved[at] = True
            last = count
    return moved


def stopped_after(moved, still=20):
    """ms until the count first stood still for @still of the 100 us."""
    last = -1
    for at, moves in enumerate(moved):
        if moves:
            if at - last > still:
                break
            last = at
    return (last + 1) / 10


def hold(bench, page, number, rate):
    """The part of a hold for which the kernel runs, per cent; for each 100 us of its first second whether it does; and
    when that began, as time.time()."""
    bench.node.weirctl("hold", number, "--for", f"{HOLD_SECONDS}s")
    began, told, before = time.time(), time.monotonic(), page.count
    moved = bits(page, told, 1.0)
    time.sleep(max(0, told + HOLD_SECONDS - 0.5 - time.monotonic()))
    ran = page.count - before
    page.await_motion(5)
    return 100 * ran / (rate * (HOLD_SECONDS - 0.5)), moved, began


def counts(bench, number):
    """What the driver counted of a stopped client: it may have run for the part of a period before its stop."""
    found = [re.search(r"ran for (\d+) % of (\d+) ms that ended (\d+) ms after", line).groups()
             for line in bench.node.agent_says(f"client {number}: ran for")]
    return ", ".join(f"{part} % of {period} ms, its end {after} ms after the stop" for part, period, after in found)


def seen(bench, pid):
    """When the agent saw that the process ran while it was stopped, as time.time(): a list."""
    lines = bench.node.agent_says(f"pid {pid}, runs while it is stopped")
    times = [re.match(r"time=(\S+)Z", line).group(1) for line in lines]
    return [datetime.datetime.fromisoformat(at + "+00:00").timestamp() for at in times]


def disobey(bench, name, way):
    path = file_of(bench, way or "none")
    with start(bench, f"counter-{way or 'none'}", way, path) as client:
        page, pid = Page(path), client.process.pid
        page.await_motion(20)
        number = number_of(bench, client)
        rate = page.moves(0.5) / 0.5
        more, bound = f"{rate:.0f} counts/s before", BOUNDS[f"runs while held, {name}"]
        part, moved, began = hold(bench, page, number, rate)
        bench.report.judge(f"runs while held for 10 s, {name}", part, bound, more)
        bench.report.add(f"counted by the driver, {name}", counts(bench, number) or "nothing")
        at = seen(bench, pid)
        if way != "stop":
            bench.report.judge(f"stopped, {name}", stopped_after(moved), BOUNDS[f"stopped, {name}"])
            bench.report.holds(f"not seen to end its stops, {name}", not at, f"{len(at)} times")
            return
        bench.report.holds(f"seen, {name}", bool(at), f"after {1000 * (at[0] - began):.0f} ms" if at else "never")
        if at:
            ran_for = max((i + 1 for i, moves in enumerate(moved) if moves), default=0) / 10
            late = max(0, ran_for - 1000 * (at[0] - began))
            bench.report.judge(f"stopped once it is seen, {name}", late, BOUNDS[f"stopped once it is seen, {name}"])
        part, moved, began = hold(bench, page, number, rate)
        bench.report.judge(f"runs while held for 10 s again, {name}", part, bound, more)


def agent_killed(bench):
    """The agent dies while a client is stopped: that one goes on."""
    path = file_of(bench, "agent")
    with start(bench, "counter-agent", "", path) as client:
        page = Page(path)
        page.await_motion(20)
        bench.node.weirctl("hold", number_of(bench, client), "--for", "60s")
        time.sleep(0.3)
        moves = page.moves(0.2)
        bench.report.holds("stopped before the agent dies", moves == 0, f"{moves} counts in 0.2 s")
        bench.node.kill_agent()
        seconds = page.await_motion(20)
        bench.report.judge("agent killed: goes on after", seconds, BOUNDS["goes on, agent killed"])
    bench.node.ensure_agent()


def client_killed(bench):
    path = file_of(bench, "client")
    with start(bench, "counter-client", "", path) as client:
        Page(path).await_motion(20)
        bench.node.weirctl("hold", number_of(bench, client), "--for", "60s")
        time.sleep(0.3)
        begin = time.monotonic()
        client.process.send_signal(signal.SIGKILL)
        client.process.wait()
        while any(known["pid"] == client.process.pid for known in bench.node.status()):
            time.sleep(0.005)
        seconds = time.monotonic() - begin
        bench.report.judge("SIGKILL while stopped: gone after", seconds, BOUNDS["gone, killed while it is stopped"])


def run(bench):
    bench.node.stop_mps()
    bench.node.agent_log_level = "debug"
    bench.node.stop_agent()
    if bench.node.simulated:
        bench.node.simulate("slices = 1\n")
    bench.node.ensure_agent()
    try:
        for name, way in WAYS.items():
            disobey(bench, name, way)
        client_killed(bench)
        agent_killed(bench)
    finally:
        bench.node.agent_log_level = None
        for path in file_of(bench, "").parent.glob(file_of(bench, "").name + "*"):
            path.unlink()
