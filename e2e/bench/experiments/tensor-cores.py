"""Kernels for tensor cores (mbarriers, bulk copies, TMA, wgmma) in the form that leaves at a block's end."""

from bursts import LOW

SHOWS = "kernels for tensor cores in persistent: right results under evictions, what they cost, and how soon they leave"
PAPER = ""
BOUNDS = {}
BASELINES = ("the same kernels without a form",)
NEEDS = ("gpu",)
SIMULATED = True

KERNELS = 4
TRIALS = 50  # evictions of each variant
LIMIT_US = 100  # libweir takes the cheapest variant that leaves within this time, if one does
FEW = 10  # evictions, too few for a p99


def best(kernel):
    """The cheapest variant that leaves in time, or the cheapest of all."""
    timed = [v for v in kernel["forms"] if v.get("evictions", 0) >= FEW and v["delay_us"]["p99"] <= LIMIT_US]
    return min(timed or kernel["forms"], key=lambda v: v["ratio"])


def show(bench, input_class):
    node = bench.node
    argv = [node.bench("bench-tensor"), *node.sizes, "--form", "persistent", "--check", "--class", input_class]
    argv += ["--trials", str(2 if node.simulated else TRIALS)]
    client = node.start("bench-tensor", argv, LOW, False, files=False)
    client.result(240)
    kernels = client.json_lines()
    bench.report.holds(f"{input_class} inputs: all results right", len(kernels) == KERNELS, f"{len(kernels)} kernels")
    for kernel in kernels:
        variant = best(kernel)
        figure = f"{variant['ratio']:.3f}x of {kernel['native_us']:.0f} us, blocks of {kernel['block_us']:.0f} us"
        delay = variant.get("delay_us")
        left = f"left within {delay['p50']:.0f}/{delay['p99']:.0f} us" if delay else "not evicted"
        bench.report.add(f"{kernel['kernel']}, {input_class} inputs", figure, baselines=f"{left}; tickets of {variant['parts']}")


def run(bench):
    bench.node.stop_mps()
    for input_class in ("trivial",) if bench.node.simulated else ("small", "large"):
        show(bench, input_class)
