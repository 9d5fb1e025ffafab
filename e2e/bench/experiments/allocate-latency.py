import host
from report import at_most

SHOWS = "time of Allocate at the device plugin's socket"
PAPER = ""
BOUNDS = {"p99": at_most(20, " ms")}
BASELINES = ()
NEEDS = ("no gpu", "root")
SIMULATED = False


def measure():
    with host.machine() as (_folder, env):
        argv = [*host.REAL_TIME, str(host.BUILD / "bench/bench-allocate")]
        return host.output_of(argv, dict(env, BENCH_NVML=str(host.NVML)), "bench-allocate")


def run(bench):
    runs = [measure() for _ in range(bench.rounds)]
    half = f"median {host.middle(runs, 'p50_ms'):.2f} ms; {host.spread(runs, 'p99_ms')} ms"
    what = f"Allocate at the plugin's socket, {host.GPUS} GPUs, p99"
    bench.report.judge(what, host.middle(runs, "p99_ms"), BOUNDS["p99"], half)
