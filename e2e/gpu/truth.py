"""Parts w, h and j: results stay what they are, and clients outlive their agent."""

import statistics
import time

from sharing import HIGH, LOW
from watch import COUNTERS, Watch

APPS = (("torch-eager", "torch-compile", "torch-graphs", "cudnn"), ("cupy",), ("jax",))
LEVELS_BACK_WITHIN = 1.0  # s
AS_BEFORE = 1.15  # HIGH's median is back when it is within this of what it was
AGENT_AWAY = 2.0  # s
WINDOW = 20  # requests whose median counts as back


def show_gated(bench, part, watch, clients):
    """A result says little about a client that was never held, before a kernel or inside one."""
    seen = {client.name: watch.counters(client) for client in clients}
    good = all(sum(watch.held(client).values()) for client in clients)
    figure = ", ".join(
        f"{name} " + "/".join(str(counters[key]) for key in COUNTERS) for name, counters in seen.items())
    bench.report.holds(part, f"each was held: {'/'.join(COUNTERS)}", good, figure)


def part_w(bench):
    """Our own workloads, which check every value, gated below a busy client."""
    node = bench.node
    node.ensure_mps()
    node.ensure_agent()
    programs = {
        "vector-add": [], "matrix-multiply": [], "reduction": [],
        "long-block": [], "stream-order": ["--seed", str(int(time.time()))],
    }
    clients = []
    with node.running("burst", bench.burst_argv(1 << 40), HIGH, True), Watch(node) as watch:
        for name, extra in programs.items():
            argv = [node.program(name), *node.sizes, "--seconds", str(bench.seconds), *extra]
            client = node.start(name, argv, LOW, True)
            clients.append(client)
            try:
                bench.report.holds("w", f"{name} below a busy client", True, client.result()["output"])
            except Exception as error:
                bench.report.holds("w", f"{name} below a busy client", False, str(error))
    show_gated(bench, "w", watch, clients)


def app_hashes(bench, weir):
    """All applications at once, one process for each group: the clients, and all their hashes."""
    clients = []
    for group in APPS:
        env = {"TORCHINDUCTOR_CACHE_DIR": str(bench.node.folder / f"inductor-{weir}")}
        argv = ["python3", str(bench.here / "apps.py"), *group]
        clients.append(bench.node.start(f"apps-{group[0]}", argv, LOW, weir, files=False, env=env))
    hashes = {}
    for client in clients:
        try:
            hashes.update(client.result(240))
        except Exception as error:
            bench.report.failed("h", f"{client.name}, {'with' if weir else 'without'} Weir: {error}")
    return clients, hashes


def part_h(bench):
    node = bench.node
    node.ensure_mps()
    _, plain = app_hashes(bench, False)
    node.ensure_agent()
    with node.running("burst", bench.burst_argv(1 << 40), HIGH, True), Watch(node) as watch:
        clients, weir = app_hashes(bench, True)
    for group in APPS:
        for app in group:
            of = [name for name in plain if name.startswith(app + "/")]
            bad = [name.split("/")[1] for name in of if plain[name] != weir.get(name)]
            good = bool(of) and not bad
            figure = f"{len(of)} outputs identical" if good else f"differ: {' '.join(bad) or 'no output'}"
            bench.report.holds("h", f"{app}, gated and contended, bit for bit", good, figure)
    show_gated(bench, "h", watch, clients)


def requests(path):
    """(time of the end, us) of each request so far."""
    pairs = []
    for line in path.read_text().splitlines():
        fields = line.split()
        if len(fields) == 2:  # the last line may be half written
            pairs.append((float(fields[0]), float(fields[1])))
    return pairs


def median_between(log, begin, end):
    values = [us for at, us in log if begin <= at < end]
    return statistics.median(values) if values else float("inf")


def wait_levels(node, want, timeout):
    """Seconds until the agent knows all of @want, pid to level, or None."""
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


def part_j(bench):
    node = bench.node
    node.ensure_mps()
    node.ensure_agent()
    log_path = node.folder / "requests.log"
    log_path.touch()
    log_path.chmod(0o666)
    argv = bench.burst_argv(1 << 40, extra=("--log", str(log_path)))
    with node.running("low-mm", bench.low_argv("mm"), LOW, True) as low, node.running("burst", argv, HIGH, True) as high:
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
    bench.report.holds("j", "clients go on without their agent", alive and len(want) == 2, f"{len(want)} of 2 known, alive: {alive}", medians)
    shown = f"{levels:.2f} s" if levels is not None else "not in 10 s"
    good = levels is not None and levels <= LEVELS_BACK_WITHIN
    bench.report.holds("j", "levels known again within 1 s of the new agent's start", good, shown)
    good = back is not None and back <= LEVELS_BACK_WITHIN
    bench.report.holds("j", "HIGH as before within 1 s of the new agent's start", good, f"{back:.2f} s" if back is not None else "never")
