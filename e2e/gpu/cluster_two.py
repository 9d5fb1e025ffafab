"""Parts g, w and n of cluster.sh, on two GPUs or more: who is above on one does not disturb the other, and what is computed
on both, in one pod or in two, stays what it is."""

import time

import kube
from sharing import HIGH, LOW, low_of
from watch import Watch

HALF = 60  # shares of which no two are on one GPU, and beside which HIGH has room
WHOLE = 200  # two GPUs
DISTURBED = 0.03  # of the rate of who is alone on the other GPU
DEADLINE = 60  # s for a program on two GPUs
NCCL = {"NCCL_SOCKET_IFNAME": "lo", "NCCL_IB_DISABLE": "1"}  # nothing but this machine


def above(bench, **more):
    return bench.node.running("burst", bench.burst_argv(1 << 40), HIGH, **more)


def look(cluster, clients):
    """The GPU of each, how often it was held, what it launched, and when."""
    known = [cluster.client_of(client) for client in clients]
    return [(c["gpu"], c["waits"] + c["evictions"], c["launches"], time.monotonic()) for c in known]


def changes(before, after):
    """GPU to holds and launches a second in between."""
    return {gpu: (held - held0, (launches - launches0) / (at - at0))
            for (gpu, held0, launches0, at0), (_, held, launches, at) in zip(before, after)}


def separate(bench):
    """LOW pods on two GPUs, HIGH on one of them."""
    cluster, name = bench.node, "LOW pods on two GPUs, HIGH on one"
    low = [cluster.start("low", low_of(bench, "mm").argv, LOW, True, share=HALF) for _ in range(2)]
    for client in low:
        client.wait_ready()
    kube.wait_for("both to be known", 10, lambda: all(cluster.client_of(client) for client in low))
    time.sleep(1)  # the clock settles
    first = look(cluster, low)
    time.sleep(bench.seconds)
    alone = changes(first, look(cluster, low))
    with above(bench, weir=True) as high:
        gpu = kube.wait_for("HIGH to be known", 10, lambda: cluster.client_of(high))["gpu"]
        first = look(cluster, low)
        time.sleep(bench.seconds)
        beside = changes(first, look(cluster, low))
    first = look(cluster, low)
    time.sleep(bench.seconds)
    again = changes(first, look(cluster, low))
    for client in low:
        client.stop()
    for client in low:
        client.result()
    bench.report.holds("g", f"{name}: they are on two", len(beside) == 2 and gpu in beside, ", ".join(beside))
    held, rate = beside.pop(gpu)
    bench.report.holds("g", f"{name}: who is below it is held", held > 0, f"{held} times", f"{rate:.0f} launches/s, alone {alone[gpu][1]:.0f}")
    (other, (held, rate)), = beside.items()
    bench.report.holds("g", f"{name}: on the other GPU nobody is", held == 0, f"{held} times")
    # A GPU at its power limit grows slower as it grows warm: before and after.
    usual = (alone[other][1] + again[other][1]) / 2
    bench.report.at_least("g", f"{name}: the rate on the other GPU", rate / usual, 1 - DISTURBED, "x",
                          f"{rate:.0f} launches/s, alone {alone[other][1]:.0f} before, {again[other][1]:.0f} after")


def same(bench, part, what, plain, weir):
    for name, bits in plain.items():
        bench.report.holds(part, f"{what}: {name}", weir.get(name) == bits, "identical" if weir.get(name) == bits else f"{bits} / {weir.get(name)}")


def whole(bench):
    """A pod with two GPUs of its own, one process on each: as the plugin gives them, which is without libweir, then
    with it by hand, below somebody on the first GPU."""
    cluster, what = bench.node, "a pod of two GPUs, with libweir, gated and contended"
    argv = ["python3", str(bench.here / "two.py")]
    if cluster.simulated:
        argv = ["stream-order", "--iterations", "50", "--seed", "7"]
    plain = cluster.start("whole", argv, LOW, True, files=False, env=NCCL, share=WHOLE).result(DEADLINE)
    first = {} if cluster.simulated else {"CUDA_VISIBLE_DEVICES": "0"}
    with above(bench, weir=False, by_hand=True, env=first) as high, Watch(cluster) as watch:
        client = cluster.start("whole", argv, LOW, True, files=False, env=NCCL, share=WHOLE, by_hand=True)
        same(bench, "w", what, plain, client.result(DEADLINE))
    held = watch.held(client)
    wanted = 1 if cluster.simulated else 2
    bench.report.holds("w", f"{what}: the agent knew it on both", len(held) >= wanted, ", ".join(held))
    bench.report.holds("w", f"{what}: it was held below HIGH", any(held.get(gpu, 0) for gpu in watch.held(high)), f"{held}")


def all_reduce(bench):
    """Two pods with a part of a GPU each; below somebody on one of them."""
    cluster = bench.node
    if cluster.simulated:
        bench.report.skipped("n", "all-reduce of two pods: no PyTorch")
        return
    _, plain = ranks(bench, False)
    with above(bench, weir=True), Watch(cluster) as watch:
        clients, weir = ranks(bench, True)
    what = "NCCL's all-reduce of two pods, gated and contended"
    same(bench, "n", what, plain, weir)
    held = sum(sum(watch.held(client).values()) for client in clients)
    bench.report.holds("n", f"{what}: held", held > 0, f"{held} times")


def ranks(bench, weir):
    """The two, and what they found."""
    clients = []
    for rank in range(2):
        # A pod is a host to NCCL: the two see neither each other's GPU nor memory.
        env = {"RANK": str(rank), "WORLD_SIZE": "2", "MEET": f"tcp://127.0.0.1:{29500 + weir}",
               "NCCL_HOSTID": f"pod{rank}", **NCCL}
        if not weir:
            env["CUDA_VISIBLE_DEVICES"] = str(rank)
        argv = ["python3", str(bench.here / "patterns.py"), "nccl"]
        clients.append(bench.node.start(f"nccl-{rank}", argv, LOW, weir, files=False, env=env, share=HALF))
    found = {}
    for client in clients:
        found.update(client.result(DEADLINE))
    return clients, found


def on_two(part, run):
    """@run where there are two GPUs, and both are free."""
    def part_of(bench):
        if bench.node.gpus() < 2:
            bench.report.skipped(part, "this machine has one GPU")
            return
        bench.node.give_other_gpus()
        try:
            run(bench)
        finally:
            bench.node.take_other_gpus()
    return part_of


PARTS = {
    "g": ("HIGH pod on one of two GPUs", on_two("g", separate)),
    "w": ("a pod of two whole GPUs, bit for bit", on_two("w", whole)),
    "n": ("NCCL between pods on two GPUs, bit for bit", on_two("n", all_reduce)),
}
