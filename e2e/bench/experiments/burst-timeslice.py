"""LOW multiplies matrices, then trains; HIGH sends bursts of 20 kernels of 175 us. There is no MPS daemon. A LOW at the
power limit lowers the clock of HIGH's kernels, too, which no scheduler can help. So each bound is judged twice: for what
HIGH sees, and for what it would see at the clock that it has alone. With less than 2 s a measurement it leaves out MPS
and what gates do alone."""

import baselines
import bursts
import plain_slices
from report import at_most

SHOWS = "latency of HIGH's bursts beside torch.mm and a training step, under time-slicing"
PAPER = ""
BOUNDS = {
    "median against alone, mm": at_most(1.10), "p99 against alone, mm": at_most(1.18),
    "median against alone, train": at_most(1.06), "p99 against alone, train": at_most(1.12),
}  # fmt: skip
BASELINES = (
    "HIGH alone", "time-slicing", "MPS", "MPS with stream priority", "Weir without hardware preemption",
    "the hardware's slices without Weir",
)  # fmt: skip
PRINTED = (plain_slices.NAME,)
NEEDS = ("gpu", "mps", "pytorch", "root")
SIMULATED = True

WORKLOADS = ("mm", "train")


def show_baselines(bench):
    with baselines.under_mps(bench.node):
        alone = bench.burst(False)
        for workload in WORKLOADS:
            results, _, _ = bursts.beside(bench, bursts.low_of(bench, workload), False, tuple(baselines.MPS_WAYS.values()))
            for name, result in zip(baselines.MPS_WAYS, results):
                bursts.show(bench, f"{name}, LOW={workload}", result, alone)
    with baselines.gates_alone(bench.node):
        for workload in WORKLOADS:
            (result,), _, _ = bursts.beside(bench, bursts.low_of(bench, workload), True)
            bursts.show(bench, f"time-slicing + Weir, gates alone, LOW={workload}", result, alone)


def run(bench):
    bench.node.stop_mps()
    if baselines.wanted(bench):
        show_baselines(bench)
    for workload in bench.part_of(WORKLOADS):
        bounds = (BOUNDS[f"{figure} against alone, {workload}"] for figure in ("median", "p99"))
        bursts.compare(bench, bursts.low_of(bench, workload), *bounds, priority=False, clocks=True, slices=True)
