from bursts import HIGH, LOW
from experiment import PROGRAMS

SHOWS = "a pod at its limit of memory gets PyTorch's own error and lives; its neighbour does not notice"
PAPER = ""
BOUNDS = {}
BASELINES = ()
NEEDS = ("gpu", "kubelet", "root", "pytorch")
SIMULATED = True

LIMIT = 4 << 30  # of the pod
CONTEXT = 1 << 30  # most that a context and PyTorch's rounding may take of it


def run(bench):
    cluster = bench.node
    with cluster.running("neighbour", bench.burst_argv(1 << 40), HIGH, True) as neighbour:
        before = cluster.client_of(neighbour)["launches"]
        if cluster.simulated:
            client = cluster.start("limit", ["memory-storm", "--processes", "4", "--kills", "8"], LOW, True, files=False, memory="96Mi")
            good, figure = "output" in client.result(), "memory-storm: never over, never under"
        else:
            argv = ["python3", str(PROGRAMS / "patterns.py"), "limit"]
            client = cluster.start("limit", argv, LOW, True, files=False, memory="4Gi")
            got = client.result()
            good = bool(got["error"]) and LIMIT - CONTEXT <= got["held"] <= LIMIT and got["works"] and got["total"] <= LIMIT
            figure = f"{got['held'] / 2**30:.2f} GiB of 4, then: {got['error'][:60]}; works on: {got['works']}"
        whole = neighbour.process.poll() is None and cluster.client_of(neighbour)["launches"] > before
    bench.report.holds("a pod at its limit gets its error and lives", good, figure)
    right = neighbour.process.poll() == 0
    bench.report.holds("its neighbour does not notice", whole and right, "all values right" if right else neighbour.last_words())
