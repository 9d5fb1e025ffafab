#!/usr/bin/env python3
"""What Weir costs a node, and how soon it decides, on simulated GPUs: `make bench`.

Usage: node.py [--only a,b] [--rounds N] [--seconds S] [--results FILE]. Needs root. Agent, plugin, kubelet and measuring
programs run with real-time priority, so that it is they that are measured and not what else the machine does."""

import argparse
import contextlib
import json
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "e2e/gpu"))
from report import Report, append  # noqa: E402

BUILD = ROOT / os.environ.get("B", "build")
GPUS = 8
REAL_TIME = ("chrt", "-f", "1")
NVML = BUILD / "simcuda/libnvidia-ml.so.1"
CONFIG = """socket: {folder}/run/agent.sock
stateDir: {folder}/state
control: {{socket: {folder}/control.sock}}
metrics: {{address: ""}}
logLevel: error
scheduling: {{aging: never}}
nvml: {nvml}
"""


def output_of(argv, env, what, seconds=500):
    done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=seconds)
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        raise RuntimeError(f"{what}: {(done.stderr.strip() or 'nothing is said').splitlines()[-1]}")
    return json.loads(lines[-1])


def cgroup_folder():
    """Where pods' cgroups can be: the one hierarchy of v2, or one of v1 that asks for no settings."""
    root = pathlib.Path("/sys/fs/cgroup")
    return (root if (root / "cgroup.procs").exists() else root / "pids") / "weir-bench-agent"


@contextlib.contextmanager
def machine():
    """A folder with simulated GPUs, and the environment of programs on them."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="weir-bench-"))
    (folder / "sim").mkdir(mode=0o777)
    env = dict(os.environ, WEIR_SIM_DIR=str(folder / "sim"), WEIR_SIM_GPUS=str(GPUS))
    env.update(LD_LIBRARY_PATH=str(BUILD / "simcuda"), WEIR_SOCKET=str(folder / "run/agent.sock"))
    try:
        yield folder, env
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def agent(folder, env):
    config = folder / "agent.yaml"
    config.write_text(CONFIG.format(folder=folder, nvml=NVML))
    process = subprocess.Popen([BUILD / "bin/weir-agent", "--config", config], env=env)
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(process.pid, os.SCHED_FIFO, os.sched_param(1))
    try:
        while not (folder / "control.sock").exists():
            if process.poll() is not None:
                raise RuntimeError("the agent does not start")
            time.sleep(0.05)
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def measure_agent(seconds):
    with machine() as (folder, env), agent(folder, env) as process:
        argv = [BUILD / "bench/bench-agent", "--agent", process.pid, "--cgroup", cgroup_folder(), "--seconds", seconds]
        return output_of([*REAL_TIME, *(str(word) for word in argv)], env, "bench-agent")


def measure_allocate(_seconds):
    with machine() as (_folder, env):
        argv = [*REAL_TIME, str(BUILD / "bench/bench-allocate")]
        return output_of(argv, dict(env, BENCH_NVML=str(NVML)), "bench-allocate")


def measure_admission(_seconds):
    argv = [str(ROOT / "e2e/bench/programs/admission.sh")]
    return output_of(argv, dict(os.environ, GPUS=str(GPUS)), "admission.sh", 1800)


def middle(runs, *path):
    """Of what was measured several times."""
    values = []
    for run in runs:
        for key in path:
            run = run[key]
        values.append(run)
    return statistics.median(values)


def spread(runs, *path):
    def value(run):
        for key in path:
            run = run[key]
        return run

    return "runs: " + " ".join(f"{value(run):.3g}" for run in runs)


def part_e(report, runs):
    many = f"{runs[0]['clients']} clients, {runs[0]['pods']} pods, {GPUS} GPUs"
    report.at_most("e", f"agent idle, {many}", middle(runs, "idle_percent"), 1, " %", spread(runs, "idle_percent"))
    report.at_most("e", "its resident memory", middle(runs, "rss_kib") / 1024, 64, " MiB")
    for name, what in (
        ("hold", "decision to hold, p99"),
        ("wake", "decision who is next, p99"),
        ("busy_hold", "to hold, all clients have work, p99"),
        ("busy_wake", "who is next, all clients have work, p99"),
    ):
        value = middle(runs, name, "p99_us") / 1e3
        half = f"median {middle(runs, name, 'p50_us') / 1e3:.3f} ms; {spread(runs, name, 'p99_us')} us"
        report.at_most("e", what, value, 1, " ms", half)
    report.add("e", "agent while all have work", f"{middle(runs, 'busy_percent'):.1f} %")
    report.add("e", "to hold, nobody had work for a second, median", f"{middle(runs, 'asleep', 'p50_us') / 1e3:.1f} ms")


def part_f(report, runs):
    half = f"median {middle(runs, 'p50_ms'):.2f} ms; {spread(runs, 'p99_ms')} ms"
    report.at_most("f", f"Allocate at the plugin's socket, {GPUS} GPUs, p99", middle(runs, "p99_ms"), 20, " ms", half)


def part_k(report, runs):
    for name, what in (
        ("admission", "admission of a pod by the real kubelet, p99"),
        ("preference", "which devices the plugin prefers, p99"),
        ("allocate", "Allocate, and the kubelet's note of it, p99"),
    ):
        pods = f"median {middle(runs, name, 'p50_ms'):.2f} ms, of {runs[0][name]['n']} pods; {spread(runs, name, 'p99_ms')} ms"
        report.at_most("k", what, middle(runs, name, "p99_ms"), 20, " ms", pods)


PARTS = {"e": (measure_agent, part_e), "f": (measure_allocate, part_f), "k": (measure_admission, part_k)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default=",".join(PARTS))
    parser.add_argument("--rounds", type=int, default=3, help="each is measured so often; the median counts")
    parser.add_argument("--seconds", type=float, default=10, help="that an idle agent is looked at")
    parser.add_argument("--results", type=pathlib.Path, help="file that the table is added to")
    args = parser.parse_args()
    report = Report("bench")
    for part in args.only.split(","):
        measure, tell = PARTS[part]
        try:
            tell(report, [measure(args.seconds) for _ in range(args.rounds)])
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            report.failed(part, str(error))
    print(f"\n{report.table()}\n{report.summary()}")
    if args.results:
        append(args.results, report.markdown("simulated GPUs", "make bench"))
    return 0 if report.good else 1


if __name__ == "__main__":
    sys.exit(main())
