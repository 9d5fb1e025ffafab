"""Applications hash their outputs: without Weir, and with it under a client that keeps the GPU full."""

from bursts import HIGH, LOW
from experiment import PROGRAMS
from watch import Watch, show_gated

SHOWS = "PyTorch eager, compiled, graphs, cuDNN, CuPy, JAX: outputs are the same bit for bit under contention"
PAPER = ""
BOUNDS = {}
BASELINES = ("the same applications without Weir",)
NEEDS = ("gpu", "mps", "pytorch", "cupy", "jax", "root")
SIMULATED = False

APPS = (("torch-eager", "torch-compile", "torch-graphs", "cudnn"), ("cupy",), ("jax",))


def app_hashes(bench, weir):
    """All applications at once, one process for each group: the clients, and all their hashes."""
    clients = []
    for group in APPS:
        env = {"TORCHINDUCTOR_CACHE_DIR": str(bench.node.folder / f"inductor-{weir}")}
        argv = ["python3", str(PROGRAMS / "apps.py"), *group]
        clients.append(bench.node.start(f"apps-{group[0]}", argv, LOW, weir, files=False, env=env))
    hashes = {}
    for client in clients:
        try:
            hashes.update(client.result(240))
        except Exception as error:
            bench.report.failed(f"{client.name}, {'with' if weir else 'without'} Weir: {error}")
    return clients, hashes


def run(bench):
    node = bench.node
    node.ensure_mps()
    _, plain = app_hashes(bench, False)
    node.ensure_agent()
    with node.running("burst", bench.burst_argv(1 << 40), HIGH, True), Watch(node) as watch:
        clients, weir = app_hashes(bench, True)
    for group in APPS:
        for app in group:
            of = [name for name in plain if name.startswith(app + "/")]
            bad = [name.split("/")[1] for name in of if plain[name] != weir.get(name)]
            good = bool(of) and not bad
            figure = f"{len(of)} outputs identical" if good else f"differ: {' '.join(bad) or 'no output'}"
            bench.report.holds(f"{app}, gated and contended, bit for bit", good, figure)
    show_gated(bench, watch, clients)
