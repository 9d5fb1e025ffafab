"""LOW multiplies matrices, then trains; HIGH sends bursts of 20 kernels of 175 us. There is no MPS daemon. A LOW at the
power limit lowers the clock of HIGH's kernels, too, which no scheduler can help. So each bound is judged twice: for what
HIGH sees, and for what it would see at the clock that it has alone. With less than 2 s a measurement it leaves out what
gates do alone."""

import bursts
import plain_slices
from report import at_most

SHOWS = "latency of HIGH's bursts beside torch.mm and a training step, under time-slicing"
PAPER = ""
BOUNDS = {
    "median against alone, mm": at_most(1.10), "p99 against alone, mm": at_most(1.18),
    "median against alone, train": at_most(1.06), "p99 against alone, train": at_most(1.12),
}  # fmt: skip
BASELINES = ("HIGH alone", "time-slicing", "Weir without hardware preemption", "the hardware's slices without Weir")
PRINTED = (plain_slices.NAME,)
NEEDS = ("gpu", "pytorch", "root")
SIMULATED = True

WORKLOADS = ("mm", "train")
SHORT = 2  # seconds a measurement


def gates_alone(bench):
    """Without the hardware's help, as it is on drivers where the self-test fails."""
    node, before = bench.node, bench.node.scheduling
    node.stop_agent()
    try:
        node.scheduling = before + "hardwarePreemption: false\n"
        node.ensure_agent()
        alone = bench.burst(False)
        for workload in WORKLOADS:
            (result,), _, _ = bursts.beside(bench, bursts.low_of(bench, workload), True)
            bursts.show(bench, f"time-slicing + Weir, gates alone, LOW={workload}", result, alone)
    finally:
        node.stop_agent()
        node.scheduling = before


def run(bench):
    bench.node.stop_mps()
    if bench.seconds < SHORT and not bench.node.simulated:
        bench.report.cut("without the gates alone")
    else:
        gates_alone(bench)
    for workload in bench.part_of(WORKLOADS):
        bounds = (BOUNDS[f"{figure} against alone, {workload}"] for figure in ("median", "p99"))
        bursts.compare(bench, bursts.low_of(bench, workload), *bounds, priority=False, clocks=True, slices=True)
