"""Parts c, d and e: the latency of HIGH's bursts beside a LOW that keeps the GPU full."""

import dataclasses
import statistics

KERNELS = 20  # in a burst
KERNEL_US = 175

HIGH, LOW, TOP = "high", "low", "critical"


@dataclasses.dataclass
class Bench:
    """What all parts need: the node, the report, and the sizes that were calibrated for this GPU."""

    node: object
    report: object
    here: object  # where our scripts are
    seconds: float  # of one measurement; sizes of the rest follow from it
    iterations: int = 0

    def burst_argv(self, requests, seconds=0, extra=()):
        argv = [self.node.program("burst"), "--gpu", "--kernels", str(KERNELS)]
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
        argv = ["python3", str(self.here / "low.py"), workloads]
        return [*argv, "--seconds", str(seconds)] if seconds else argv

    def calibrate(self):
        argv = [self.node.program("burst"), "--gpu", "--calibrate", "--length-us", str(KERNEL_US)]
        self.iterations = int(self.node.start("calibrate", argv, HIGH, False).result())


def figures(result):
    return f"{result['median']:.0f}/{result['p99']:.0f} us (n={result['requests']})"


def ratios(result, alone):
    return result["median"] / alone["median"], result["p99"] / alone["p99"]


def beside(bench, workload, weir, extras=((),)):
    """Bursts beside a LOW, one for each of @extras; and LOW's rate meanwhile."""
    with bench.node.running(f"low-{workload}", bench.low_argv(workload), LOW, weir) as low:
        results = [bench.burst(weir, extra) for extra in extras]
    return results, low.result()[workload]["rate"]


def show(bench, part, what, result, alone):
    median, p99 = ratios(result, alone)
    bench.report.add(part, what, f"{median:.3f}x, p99 {p99:.2f}x", baselines=figures(result))


def compare(bench, part, workload, limit, p99_limit=None, priority=True):
    """Alone, plain, plain with stream priority, Weir; the last one has bounds."""
    mode = "MPS" if bench.node.mps else "time-slicing"
    with bench.node.sm_clock() as clock_alone:
        alone = bench.burst(False)
    bench.report.add(part, f"{mode}, HIGH alone", "1.000x", baselines=figures(alone))
    extras = ((), ("--priority",)) if priority else ((),)
    names = (f"{mode}, LOW={workload}", f"{mode} + stream priority, LOW={workload}")
    results, plain_rate = beside(bench, workload, False, extras)
    for name, result in zip(names, results):
        show(bench, part, name, result, alone)
    bench.node.ensure_agent()
    with bench.node.sm_clock() as clock:
        (weir,), weir_rate = beside(bench, workload, True)
    median, p99 = ratios(weir, alone)
    name = f"{mode} + Weir, LOW={workload}"
    bench.report.at_most(part, name + ", median", median, limit, baselines=figures(weir))
    if p99_limit:
        bench.report.at_most(part, name + ", p99", p99, p99_limit)
    else:
        bench.report.add(part, name + ", p99", f"{p99:.2f}x")
    # A LOW at the power limit slows HIGH down even while it stands still.
    clocks = [statistics.median(samples) for samples in (clock, clock_alone) if samples]
    bench.report.add(part, name + ", SM clock", " MHz, alone ".join(f"{mhz:.0f}" for mhz in clocks) + " MHz")
    bench.report.add(part, name + ", LOW's rate", f"{weir_rate:.1f} it/s", baselines=f"plain {plain_rate:.1f} it/s")


def part_c(bench):
    bench.node.ensure_mps()
    compare(bench, "c", "mm", 1.35)


def part_d(bench):
    bench.node.ensure_mps()
    compare(bench, "d", "train", 1.06, 1.15)


def part_e(bench):
    bench.node.stop_mps()
    compare(bench, "e", "mm", 1.40, priority=False)
    compare(bench, "e", "train", 1.15, priority=False)
