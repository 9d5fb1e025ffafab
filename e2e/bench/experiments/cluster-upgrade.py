import pods
from pod_pair import Pair, roll

SHOWS = "agent and plugin rolled to another image under a pair of pods"
PAPER = ""
BOUNDS = {}
BASELINES = ()
NEEDS = ("gpu", "kubelet", "root", "pytorch")
SIMULATED = True


def run(bench):
    cluster = bench.node
    with Pair(bench) as pair:
        pair.check("agent and plugin rolled to another image under both pods", lambda: roll(cluster, "upgrade"), 30)
    images = sorted({c["image"] for pod in cluster.api.list("Pod", pods.RELEASE_NAMESPACE) for c in pod["spec"]["containers"]})
    bench.report.holds("the new images run", all(image.endswith(":next") for image in images), " ".join(images))
