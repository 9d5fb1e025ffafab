"""Figures of the cluster tests chart.sh and dra-nodes.sh: where pods go that ask for parts of GPUs, and who waits."""

import json
import os
import subprocess

from experiment import ROOT
from report import at_most

SHOWS = "a Deployment that fits on no GPU waits without failed pods; claims of shares and memory over 4 nodes with 4 GPUs each"
PAPER = ""
BOUNDS = {
    "pending": at_most(5, " s"),
    "room": at_most(5, " s"),
    "failed": at_most(0, ""),
    "failed without": at_most(1, ""),
    "prepare": at_most(20, " ms"),
}
BASELINES = ()
NEEDS = ("no gpu", "root", "kubelet")
SIMULATED = False

TESTS = ROOT / "e2e/cluster/tests"
CASES = ("install", "waits", "waits_without_policy")


def figures_of(script, *words):
    """Of a cluster test: the JSONs that it prints; an error where it failed or was skipped."""
    ran = subprocess.run([str(TESTS / script), *words], env=dict(os.environ), capture_output=True, text=True, timeout=1800, check=False)
    lines = ran.stdout.splitlines()
    for line in lines:
        print(f"  {line}")
    figures = [json.loads(line) for line in lines if line.startswith("{")]
    if ran.returncode or not figures:
        raise RuntimeError(f"{script}: {(lines or ran.stderr.splitlines() or ['no message'])[-1]}")
    return figures


def deployment(bench):
    found = {one["what"]: one for one in figures_of("chart.sh", *CASES)}
    failed = max(found[what]["failed"] for what in ("pending", "room"))
    bench.report.judge("a pod that fits on no GPU is pending with a reason after", found["pending"]["seconds"], BOUNDS["pending"])
    bench.report.judge("it runs, after room was made, in", found["room"]["seconds"], BOUNDS["room"])
    bench.report.judge("failed pods meanwhile", failed, BOUNDS["failed"])
    bench.report.judge("failed pods in 10 s without the admission policy", found["full without the policy"]["failed"], BOUNDS["failed without"])
    bench.report.add("it runs without the policy, after room was made, in", f"{found['room without the policy']['seconds']:.2f} s")


def claims(bench):
    found = figures_of("dra-nodes.sh")[-1]
    bench.report.holds("each claim that fits is placed, none beyond capacity, nothing stays behind", True, f"{found['claims']} claims, {found['nodes']} nodes, {found['restarts']} restarts of drivers and their objects")
    for name, what in {"prepare": "NodePrepareResources during churn and restarts, p99", "quiet": "NodePrepareResources of one claim again and again, p99"}.items():
        one = found[name]
        bench.report.judge(what, one["p99"], BOUNDS["prepare"], f"median {one['p50']:.1f}, longest {one['longest']:.1f} ms of {one['n']}")


def run(bench):
    deployment(bench)
    claims(bench)
