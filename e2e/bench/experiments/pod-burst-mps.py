"""As burst-mps and burst-mps-training do, with pods; their bounds are 3 % wider."""

import bursts
import kube
from pod_pair import Pair, roll
from report import at_most

SHOWS = "latency of a HIGH pod's bursts beside LOW pods under MPS; a roll of the release under clients of MPS"
PAPER = ""
BOUNDS = {
    "median against alone, mm": at_most(1.35).times(1.03),
    "median against alone, train": at_most(1.06).times(1.03),
    "p99 against alone, train": at_most(1.15).times(1.03),
}
BASELINES = ("HIGH alone", "MPS")
NEEDS = ("gpu", "kubelet", "root", "pytorch")
SIMULATED = True


def run(bench):
    """The chart with mode: mps, which is a roll of the release, another one under a pair of pods, and back."""
    cluster = bench.node
    cluster.release.install(cluster.manifests("mps"))
    kube.wait_for("shares", 30, cluster.allocatable)
    cluster.ensure_agent()
    cluster.ensure_mps()
    try:
        if cluster.simulated:
            bench.report.skipped("bursts: the simulated GPU is shared as MPS shares a real one")
        else:
            mm, *train = BOUNDS.values()
            bursts.compare(bench, bursts.low_of(bench, "mm"), mm, priority=False)
            bursts.compare(bench, bursts.low_of(bench, "train"), *train, priority=False)
        before = cluster.mps_daemons()
        with Pair(bench) as pair:
            pair.check("agent and plugin rolled under clients of MPS", lambda: roll(cluster, "mps-upgrade"), 30)
        after = cluster.mps_daemons()
        bench.report.holds("the MPS daemons stay", before == after, f"processes {before} and {after}")
    finally:
        cluster.stop_mps()
        roll(cluster, "install")
        kube.wait_for("MPS to end", 30, lambda: not cluster.mps_ready())
