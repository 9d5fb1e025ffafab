"""bench-compile asks the agent's compile service for all kernels of the papers' modules, twice."""

import statistics

from bursts import LOW
from report import at_most

SHOWS = "time of the first use of a module: compiled, and from the cache"
PAPER = ""
BOUNDS = {"from the cache": at_most(2, " ms")}
BASELINES = ()
NEEDS = ("gpu", "root")
SIMULATED = True


def run(bench):
    node = bench.node
    node.stop_mps()
    node.renew_agent()
    env = {"WEIR_SOCKET": str(node.socket)}
    client = node.start("bench-compile", [node.bench("bench-compile"), *node.sizes], LOW, False, files=False, env=env)
    client.result(300)
    rows = client.json_lines()
    cold, cached = [row["cold_ms"] for row in rows], [row["cached_ms"] for row in rows]
    slowest = max(rows, key=lambda row: row["cold_ms"])
    bench.report.add(
        "first use of a module, cold", f"median {statistics.median(cold):.0f} ms, worst {max(cold):.0f} ms",
        baselines=f"{len(rows)} modules, {sum(row['kernels'] for row in rows)} kernels; {slowest['module']}",
    )
    bench.report.judge("first use of a module, from the cache, worst", max(cached), BOUNDS["from the cache"])
    load = [row["load_ms"] for row in rows]
    bench.report.add("loading its objects", f"median {statistics.median(load):.1f} ms, worst {max(load):.1f} ms")
