"""A loop that never comes to a scheduling point, below a server of a higher level (GLoop section 5): the hardware stops it
when others may run, the agent reports it, and ends its process if the configuration says so."""

import contextlib
import time

import faults
import level_servers
import ports
from bursts import HIGH, LOW
from counting import Page, file_of, number_of
from experiment import MPS
from servers import quantile

AFTER_S = 1  # that it has used of its own turns when it is reported
TOLD_S = 30  # until it is reported, or its process has ended
STARTS_S, HELD_S = 20, 60
CONNECTIONS, RATE = 4, 1000  # of the server's client; requests a second
WHAT = "a loop without scheduling points"


def overruns(action):
    return f"overruns: {{action: {action}, afterSeconds: {AFTER_S}}}\n"


@contextlib.contextmanager
def agent(bench):
    """An agent that reports such a loop."""
    node, before = bench.node, bench.node.scheduling
    node.scheduling += overruns("report")
    with contextlib.ExitStack() as stack:
        stack.callback(setattr, node, "scheduling", before)
        stack.callback(node.stop_agent)
        if bench.mode == MPS:
            node.stop_mps()
            stack.enter_context(level_servers.levels(bench))
        else:
            node.share_gpu(mps=False)
        yield


@contextlib.contextmanager
def loop(bench, kernel, tenant, *options):
    argv = [bench.node.program("loop-runner"), *bench.node.sizes, "--kernel", kernel, *options]
    client = bench.node.start(kernel, argv, tenant, True)
    try:
        yield client
    finally:
        client.kill()


@contextlib.contextmanager
def monopolist(bench):
    """It counts in a page."""
    path = file_of(bench, "monopolist")
    path.write_bytes(bytes(4096))
    path.chmod(0o666)
    with loop(bench, "monopolist", LOW, "--page", str(path)) as client:
        page = Page(path)
        page.await_motion(STARTS_S)
        path.unlink()
        yield client, page


def ask(bench, server):
    """Per cent of the requests that were answered; what is told of them."""
    seconds, rate = faults.pick(bench, (0.5, 50), (2.0, RATE))
    us = [one.us for one in ports.requests_of(ports.ask(bench, "kv", server.port, seconds, CONNECTIONS, rate, list=None))]
    return 100 * len(us) / (seconds * rate), f"p50 {quantile(us, 0.5):.0f} us, p99 {quantile(us, 0.99):.0f} us (n={len(us)})"


def seconds_until(check):
    """None: it does not come true within TOLD_S."""
    begin = time.monotonic()
    while time.monotonic() < begin + TOLD_S:
        if check():
            return time.monotonic() - begin
        time.sleep(0.05)
    return None


def status_of(bench, client):
    known = {bench.node.identity_of(one): one for one in bench.node.status()}
    return known.get(bench.node.identity(client), {})


def is_reported(bench, client):
    return status_of(bench, client).get("state") == "overruns"


def stopped(bench, client):
    """In words: whether the client is, and which levels' MPS servers are."""
    servers = {server["level"]: server.get("stopped", False) for gpu in bench.node.gpus() for server in gpu.get("servers", ())}
    return f"itself {status_of(bench, client).get('stopped', False)}, servers {servers}"


def show_soon(bench, what, seconds):
    bench.report.holds(f"{WHAT}: {what}", seconds is not None, f"no, within {TOLD_S} s" if seconds is None else f"after {seconds:.1f} s")


def show_hold(bench, client, page):
    """And that nobody is reported for time in which the hardware stops it."""
    bench.node.weirctl("hold", str(number_of(bench, client)), "--for", f"{HELD_S}s")
    stands = page.stands()
    time.sleep(faults.pick(bench, 0.2, 2 * AFTER_S))
    stays, reported = page.moves(0.2) == 0, is_reported(bench, client)
    told = f"stands: {stands}, stays so: {stays}, reported: {reported}; stopped, as the agent says: {stopped(bench, client)}"
    bench.node.weirctl("release", str(number_of(bench, client)))
    bench.report.holds(f"{WHAT}: stands still while it is held, and is not reported for it", stands and stays and not reported, told)


def run(bench, bound):
    """@bound: of the requests to the server that are answered, in per cent."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(agent(bench))
        server = faults.Server(bench, stack, HIGH, "kv")
        _, alone = ask(bench, server)
        client, page = stack.enter_context(monopolist(bench))
        answered, beside = ask(bench, server)
        bench.report.judge(f"{WHAT}: answered requests of a server above it", answered, bound, f"{beside}; without the loop {alone}")
        show_hold(bench, client, page)
        stack.enter_context(loop(bench, "spinner", faults.NEIGHBOUR, "--n", str(1 << 50)))
        show_soon(bench, f"reported when another client of its level has work, for {AFTER_S} s of its own turns", seconds_until(lambda: is_reported(bench, client)))
        bench.node.scheduling = bench.node.scheduling.replace(overruns("report"), overruns("kill"))
        bench.node.change_tenants({})  # writes the configuration; the agent reads it
        show_soon(bench, "its process ends when the configuration says so", seconds_until(lambda: client.process.poll() is not None))
        answered, after = ask(bench, server)
        bench.report.judge(f"{WHAT}: answered requests of the server afterwards", answered, bound, after)
