"""The parts of cluster.sh: what pods of a real kubelet see of Weir, from helm install to helm uninstall."""

import os
import pathlib
import signal
import time

import cluster_two
import kube
import pods
import sharing
import truth
from sharing import HIGH, LOW
from watch import Watch

WITHIN = 1.03  # of the bounds that first-light.sh has without a cluster
BACK_WITHIN = 1.0  # s, after a kill
LIMIT = 4 << 30  # of part m
CONTEXT = 1 << 30  # most that a context and PyTorch's rounding may take of it
APPS = ("vmm", "expandable", "pools", "graphs")


def install(bench):
    cluster = bench.node
    began = time.monotonic()
    cluster.release.install(cluster.manifests("install"))
    kube.wait_for("shares", 30, cluster.allocatable)
    cluster.ensure_agent()
    cluster.take_other_gpus()
    containers = [c for pod in cluster.api.list("Pod", pods.RELEASE_NAMESPACE) for c in pod["spec"]["containers"]]
    bench.report.holds("a", "the chart's manifests installed: agent and plugin ready, shares offered", True,
                       f"{cluster.allocatable()} shares after {time.monotonic() - began:.1f} s", f"{len(containers)} containers")


def bursts(bench, mode):
    """HIGH pod against LOW pod, as part e or as parts c and d of first-light.sh."""
    mps = mode == "mps"
    mm, train, train_p99 = (1.35, 1.06, 1.15) if mps else (1.40, 1.15, None)
    letter = "c" if mps else "b"
    sharing.compare(bench, letter, sharing.low_of(bench, "mm"), mm * WITHIN, priority=False)
    sharing.compare(bench, letter, sharing.low_of(bench, "train"), train * WITHIN, train_p99 and train_p99 * WITHIN, priority=False)


def part_b(bench):
    bursts(bench, "timeslice")


def part_c(bench):
    """The chart with mode: mps, which is a roll of the release, another one under a pair of pods, and back."""
    cluster = bench.node
    cluster.release.install(cluster.manifests("mps"))
    kube.wait_for("shares", 30, cluster.allocatable)
    cluster.ensure_agent()
    cluster.ensure_mps()
    try:
        if cluster.simulated:
            bench.report.skipped("c", "bursts: the simulated GPU is shared as MPS shares a real one")
        else:
            bursts(bench, "mps")
        before = cluster.mps_daemons()
        with Pair(bench, "c") as pair:
            pair.check("agent and plugin rolled under clients of MPS", lambda: roll(cluster, "mps-upgrade"), 30)
        after = cluster.mps_daemons()
        bench.report.holds("c", "the MPS daemons stay", before == after, f"processes {before} and {after}")
    finally:
        cluster.stop_mps()
        roll(cluster, "install")
        kube.wait_for("MPS to end", 30, lambda: not cluster.mps_ready())


def part_m(bench):
    """A pod at its limit gets PyTorch's own error and lives; nobody else notices."""
    cluster = bench.node
    with cluster.running("neighbour", bench.burst_argv(1 << 40), HIGH, True) as neighbour:
        before = cluster.client_of(neighbour)["launches"]
        if cluster.simulated:
            client = cluster.start("limit", ["memory-storm", "--processes", "4", "--kills", "8"], LOW, True, files=False, memory="96Mi")
            good, figure = "output" in client.result(), "memory-storm: never over, never under"
        else:
            argv = ["python3", str(bench.here / "patterns.py"), "limit"]
            client = cluster.start("limit", argv, LOW, True, files=False, memory="4Gi")
            got = client.result()
            good = bool(got["error"]) and LIMIT - CONTEXT <= got["held"] <= LIMIT and got["works"] and got["total"] <= LIMIT
            figure = f"{got['held'] / 2**30:.2f} GiB of 4, then: {got['error'][:60]}; works on: {got['works']}"
        whole = neighbour.process.poll() is None and cluster.client_of(neighbour)["launches"] > before
    bench.report.holds("m", "a pod at its limit gets its error and lives", good, figure)
    right = neighbour.process.poll() == 0
    bench.report.holds("m", "its neighbour does not notice", whole and right, "all values right" if right else neighbour.last_words())


def part_k(bench):
    """SIGKILL in mid-kernel."""
    cluster = bench.node
    before = cluster.memory_used()
    argv = ["filler", "--depth", "8"] if cluster.simulated else ["python3", str(bench.here / "patterns.py"), "spin"]
    client = cluster.start("victim", argv, LOW, True)
    client.wait_ready(60)
    held = cluster.memory_used()
    pid = kube.wait_for("the agent to know it", 10, lambda: cluster.client_of(client))["pid"]
    began = time.monotonic()
    os.kill(pid, signal.SIGKILL)
    gone = known = None
    while time.monotonic() - began < 20 and (gone is None or known is None):
        if known is None and not cluster.client_of(client):
            known = time.monotonic() - began
        if gone is None and (before is None or cluster.memory_used() <= before + (64 << 20)):
            gone = time.monotonic() - began
    shown = f"{gone:.2f} s" if gone is not None else "not in 20 s"
    sizes = f"{(held - before) / 2**30:.1f} GiB held" if before is not None else "simulated: by the agent's account"
    bench.report.holds("k", f"killed in mid-kernel: its GPU memory is free within {BACK_WITHIN:g} s", gone is not None and gone <= BACK_WITHIN, shown, sizes)
    shown = f"{known:.2f} s" if known is not None else "not in 20 s"
    bench.report.holds("k", "and the agent has forgotten it", known is not None and known <= BACK_WITHIN, shown)
    client.process.wait(30)


class Pair:
    """LOW and HIGH at work, and whether both are the same later."""

    def __init__(self, bench, part):
        self.bench, self.cluster, self.part = bench, bench.node, part

    def __enter__(self):
        low = sharing.low_of(self.bench, "mm")
        self.low = self.cluster.start("low", low.argv, LOW, True)
        argv = self.bench.burst_argv(1 << 40, extra=("--log", "@folder/requests.log"))
        self.high = self.cluster.start("high", argv, HIGH, True)
        for client in (self.low, self.high):
            client.wait_ready(60)
        kube.wait_for("their levels", 10, self.levels)
        # The API server hears of containers a little after they run.
        kube.wait_for("their containers", 20, lambda: all(container for container, _ in self.identity()))
        self.identities = self.identity()
        return self

    def __exit__(self, *_):
        for client in (self.low, self.high):
            client.stop()
        for client in (self.low, self.high):
            try:
                client.process.wait(60)
            except Exception:
                client.kill()

    def identity(self):
        return [client.process.identity() for client in (self.low, self.high)]

    def levels(self):
        try:
            have = {c.get("pod"): c["level"] for c in self.cluster.status()}
        except Exception:
            return False
        return have.get(self.low.name) == 0 and have.get(self.high.name) == 2

    def requests(self):
        return truth.requests(self.high.folder / "requests.log")

    def launches(self):
        return [(self.cluster.client_of(client) or {}).get("launches", 0) for client in (self.low, self.high)]

    def check(self, what, act, seconds):
        """Does @act to the node; the pair must be the same, at work, and known by its levels afterwards."""
        usual_from = time.time()
        time.sleep(self.bench.seconds)
        began = time.time()
        act()
        acted = time.time()
        try:
            kube.wait_for("their levels", seconds, self.levels)
            back = time.time() - acted
            first = self.launches()
            kube.wait_for("work", 10, lambda: all(b > a for a, b in zip(first, self.launches())))
            error = ""
        except Exception as caught:
            back, error = None, str(caught)
        time.sleep(self.bench.seconds)
        ended = time.time()
        same = self.identity() == self.identities and all(c.process.poll() is None for c in (self.low, self.high))
        log = self.requests()
        medians = [truth.median_between(log, *span) for span in ((usual_from, began), (began, acted), (ended - self.bench.seconds, ended))]
        longest = max((us for at, us in log if began <= at < ended), default=0)
        figure = error or f"same containers: {same}, levels again {back:.2f} s after"
        baselines = "HIGH's median us before/meanwhile/after: " + "/".join(f"{us:.0f}" for us in medians) + f", longest {longest:.0f}"
        self.bench.report.holds(self.part, what, same and back is not None, figure, baselines)


def part_r(bench):
    cluster = bench.node

    def kubelet():
        # What the API server shows is from before for a while.
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

    with Pair(bench, "r") as pair:
        pair.check("kubelet killed and started again under both pods", kubelet, 30)
        pair.check("containerd killed and started again", containerd, 30)
        pair.check("agent killed; the kubelet starts another", agent, 30)


def roll(cluster, manifests):
    cluster.release.install(cluster.manifests(manifests))
    kube.wait_for("shares", 60, cluster.allocatable)
    kube.wait_for("the new agent", 30, cluster.status_works)


def part_u(bench):
    cluster = bench.node
    with Pair(bench, "u") as pair:
        pair.check("agent and plugin rolled to another image under both pods", lambda: roll(cluster, "upgrade"), 30)
    images = sorted({c["image"] for pod in cluster.api.list("Pod", pods.RELEASE_NAMESPACE) for c in pod["spec"]["containers"]})
    bench.report.holds("u", "the new images run", all(image.endswith(":next") for image in images), " ".join(images))


def run_patterns(bench, weir):
    """All patterns at once: the clients, and their hashes."""
    cluster, clients, hashes = bench.node, [], {}
    for name in APPS:
        if cluster.simulated:
            argv = ["stream-order", "--iterations", "50", "--seed", str(1 + APPS.index(name))]
        else:
            argv = ["python3", str(bench.here / "patterns.py"), name]
        share = 15  # so that there is room for HIGH
        clients.append(cluster.start(f"pattern-{name}", argv, LOW, weir, files=False, share=share))
    for name, client in zip(APPS, clients):
        try:
            hashes[name] = client.result(90)
        except Exception as error:
            bench.report.failed("d", f"{name}, {'with' if weir else 'without'} Weir: {error}"[:300])
    return clients, hashes


def part_d(bench):
    cluster = bench.node
    _, plain = run_patterns(bench, False)
    with cluster.running("burst", bench.burst_argv(1 << 40), HIGH, True), Watch(cluster) as watch:
        clients, weir = run_patterns(bench, True)
    for name in APPS:
        good = name in plain and plain[name] == weir.get(name)
        bench.report.holds("d", f"{name}, gated and contended, bit for bit", good, "identical" if good else f"{plain.get(name)} / {weir.get(name)}")
    held = {client.name: sum(watch.held(client).values()) for client in clients}
    bench.report.holds("d", "each was held", all(held.values()), ", ".join(f"{name} {n}" for name, n in held.items()))


def left(cluster):
    """Files, mounts, processes and objects of the release."""
    found = [str(p) for top in ("node", "tmpfs/run") for p in pathlib.Path(cluster.work, top).rglob("*") if not p.is_dir() or "weir" in p.name]
    found += [str(p) for p in pathlib.Path("/var/lib/kubelet/device-plugins").glob("weir*")]
    library = f"/{cluster.work.name}/node/lib/"
    for path in pathlib.Path("/proc").glob("[0-9]*/mountinfo"):
        try:
            found += [line.split()[4] for line in path.read_text().splitlines() if library in line or "/run/weir" in line.split()[3]]
        except OSError:
            pass
    for name in ("weir-agent", "weir-device-plugin", "weir-compile", "weir-mps", "nvidia-cuda-mps-control"):
        found += [f"{name} {pid}" for pid in cluster.processes(name[:15])]
    for kind in kube.KINDS:
        if kind in ("Namespace", "Node"):
            continue
        namespaced = kube.KINDS[kind][2]
        for item in cluster.api.list(kind, pods.RELEASE_NAMESPACE if namespaced else ""):
            name = item["metadata"]["name"]
            if name not in ("default", "kube-root-ca.crt") and (namespaced or name.startswith("weir")):
                found.append(f"{kind} {name}")
    return found


def part_x(bench):
    cluster = bench.node
    for client in cluster.clients:
        client.process.kill()
    kube.wait_for("the pods to go", 60, lambda: not cluster.api.list("Pod", pods.NAMESPACE))
    cluster.release.uninstall()
    end = time.monotonic() + 10
    while left(cluster) and time.monotonic() < end:
        time.sleep(0.5)
    remains = left(cluster)
    bench.report.holds("x", "uninstall leaves no file, mount, process or object", not remains, ", ".join(remains[:5]) or "nothing left")

PARTS = {
    "m": ("memory limit", part_m),
    "k": ("killed in mid-kernel", part_k),
    "d": ("patterns of frameworks, bit for bit", part_d),
    **cluster_two.PARTS,
    "b": ("HIGH pod beside LOW pods, time-slicing", part_b),
    "r": ("kubelet, containerd, agent restarted under load", part_r),
    "c": ("HIGH pod beside LOW pods, MPS", part_c),
    "u": ("upgrade under load", part_u),
    "x": ("uninstall", part_x),
}
