"""LOW pods on two GPUs, HIGH on one of them."""

import time

import bursts
import kube
import two_gpus
from bursts import LOW
from report import at_least

SHOWS = "a HIGH pod on one of two GPUs holds the LOW pod there and disturbs nobody on the other"
PAPER = ""
BOUNDS = {"rate on the other GPU": at_least(0.97, "x")}
BASELINES = ("the same LOW pods alone, before and after",)
NEEDS = ("gpu", "kubelet", "root", "two gpus", "pytorch")
SIMULATED = True


class Span:
    """Looks at clients before and after a while: the GPU of each, how often it was held, how fast it was."""

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
        """GPU to steps a second. PyTorch issues many steps at once, so its own @results say when they ended; of other
        clients the agent's count of launches will do."""
        return {first[0]: self.rate(result, first, last) for result, first, last in zip(results, self.first, self.last)}

    @staticmethod
    def rate(result, first, last):
        (_, _, before, begin), (_, _, launches, end) = first, last
        if "mm" not in result:
            return (launches - before) / (end - begin)
        inside = [window for window in result["mm"]["windows"] if begin <= window[0] and window[1] <= end]
        return len(inside) * result["mm"]["steps"] / (inside[-1][1] - inside[0][0])


def measure(bench):
    cluster, name = bench.node, "LOW pods on two GPUs, HIGH on one"
    low = [cluster.start("low", bursts.low_of(bench, "mm").argv, LOW, True, share=two_gpus.HALF) for _ in range(2)]
    for client in low:
        client.wait_ready()
    kube.wait_for("both to be known", 10, lambda: all(cluster.client_of(client) for client in low))
    time.sleep(1)  # the clock settles
    alone = Span(bench, low)
    with two_gpus.high_pod(bench, weir=True) as high:
        gpu = kube.wait_for("HIGH to be known", 10, lambda: cluster.client_of(high))["gpu"]
        beside = Span(bench, low)
    again = Span(bench, low)
    for client in low:
        client.stop()
    results = [client.result() for client in low]
    alone, rates, again = (span.rates(results) for span in (alone, beside, again))
    held = beside.held()
    bench.report.holds(f"{name}: they are on two", len(held) == 2 and gpu in held, ", ".join(held))
    bench.report.holds(f"{name}: the LOW pod on HIGH's GPU is held", held[gpu] > 0, f"{held[gpu]} times", f"{rates[gpu]:.0f} steps/s, alone {alone[gpu]:.0f}")
    other = next(other for other in held if other != gpu)
    bench.report.holds(f"{name}: the other LOW pod is not held", held[other] == 0, f"{held[other]} times")
    # A GPU at its power limit slows down as it warms up: hence the mean of before and after.
    usual = (alone[other] + again[other]) / 2
    bench.report.judge(f"{name}: the rate on the other GPU", rates[other] / usual, BOUNDS["rate on the other GPU"],
                       f"{rates[other]:.0f} steps/s, alone {alone[other]:.0f} before, {again[other]:.0f} after")


def run(bench):
    with two_gpus.all_gpus(bench) as two:
        if two:
            measure(bench)
