"""Peer copies, and an all-reduce by NCCL of a process on each GPU."""

import two_gpus
from bursts import LOW
from experiment import PROGRAMS
from watch import Watch

SHOWS = "a pod of two whole GPUs computes the same bit for bit with libweir under a HIGH pod"
PAPER = ""
BOUNDS = {}
BASELINES = ("the same pod without libweir",)
NEEDS = ("gpu", "kubelet", "root", "two gpus", "pytorch")
SIMULATED = True

WHOLE = 200  # shares: two GPUs


def measure(bench):
    """A pod with two GPUs of its own, one process on each: as the plugin gives them, which is without libweir, then
    with it by hand, below somebody on the first GPU."""
    cluster, what = bench.node, "a pod of two GPUs, with libweir, gated and contended"
    argv = ["python3", str(PROGRAMS / "two.py")]
    if cluster.simulated:
        argv = ["stream-order", "--iterations", "50", "--seed", "7"]
    plain = cluster.start("whole", argv, LOW, True, files=False, env=two_gpus.NCCL, share=WHOLE).result(two_gpus.DEADLINE)
    first = {} if cluster.simulated else {"CUDA_VISIBLE_DEVICES": "0"}
    with two_gpus.high_pod(bench, weir=False, by_hand=True, env=first) as high, Watch(cluster) as watch:
        client = cluster.start("whole", argv, LOW, True, files=False, env=two_gpus.NCCL, share=WHOLE, by_hand=True)
        two_gpus.same(bench, what, plain, client.result(two_gpus.DEADLINE))
    held = watch.held(client)
    wanted = 1 if cluster.simulated else 2
    bench.report.holds(f"{what}: the agent knew it on both", len(held) >= wanted, ", ".join(held))
    bench.report.holds(f"{what}: it was held under HIGH", any(held.get(gpu, 0) for gpu in watch.held(high)), f"{held}")


def run(bench):
    with two_gpus.all_gpus(bench) as two:
        if two:
            measure(bench)
