import pathlib
import time

import kube
import pods

SHOWS = "uninstall: no file, mount, process or object is left"
PAPER = ""
BOUNDS = {}
BASELINES = ()
NEEDS = ("gpu", "kubelet", "root")
SIMULATED = True


def left(cluster):
    """Files, mounts, processes and objects of the release that are still there."""
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


def run(bench):
    cluster = bench.node
    for client in cluster.clients:
        client.process.kill()
    kube.wait_for("the pods to go", 60, lambda: not cluster.api.list("Pod", pods.NAMESPACE))
    cluster.release.uninstall()
    end = time.monotonic() + 10
    while left(cluster) and time.monotonic() < end:
        time.sleep(0.5)
    remains = left(cluster)
    bench.report.holds("uninstall leaves no file, mount, process or object", not remains, ", ".join(remains[:5]) or "nothing left")
