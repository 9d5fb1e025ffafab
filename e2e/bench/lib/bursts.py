"""What all experiments share, and the latency of HIGH's bursts of kernels beside a LOW that keeps the GPU full."""

import dataclasses
import pathlib
import statistics

import plain_slices
from clock import Clock
from experiment import MPS, PROGRAMS
from servers import quantile

KERNELS = 20  # in a burst
KERNEL_US = 175
ROUNDS = 3  # of a measurement with a bound; the median counts

HIGH, LOW, TOP = "high", "low", "critical"


@dataclasses.dataclass
class Low:
    """A client that keeps the GPU full."""

    name: str
    argv: list
    unit: str
    rate: object  # function from its result to @unit a second
    warm_up: float = 0  # seconds of bursts beside it before the measurement, with Weir


@dataclasses.dataclass
class Bench:
    """What experiments get: the node, the report of the experiment that runs, and what experiments of one run share."""

    node: object
    report: object
    seconds: float  # of one measurement; sizes of the rest follow from it
    rounds: int = 1  # of experiments without a GPU
    iterations: int = 0  # of a kernel of KERNEL_US on this GPU
    kernels: dict = dataclasses.field(default_factory=dict)  # of forms.measure(): by class of inputs and name
    mode: str = MPS  # of the experiment that runs
    pool: object = None  # workers.pool_of(), of this mode
    switches_us: tuple = None  # turnarounds.switches_us()
    co_runs: list = dataclasses.field(default_factory=list)  # of sharing.co_run()
    plots: pathlib.Path = None  # a folder for figures
    parts: tuple = ()  # of experiments: the programs that they run; empty: all

    def part_of(self, names):
        """Those of @names that were asked for."""
        chosen = [name for name in names if not self.parts or name in self.parts]
        if len(chosen) < len(names):
            self.report.cut(f"only {', '.join(chosen)}")
        return chosen

    def burst_argv(self, requests, seconds=0, extra=()):
        argv = [self.node.program("burst"), *self.node.sizes, "--kernels", str(KERNELS)]
        argv += ["--iterations", str(self.iterations), "--requests", str(requests)]
        if seconds:
            argv += ["--seconds", str(seconds)]
        return [*argv, *extra]

    def burst(self, weir, extra=(), level=HIGH):
        """A measured burst client: about a second for 90 requests alone, at least 200 of them."""
        requests = max(200, int(90 * self.seconds))
        argv = self.burst_argv(requests, seconds=3 * self.seconds, extra=extra)
        return self.node.start("burst", argv, level, weir).result()

    def low_argv(self, workloads, seconds=0):
        argv = ["python3", str(PROGRAMS / "low.py"), workloads]
        return [*argv, "--seconds", str(seconds)] if seconds else argv

    def torch_low(self, workload):
        return Low(workload, self.low_argv(workload), "it", lambda result: result[workload]["rate"])

    def prepare(self):
        argv = [self.node.program("burst"), *self.node.sizes, "--calibrate", "--length-us", str(KERNEL_US)]
        self.iterations = int(self.node.start("calibrate", argv, HIGH, False).result())
        print(f"{KERNEL_US} us are {self.iterations} iterations", flush=True)


def low_of(bench, workload):
    """PyTorch, or filler on the simulated GPU."""
    if not bench.node.simulated:
        return bench.torch_low(workload)
    return Low(workload, [bench.node.program("filler"), "--depth", "4"], "kernels", lambda result: result["kernels_per_second"])


def figures(result):
    return f"{result['median']:.0f}/{result['p99']:.0f} us (n={result['requests']})"


def ratios(result, alone):
    return result["median"] / alone["median"], result["p99"] / alone["p99"]


def beside(bench, low, weir, extras=((),)):
    """Bursts beside a LOW, once for each options of @extras. Returns HIGH's results, LOW's rate, and with Weir LOW's
    status."""
    known = {}
    with bench.node.running(f"low-{low.name}", low.argv, LOW, weir) as client:
        if weir and low.warm_up:
            bench.node.start("warm-up", bench.burst_argv(1 << 40, low.warm_up), HIGH, weir).result()
        results = [bench.burst(weir, extra) for extra in extras]
        if weir:
            known = next((c for c in bench.node.status() if c["pid"] == client.process.pid), {})
    return results, low.rate(client.result()), known


def middle(results):
    """The median of each figure of several measurements; but p99 of all requests, where each is known."""
    figures_of = ("median", "p99", *(("gpu_median",) if "gpu_median" in results[0] else ()))
    found = {figure: statistics.median(r[figure] for r in results) for figure in figures_of}
    if all("each" in r for r in results):
        found["p99"] = quantile([us for r in results for us, _ in r["each"]], 0.99)
    return {**found, "requests": sum(r["requests"] for r in results)}


def show(bench, what, result, alone):
    median, p99 = ratios(result, alone)
    bench.report.add(what, f"{median:.3f}x, p99 {p99:.2f}x", baselines=figures(result))


def slowed_us(result, alone):
    """How much longer HIGH's kernels took on the GPU than alone because a LOW at the power limit lowers the clock, also while
    it stands still: by --timed, but no more than the clocks explain. None: not known."""
    if not result.get("clock") or not alone.get("clock") or "gpu_median" not in result:
        return None
    by_clock = alone["gpu_median"] * (alone["clock"] / result["clock"] - 1)
    return max(0, min(result["gpu_median"] - alone["gpu_median"], by_clock))


def speeds(result, alone):
    if "gpu_median" not in result:
        return ""
    text = f"kernels {result['gpu_median']:.0f} us on the GPU, alone {alone['gpu_median']:.0f}"
    return text + (f"; {result['clock']:.0f} MHz, alone {alone['clock']:.0f}" if result.get("clock") else "")


def at_speed(result, alone):
    """HIGH's figures if its kernels had taken as long as alone. A lower clock makes all kernels of a request longer, a pause
    one of them: so each request would have been shorter by what its median kernel took longer, times its kernels."""
    usual = statistics.median(kernel for _, kernel in alone["each"])
    us = [time - result["kernels"] * max(0, kernel - usual) for time, kernel in result["each"]]
    each = [(time, kernel) for time, (_, kernel) in zip(us, result["each"])]
    return {"median": statistics.median(us), "p99": quantile(us, 0.99), "requests": result["requests"], "each": each}


def bounded(bench, what, value, bound, baselines=""):
    if bound:
        bench.report.judge(what, value, bound, baselines)
    else:
        bench.report.add(what, f"{value:.3f}x", baselines=baselines)


def show_plain_slices(bench, low, timed, alone):
    """What the hardware's slices give HIGH without Weir."""
    name = f"{plain_slices.NAME}, LOW={low.name}"
    with plain_slices.plain(bench.node):
        rounds, rate, _ = beside(bench, low, False, (timed,) * ROUNDS)
    show(bench, name, middle(rounds), alone)
    if timed:
        show(bench, f"{name}, at the clock of HIGH alone", middle([at_speed(r, alone) for r in rounds]), alone)
    bench.report.add(f"LOW's rate, {name}", f"{rate:.1f} {low.unit}/s")


def compare(bench, low, median_bound=None, p99_bound=None, priority=True, clocks=False, slices=False):
    """HIGH alone, beside LOW without Weir, the same with stream priority, with Weir; only the last has bounds. @clocks: it
    also has them at the clock of HIGH alone. @slices: the hardware's slices without Weir are one more baseline."""
    mode = "MPS" if bench.node.mps or bench.node.simulated else "time-slicing"
    timed = ("--timed",) if clocks else ()
    with Clock(bench.node.simulated) as clock:
        alone = bench.burst(False, timed)
    alone["clock"] = clock.median
    bench.report.add(f"{mode}, HIGH alone", "1.000x", baselines=figures(alone))
    extras = (timed, (*timed, "--priority")) if priority else (timed,)
    names = (f"{mode}, LOW={low.name}", f"{mode} + stream priority, LOW={low.name}")
    results, plain_rate, _ = beside(bench, low, False, extras)
    for name, result in zip(names, results):
        show(bench, name, result, alone)
    bench.node.ensure_agent()
    if slices:
        show_plain_slices(bench, low, timed, alone)
    with Clock(bench.node.simulated) as clock:
        rounds, weir_rate, known = beside(bench, low, True, (timed,) * (ROUNDS if median_bound or p99_bound else 1))
    weir = {**middle(rounds), "clock": clock.median}
    median, p99 = ratios(weir, alone)
    name = f"{mode} + Weir, LOW={low.name}"
    each = ", ".join(f"{ratios(r, alone)[0]:.3f}x" for r in rounds)
    bounded(bench, name + ", median", median, median_bound, f"{figures(weir)}, median of {each}")
    bounded(bench, name + ", p99", p99, p99_bound)
    if clocks:
        median, p99 = ratios(middle([at_speed(r, alone) for r in rounds]), alone)
        bounded(bench, name + ", at the clock of HIGH alone, median", median, median_bound, speeds(weir, alone))
        bounded(bench, name + ", at the clock of HIGH alone, p99", p99, p99_bound)
    rates = f"{weir_rate:.1f} {low.unit}/s, {known.get('evictions', 0)} evictions"
    bench.report.add(name + ", LOW's rate", rates, baselines=f"plain {plain_rate:.1f} {low.unit}/s")
