"""Agent, plugin and kubelet on simulated GPUs, for experiments on what they cost a node. Needs root: they and the measuring
programs have real-time priority, so that other work on the machine does not change the figures."""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import tempfile
import time

from experiment import ROOT


BUILD = ROOT / os.environ.get("B", "build")
GPUS = 8
REAL_TIME = ("chrt", "-f", "1")
NVML = BUILD / "simcuda/libnvidia-ml.so.1"
CONFIG = """socket: {folder}/run/agent.sock
stateDir: {folder}/state
control: {{socket: {folder}/control.sock}}
metrics: {{address: ""}}
logLevel: {level}
scheduling: {{aging: never}}
nvml: {nvml}
"""


def output_of(argv, env, what, seconds=500):
    done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=seconds)
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        raise RuntimeError(f"{what}: {(done.stderr.strip() or 'no message').splitlines()[-1]}")
    return json.loads(lines[-1])


def cgroup_folder():
    """A folder for pods' cgroups: in the hierarchy of v2, or in one of v1 that needs no settings."""
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
def agent(folder, env, level="error", log=None):
    """@level, @log: of what it logs, and the file for that."""
    config = folder / "agent.yaml"
    config.write_text(CONFIG.format(folder=folder, nvml=NVML, level=level))
    process = subprocess.Popen([BUILD / "bin/weir-agent", "--config", config], env=env, stderr=log)
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


def middle(runs, *path):
    """The median of one figure of several runs."""
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
