"""HIGH copies 2 MiB to the GPU and launches a kernel of 20 us right behind, beside LOW's long kernels: with speculative
demand and without, in turn."""

import statistics
import time

import bursts

SHOWS = "demand that is shown while a copy goes before a launch: HIGH's latency and LOW's rate"
PAPER = ""
BOUNDS = {}
BASELINES = ("without speculative demand", "HIGH alone")
NEEDS = ("gpu", "mps", "root")
SIMULATED = True


ROUNDS = 3  # of each way, in turn
COPY_KIB = 2048  # 0.1 to 0.3 ms
GAPS = ["--gap-min-us", "2000", "--gap-max-us", "5000"]
OFF = {"WEIR_EARLY": "off"}
# LOW's kernel: us, and its form. A native kernel runs to its end.
STAY, LEAVE = "kernels of 1 ms that stay", "kernels of 5 ms that leave"
LOWS = {STAY: (1000, "native"), LEAVE: (5000, "persistent")}
KERNEL_US = 20


def high_of(bench, iterations, env=None):
    argv = [bench.node.program("burst"), *bench.node.sizes, "--kernels", "1", "--copy-kib", str(COPY_KIB), *GAPS]
    argv += ["--iterations", str(iterations), "--requests", "1000000", "--seconds", str(bench.seconds)]
    return bench.node.start("burst", argv, bursts.HIGH, True, env=env)


def known(bench, client):
    """The client in the agent's status, and the time of that status."""
    now = time.monotonic()
    return next((c for c in bench.node.status() if c["pid"] == client.process.pid), {}), now


def measure(bench, low, iterations, env):
    """HIGH's figures, LOW's kernels a second meanwhile, and the counters of speculative demand."""
    high = high_of(bench, iterations, env)
    high.wait_ready()
    before, begin = known(bench, low)
    time.sleep(0.9 * bench.seconds)
    (after, end), (high_status, _) = known(bench, low), known(bench, high)
    counts = f"{high_status.get('speculativeDemands', 0)} speculative, {high_status.get('speculativeDemandMisses', 0)} missed"
    rate = (after["launches"] - before["launches"]) / (end - begin)
    return high.result(), rate, f"{counts}, {1e3 * high_status.get('speculativeDemandSeconds', 0):.1f} ms"


def middle(rounds):
    figures = {name: statistics.median(high[name] for high, _, _ in rounds) for name in ("median", "p99")}
    return figures, statistics.median(low for _, low, _ in rounds)


def figure(high):
    return f"{high['median']:.0f}/{high['p99']:.0f} us"


def compare(bench, mode, low, iterations):
    length, form = LOWS[low]
    base = high_of(bench, iterations).result()
    argv = [bench.node.program("filler"), *bench.node.sizes, "--length-us", str(length), "--waves", "20"]
    ways = {"off": [], "on": []}
    with bench.node.running("filler", argv, bursts.LOW, True, env={"WEIR_FORM": form}) as client:
        for _ in range(ROUNDS):
            for way, env in (("off", OFF), ("on", {})):
                ways[way].append(measure(bench, client, iterations, env))
    (off, off_rate), (on, on_rate) = middle(ways["off"]), middle(ways["on"])
    what = f"{mode}, HIGH behind a copy, LOW={low}"
    times = f"{figure(on)}, without {figure(off)}, alone {figure(base)}; {ways['on'][-1][2]}"
    bench.report.add(f"{what}, median", f"{on['median'] / off['median']:.3f}x", baselines=times)
    rates = f"{on_rate:.1f}/s, without {off_rate:.1f}/s"
    bench.report.add(f"{what}, LOW's rate", f"{on_rate / off_rate:.3f}x", baselines=rates)


def run(bench):
    bench.node.stop_mps()
    bench.node.ensure_agent()
    argv = [bench.node.program("burst"), *bench.node.sizes, "--calibrate", "--length-us", str(KERNEL_US)]
    iterations = int(bench.node.start("calibrate", argv, bursts.HIGH, False).result())
    compare(bench, "time-slicing", STAY, iterations)
    bench.node.ensure_mps()
    for low in LOWS:
        compare(bench, "MPS", low, iterations)
