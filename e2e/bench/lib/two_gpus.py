"""What the experiments on two GPUs share."""

import contextlib

from bursts import HIGH

HALF = 60  # shares: two such pods do not fit on one GPU, and HIGH has room beside one
DEADLINE = 60  # s for a program on two GPUs
NCCL = {"NCCL_SOCKET_IFNAME": "lo", "NCCL_IB_DISABLE": "1"}  # nothing but this machine


def high_pod(bench, **more):
    """A HIGH pod that keeps its GPU full."""
    return bench.node.running("burst", bench.burst_argv(1 << 40), HIGH, **more)


def same(bench, what, plain, weir):
    for name, bits in plain.items():
        bench.report.holds(f"{what}: {name}", weir.get(name) == bits, "identical" if weir.get(name) == bits else f"{bits} / {weir.get(name)}")


@contextlib.contextmanager
def all_gpus(bench):
    """Frees the GPUs that cluster-install has taken; yields whether there are two."""
    if bench.node.gpus() < 2:
        bench.report.skipped("this machine has one GPU")
        yield False
        return
    bench.node.give_other_gpus()
    try:
        yield True
    finally:
        bench.node.take_other_gpus()
