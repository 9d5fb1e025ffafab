"""What frameworks do with memory and graphs: VMM growth, expandable segments, cudaMallocAsync, graphs in one pool."""

from bursts import HIGH, LOW
from experiment import PROGRAMS
from watch import Watch

SHOWS = "patterns of frameworks in pods: outputs are the same bit for bit under contention"
PAPER = ""
BOUNDS = {}
BASELINES = ("the same pods without Weir",)
NEEDS = ("gpu", "kubelet", "root", "pytorch")
SIMULATED = True

APPS = ("vmm", "expandable", "pools", "graphs")


def run_patterns(bench, weir):
    """All patterns at once: the clients, and their hashes."""
    cluster, clients, hashes = bench.node, [], {}
    for name in APPS:
        if cluster.simulated:
            argv = ["stream-order", "--iterations", "50", "--seed", str(1 + APPS.index(name))]
        else:
            argv = ["python3", str(PROGRAMS / "patterns.py"), name]
        share = 15  # so that there is room for HIGH
        clients.append(cluster.start(f"pattern-{name}", argv, LOW, weir, files=False, share=share))
    for name, client in zip(APPS, clients):
        try:
            hashes[name] = client.result(90)
        except Exception as error:
            bench.report.failed(f"{name}, {'with' if weir else 'without'} Weir: {error}"[:300])
    return clients, hashes


def run(bench):
    cluster = bench.node
    _, plain = run_patterns(bench, False)
    with cluster.running("burst", bench.burst_argv(1 << 40), HIGH, True), Watch(cluster) as watch:
        clients, weir = run_patterns(bench, True)
    for name in APPS:
        good = name in plain and plain[name] == weir.get(name)
        bench.report.holds(f"{name}, gated and contended, bit for bit", good, "identical" if good else f"{plain.get(name)} / {weir.get(name)}")
    held = {client.name: sum(watch.held(client).values()) for client in clients}
    bench.report.holds("each was held", all(held.values()), ", ".join(f"{name} {n}" for name, n in held.items()))
