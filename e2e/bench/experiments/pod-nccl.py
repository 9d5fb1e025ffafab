import two_gpus
from bursts import LOW
from experiment import PROGRAMS
from watch import Watch

SHOWS = "an all-reduce by NCCL between two pods with a part of a GPU each is the same bit for bit"
PAPER = ""
BOUNDS = {}
BASELINES = ("the same pods without Weir",)
NEEDS = ("gpu", "kubelet", "root", "two gpus", "pytorch")
SIMULATED = True


def measure(bench):
    """Two pods with a part of a GPU each, under a HIGH pod on one of the GPUs."""
    cluster = bench.node
    if cluster.simulated:
        bench.report.skipped("all-reduce of two pods: no PyTorch")
        return
    _, plain = ranks(bench, False)
    with two_gpus.high_pod(bench, weir=True), Watch(cluster) as watch:
        clients, weir = ranks(bench, True)
    what = "NCCL's all-reduce of two pods, gated and contended"
    two_gpus.same(bench, what, plain, weir)
    held = sum(sum(watch.held(client).values()) for client in clients)
    bench.report.holds(f"{what}: held", held > 0, f"{held} times")


def ranks(bench, weir):
    """The two clients, and their hashes."""
    clients = []
    for rank in range(2):
        # A pod is a host to NCCL: the two see neither each other's GPU nor memory.
        env = {"RANK": str(rank), "WORLD_SIZE": "2", "MEET": f"tcp://127.0.0.1:{29500 + weir}",
               "NCCL_HOSTID": f"pod{rank}", **two_gpus.NCCL}
        if not weir:
            env["CUDA_VISIBLE_DEVICES"] = str(rank)
        argv = ["python3", str(PROGRAMS / "patterns.py"), "nccl"]
        clients.append(bench.node.start(f"nccl-{rank}", argv, LOW, weir, files=False, env=env, share=two_gpus.HALF))
    found = {}
    for client in clients:
        found.update(client.result(two_gpus.DEADLINE))
    return clients, found


def run(bench):
    with two_gpus.all_gpus(bench) as two:
        if two:
            measure(bench)
