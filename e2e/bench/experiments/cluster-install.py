"""The chart's manifests, as Helm rendered them. This comes first in every run on a cluster."""

import time

import kube
import pods

SHOWS = "the chart's manifests installed: agent and plugin ready, shares offered"
PAPER = ""
BOUNDS = {}
BASELINES = ()
NEEDS = ("gpu", "kubelet", "root")
SIMULATED = True


def run(bench):
    cluster = bench.node
    began = time.monotonic()
    cluster.release.install(cluster.manifests("install"))
    kube.wait_for("shares", 30, cluster.allocatable)
    cluster.ensure_agent()
    cluster.take_other_gpus()
    containers = [c for pod in cluster.api.list("Pod", pods.RELEASE_NAMESPACE) for c in pod["spec"]["containers"]]
    bench.report.holds("the chart's manifests installed: agent and plugin ready, shares offered", True,
                       f"{cluster.allocatable()} shares after {time.monotonic() - began:.1f} s", f"{len(containers)} containers")
