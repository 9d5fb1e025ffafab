"""bench-agent connects 500 clients in 100 pods of all classes on 8 GPUs, and writes their status pages itself."""

import host
from report import at_most

SHOWS = "an agent of 500 clients on 8 GPUs: its share of a core, its memory, and how soon it decides"
PAPER = ""
BOUNDS = {"idle": at_most(1, " %"), "memory": at_most(64, " MiB"), "decision": at_most(1, " ms")}
BASELINES = ()
NEEDS = ("no gpu", "root")
SIMULATED = False

# From work that comes or ends to the hold word that the agent writes for it: when two clients of one level have work,
# and when all clients have.
DECISIONS = {
    "hold": "decision to hold, p99",
    "wake": "decision who is next, p99",
    "busy_hold": "to hold, all clients have work, p99",
    "busy_wake": "who is next, all clients have work, p99",
}


def measure(seconds):
    with host.machine() as (folder, env), host.agent(folder, env) as process:
        argv = [host.BUILD / "bench/bench-agent", "--agent", process.pid, "--cgroup", host.cgroup_folder(), "--seconds", seconds]
        return host.output_of([*host.REAL_TIME, *(str(word) for word in argv)], env, "bench-agent")


def run(bench):
    runs = [measure(bench.seconds) for _ in range(bench.rounds)]
    many = f"{runs[0]['clients']} clients, {runs[0]['pods']} pods, {host.GPUS} GPUs"
    idle = host.middle(runs, "idle_percent")
    bench.report.judge(f"agent idle, {many}", idle, BOUNDS["idle"], host.spread(runs, "idle_percent"))
    bench.report.judge("its resident memory", host.middle(runs, "rss_kib") / 1024, BOUNDS["memory"])
    for name, what in DECISIONS.items():
        value = host.middle(runs, name, "p99_us") / 1e3
        half = f"median {host.middle(runs, name, 'p50_us') / 1e3:.3f} ms; {host.spread(runs, name, 'p99_us')} us"
        bench.report.judge(what, value, BOUNDS["decision"], half)
    bench.report.add("agent while all have work", f"{host.middle(runs, 'busy_percent'):.1f} %")
    bench.report.add("to hold, nobody had work for a second, median", f"{host.middle(runs, 'asleep', 'p50_us') / 1e3:.1f} ms")
