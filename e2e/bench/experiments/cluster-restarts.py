import os
import signal
import time

import kube
from pod_pair import Pair

SHOWS = "kubelet, containerd and agent killed and started again under a pair of pods"
PAPER = ""
BOUNDS = {}
BASELINES = ()
NEEDS = ("gpu", "kubelet", "root", "pytorch")
SIMULATED = True


def run(bench):
    cluster = bench.node

    def kubelet():
        # For a while the API server shows the state before the kill.
        health = 'curl -sf "http://127.0.0.1:$port_kubelet_health/healthz"'
        cluster.shell(f"stop kubelet KILL; start_kubelet; must 60 {health}; sleep 2; must 60 node_ready")
        kube.wait_for("shares", 60, cluster.allocatable)

    def containerd():
        cluster.shell("stop containerd KILL; start_containerd; must 30 ctr_k8s version")
        kube.wait_for("the node", 60, cluster.allocatable)

    def agent():
        for pid in cluster.processes("weir-agent"):
            os.kill(pid, signal.SIGKILL)
        time.sleep(0.5)
        kube.wait_for("another agent", 60, cluster.status_works)

    with Pair(bench) as pair:
        pair.check("kubelet killed and started again under both pods", kubelet, 30)
        pair.check("containerd killed and started again", containerd, 30)
        pair.check("agent killed; the kubelet starts another", agent, 30)
