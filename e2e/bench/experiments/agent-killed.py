"""LOW multiplies matrices and HIGH sends bursts, while the agent is away for 2 s."""

import statistics
import time

import bursts
from bursts import HIGH, LOW
from watch import median_between, requests

SHOWS = "clients go on when the agent is killed; a new agent knows their levels within 1 s"
PAPER = ""
BOUNDS = {}
BASELINES = ("HIGH's median before the kill",)
NEEDS = ("gpu", "mps", "pytorch", "root")
SIMULATED = True

LEVELS_BACK_WITHIN = 1.0  # s
AS_BEFORE = 1.15  # HIGH is as before when its median is within this of the one before the kill
AGENT_AWAY = 2.0  # s
WINDOW = 20  # requests of one median


def wait_levels(node, want, timeout):
    """Seconds until the agent knows all of @want, a pid to its level; None if that takes longer than @timeout."""
    begin = time.monotonic()
    while time.monotonic() - begin < timeout:
        try:
            have = {client["pid"]: client["level"] for client in node.status()}
            if all(have.get(pid) == level for pid, level in want.items()):
                return time.monotonic() - begin
        except Exception:  # not up yet
            pass
        time.sleep(0.02)
    return None


def time_back(log, start, limit):
    """Seconds from @start to the first request from which on the median of a window is within
    @limit, or None."""
    after = [(at, us) for at, us in log if at >= start]
    for i in range(len(after) - WINDOW):
        if statistics.median(us for _, us in after[i : i + WINDOW]) <= limit:
            return after[i][0] - start
    return None


def run(bench):
    node = bench.node
    node.ensure_mps()
    node.ensure_agent()
    log_path = node.folder / "requests.log"
    log_path.touch()
    log_path.chmod(0o666)
    argv = bench.burst_argv(1 << 40, extra=("--log", str(log_path)))
    with node.running("low-mm", bursts.low_of(bench, "mm").argv, LOW, True) as low, node.running("burst", argv, HIGH, True) as high:
        time.sleep(0.5)
        before = {client["pid"]: client["level"] for client in node.status()}
        clients = {client.process.pid for client in (low, high)}
        want = {pid: level for pid, level in before.items() if pid in clients}
        begin = time.time()
        time.sleep(bench.seconds)
        killed = time.time()
        node.kill_agent()
        time.sleep(AGENT_AWAY)
        started = time.time()
        node.start_agent()
        levels = wait_levels(node, want, 10)
        time.sleep(bench.seconds)
        end = time.time()
        alive = all(client.process.poll() is None for client in (low, high))
    log = requests(log_path)
    usual = median_between(log, begin, killed)
    away = median_between(log, killed, started)
    settled = median_between(log, started + LEVELS_BACK_WITHIN, end)
    back = time_back(log, started, AS_BEFORE * usual)
    medians = f"HIGH's median us: before {usual:.0f}, agent away {away:.0f}, after {settled:.0f}"
    bench.report.holds("clients go on without their agent", alive and len(want) == 2, f"{len(want)} of 2 known, alive: {alive}", medians)
    shown = f"{levels:.2f} s" if levels is not None else "not in 10 s"
    good = levels is not None and levels <= LEVELS_BACK_WITHIN
    bench.report.holds("levels known again within 1 s of the new agent's start", good, shown)
    good = back is not None and back <= LEVELS_BACK_WITHIN
    bench.report.holds("HIGH as before within 1 s of the new agent's start", good, f"{back:.2f} s" if back is not None else "never")
