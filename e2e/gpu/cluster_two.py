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


class Span:
    """What clients do for a while: of each its GPU, how often it was held, and how fast it was."""

    def __init__(self, bench, clients):
        self.first = self.look(bench.node, clients)
        time.sleep(bench.seconds)
        self.last = self.look(bench.node, clients)

    @staticmethod
    def look(cluster, clients):
        known = [cluster.client_of(client) for client in clients]
        return [(c["gpu"], c["waits"] + c["evictions"], c["launches"], time.monotonic()) for c in known]

    def held(self):
        return {gpu: held - before for (gpu, before, _, _), (_, held, _, _) in zip(self.first, self.last)}

    def rates(self, results):
        """Of each GPU, steps a second of @results. Who issues many steps at once says when they were done; launches are
        seen when they are issued."""
        return {first[0]: self.rate(result, first, last) for result, first, last in zip(results, self.first, self.last)}

    @staticmethod
    def rate(result, first, last):
        (_, _, before, begin), (_, _, launches, end) = first, last
        if "mm" not in result:
            return (launches - before) / (end - begin)
        inside = [window for window in result["mm"]["windows"] if begin <= window[0] and window[1] <= end]
        return len(inside) * result["mm"]["steps"] / (inside[-1][1] - inside[0][0])


def separate(bench):
    """LOW pods on two GPUs, HIGH on one of them."""
    cluster, name = bench.node, "LOW pods on two GPUs, HIGH on one"
    low = [cluster.start("low", low_of(bench, "mm").argv, LOW, True, share=HALF) for _ in range(2)]
    for client in low:
        client.wait_ready()
    kube.wait_for("both to be known", 10, lambda: all(cluster.client_of(client) for client in low))
    time.sleep(1)  # the clock settles
    alone = Span(bench, low)
    with above(bench, weir=True) as high:
        gpu = kube.wait_for("HIGH to be known", 10, lambda: cluster.client_of(high))["gpu"]
        beside = Span(bench, low)
    again = Span(bench, low)
    for client in low:
        client.stop()
    results = [client.result() for client in low]
    alone, rates, again = (span.rates(results) for span in (alone, beside, again))
    held = beside.held()
    bench.report.holds("g", f"{name}: they are on two", len(held) == 2 and gpu in held, ", ".join(held))
    bench.report.holds("g", f"{name}: who is below it is held", held[gpu] > 0, f"{held[gpu]} times", f"{rates[gpu]:.0f} steps/s, alone {alone[gpu]:.0f}")
    other = next(other for other in held if other != gpu)
    bench.report.holds("g", f"{name}: on the other GPU nobody is", held[other] == 0, f"{held[other]} times")
    # A GPU at its power limit grows slower as it grows warm: before and after.
    usual = (alone[other] + again[other]) / 2
    bench.report.at_least("g", f"{name}: the rate on the other GPU", rates[other] / usual, 1 - DISTURBED, "x",
                          f"{rates[other]:.0f} steps/s, alone {alone[other]:.0f} before, {again[other]:.0f} after")


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
