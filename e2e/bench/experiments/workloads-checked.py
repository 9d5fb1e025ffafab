"""Our workloads check every value that they compute. They run under a client that keeps the GPU full."""

import time

from bursts import HIGH, LOW
from watch import Watch, show_gated

SHOWS = "our workloads compute the right values while a client of a higher level stops them"
PAPER = ""
BOUNDS = {}
BASELINES = ()
NEEDS = ("gpu", "mps", "root")
SIMULATED = True


def run(bench):
    node = bench.node
    node.ensure_mps()
    node.ensure_agent()
    programs = {
        "vector-add": [], "matrix-multiply": [], "reduction": [],
        "long-block": [], "stream-order": ["--seed", str(int(time.time()))], "tensor": ["--class", "trivial"],
    }
    clients = []
    with node.running("burst", bench.burst_argv(1 << 40), HIGH, True), Watch(node) as watch:
        for name, extra in programs.items():
            argv = [node.program(name), *node.sizes, "--seconds", str(bench.seconds), *extra]
            client = node.start(name, argv, LOW, True)
            clients.append(client)
            try:
                bench.report.holds(f"{name} under a busy client", True, client.result()["output"])
            except Exception as error:
                bench.report.holds(f"{name} under a busy client", False, str(error))
    show_gated(bench, watch, clients)
