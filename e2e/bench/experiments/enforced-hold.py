"""A client is held by hand for some seconds: one with a kernel that never leaves, one that passes by all gates, one that
clears its hold word, and one that lets its channel group go on by itself, again and again. The last one is held twice,
because the agent knows it the second time. Then the agent ends while a client is stopped. Kernels count in a page that the
experiment watches."""

import contextlib
import datetime
import pathlib
import re
import signal
import time

from counting import Page, file_of, number_of
from node import Failure, Node
from report import at_most

SHOWS = "how soon and how well a hold stops a client that does not obey, and that nobody stays stopped"
PAPER = ""
STOPPED, RUNS = "stopped after the hold is asked for", "runs while held"
SEEN, GOES_ON, GONE = "stopped once it is seen to end its stops", "goes on without an agent", "gone, killed while it is stopped"
BOUNDS = {STOPPED: at_most(2, " ms"), RUNS: at_most(2, " %"), SEEN: at_most(5, " ms"), GOES_ON: at_most(2, " s"), GONE: at_most(2, " s")}
BASELINES = ("before the hold",)
NEEDS = ("gpu", "root")
SIMULATED = True

HOLD_SECONDS = 10
AGAIN_SECONDS = 3  # of the second one, which stops the process at once: what runs at its begin is a larger part of it
BEFORE_END = 0.02  # of a hold: the count is read then
STAYS, FIGHTS = "does not leave", "ends its stops"
WAYS = {STAYS: "", "passes by all gates": "gates", "clears its hold word": "hold", FIGHTS: "stop"}
FIGHTERS = 5  # the driver counts in periods, so each is seen after another time
ENDS = {"agent killed": Node.kill_agent, "agent upgraded": Node.stop_agent}
NO_AGENT = 5  # s for which a client has no agent: longer than the bound


@contextlib.contextmanager
def counting(bench, name):
    """A client that disobeys in the way @name, at work: (client, its page)."""
    way = WAYS[name]
    path = file_of(bench, way or "none")
    argv = [bench.node.program("counter"), "--file", str(path)]
    argv += ["--disobey", way] if way else []
    argv += ["--pause-us", "2000"] if way and bench.node.simulated else []  # a simulated call is the process's own
    with bench.node.running(f"counter-{way or 'none'}", argv, "low", True) as client:
        page = Page(path)
        page.await_motion(20)
        yield client, page


def length(bench):
    return HOLD_SECONDS if not bench.node.simulated else AGAIN_SECONDS


def bits(page, last, begin, seconds):
    """For each 100 us since @begin, when the count was @last, whether it moved."""
    moved = []
    while (now := time.monotonic()) < begin + seconds:
        at = int((now - begin) * 10000)
        count = page.count
        if count != last:
            moved += [False] * (at + 1 - len(moved))
            moved[at] = True
            last = count
    return moved


def ran_for(moved):
    """ms until the count moved for the last time: no pause of the kernel's or of this program's is taken for a stop."""
    return max((i + 1 for i, moves in enumerate(moved) if moves), default=0) / 10


def hold(bench, page, number, rate, seconds):
    """The part of a hold of @seconds for which the kernel runs, per cent; for each 100 us of its first second whether it
    does; and when that began, as time.time(). All since just before the agent was asked."""
    before, began, asked = page.count, time.time(), time.monotonic()
    bench.node.ask(command="hold", client=number, seconds=seconds)
    moved = bits(page, before, asked, min(1.0, seconds - BEFORE_END))
    time.sleep(max(0, asked + seconds - BEFORE_END - time.monotonic()))
    ran = page.count - before
    page.await_motion(5)
    return 100 * ran / (rate * (seconds - BEFORE_END)), moved, began


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


def disobey(bench, name):
    with counting(bench, name) as (client, page):
        number = number_of(bench, client)
        rate = page.moves(0.5) / 0.5
        part, moved, _ = hold(bench, page, number, rate, length(bench))
        bench.report.judge(f"{RUNS}, {name}", part, BOUNDS[RUNS], f"{rate:.0f} counts/s before")
        bench.report.judge(f"{STOPPED}, {name}", ran_for(moved), BOUNDS[STOPPED])
        bench.report.add(f"counted by the driver, {name}", counts(bench, number) or "nothing")
        times = len(seen(bench, client.process.pid))
        bench.report.holds(f"not seen to end its stops, {name}", not times, f"{times} times")


def fight(bench):
    """One client that ends its stops: per cent of the first hold and of the second for which it runs, ms until it was seen,
    and for how long it ran then; the last two are None if it was not."""
    with counting(bench, FIGHTS) as (client, page):
        number = number_of(bench, client)
        rate = page.moves(0.5) / 0.5
        first, moved, began = hold(bench, page, number, rate, length(bench))
        at = seen(bench, client.process.pid)
        again, _, _ = hold(bench, page, number, rate, AGAIN_SECONDS)
    if not at:
        return first, again, None, None
    seen_after = 1000 * (at[0] - began)
    return first, again, seen_after, max(0, ran_for(moved) - seen_after)


def judge_fights(bench, found):
    """@found: of fight() for each of several clients: the worst one counts."""
    first, again, at, late = zip(*found)
    bench.report.holds(f"seen, {FIGHTS}", None not in at, each(at, "after {:.0f} ms"))
    for what, values, bound, form in (
        (f"{RUNS}, {FIGHTS}, worst client", first, RUNS, "{:.3f} %"),
        (f"{RUNS} again, {FIGHTS}, worst client", again, RUNS, "{:.3f} %"),
        (f"{SEEN}, worst client", [value for value in late if value is not None], SEEN, "{:.1f} ms"),
    ):
        if values:
            bench.report.judge(what, max(values), BOUNDS[bound], each(values, form))


def each(values, form):
    return ", ".join("never" if value is None else form.format(value) for value in values)


def await_frozen(client):
    """Until the process is stopped by a signal."""
    end = time.monotonic() + 10
    while pathlib.Path(f"/proc/{client.process.pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "T":
        if time.monotonic() > end:
            raise Failure("the agent does not stop the client by a signal")
        time.sleep(0.01)


def agent_ends(bench, name, how):
    """The agent ends while a client is stopped: that one goes on, before there is another agent."""
    what = f"{how}, {name}"
    with counting(bench, name) as (client, page):
        bench.node.ask(command="hold", client=number_of(bench, client), seconds=60)
        if name == FIGHTS:
            await_frozen(client)
        bench.report.holds(f"stopped before, {what}", page.stands(), "held")
        begin = time.monotonic()
        ENDS[how](bench.node)
        try:
            page.await_motion(begin + NO_AGENT - time.monotonic())
            more = ""
        except Failure:
            bench.node.ensure_agent()
            page.await_motion(20)
            more = f"not for the {NO_AGENT} s without an agent, but with the next one"
        bench.report.judge(f"{GOES_ON}, {what}", time.monotonic() - begin, BOUNDS[GOES_ON], more)
        bench.node.ensure_agent()
        number = number_of(bench, client)
        bench.node.ask(command="hold", client=number, seconds=60)
        bench.report.holds(f"the next agent can stop it, {what}", page.stands(), "held again")
        bench.node.ask(command="hold", client=number, seconds=0)


def client_killed(bench):
    with counting(bench, STAYS) as (client, _):
        bench.node.ask(command="hold", client=number_of(bench, client), seconds=60)
        time.sleep(0.3)
        begin = time.monotonic()
        client.process.send_signal(signal.SIGKILL)
        client.process.wait()
        while any(known["pid"] == client.process.pid for known in bench.node.status()):
            time.sleep(0.005)
        bench.report.judge(GONE, time.monotonic() - begin, BOUNDS[GONE])


def run(bench):
    bench.node.stop_mps()
    bench.node.agent_log_level = "debug"
    bench.node.stop_agent()
    if bench.node.simulated:
        bench.node.simulate("slices = 1\n")
    bench.node.ensure_agent()
    try:
        for name in WAYS:
            if name != FIGHTS:
                disobey(bench, name)
        judge_fights(bench, [fight(bench) for _ in range(FIGHTERS if not bench.node.simulated else 1)])
        client_killed(bench)
        for how in ENDS:
            for name in (STAYS, FIGHTS):
                agent_ends(bench, name, how)
    finally:
        bench.node.agent_log_level = None
        for path in file_of(bench, "").parent.glob(file_of(bench, "").name + "*"):
            path.unlink()
