"""The real kubelet admits 100 pods, one after the other; times are from its own log."""

import os

import host
from experiment import PROGRAMS
from report import at_most

SHOWS = "how long the kubelet takes to admit a pod, with the plugin's two answers"
PAPER = ""
BOUNDS = {"p99": at_most(20, " ms")}
BASELINES = ()
NEEDS = ("no gpu", "root", "kubelet")
SIMULATED = False

SPANS = {
    "admission": "admission of a pod by the real kubelet, p99",
    "preference": "which devices the plugin prefers, p99",
    "allocate": "Allocate, and the kubelet's note of it, p99",
}


def measure():
    argv = [str(PROGRAMS / "admission.sh")]
    return host.output_of(argv, dict(os.environ, GPUS=str(host.GPUS)), "admission.sh", 1800)


def run(bench):
    runs = [measure() for _ in range(bench.rounds)]
    for name, what in SPANS.items():
        pods = f"median {host.middle(runs, name, 'p50_ms'):.2f} ms, of {runs[0][name]['n']} pods; {host.spread(runs, name, 'p99_ms')} ms"
        bench.report.judge(what, host.middle(runs, name, "p99_ms"), BOUNDS["p99"], pods)
