import os
import signal
import time

import kube
from bursts import LOW
from experiment import PROGRAMS

SHOWS = "SIGKILL in mid-kernel: what the pod held is free within 1 s"
PAPER = ""
BOUNDS = {}
BASELINES = ()
NEEDS = ("gpu", "kubelet", "root", "pytorch")
SIMULATED = True

BACK_WITHIN = 1.0  # s, after the kill


def run(bench):
    cluster = bench.node
    before = cluster.memory_used()
    argv = ["filler", "--depth", "8"] if cluster.simulated else ["python3", str(PROGRAMS / "patterns.py"), "spin"]
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
    bench.report.holds(f"killed in mid-kernel: its GPU memory is free within {BACK_WITHIN:g} s", gone is not None and gone <= BACK_WITHIN, shown, sizes)
    shown = f"{known:.2f} s" if known is not None else "not in 20 s"
    bench.report.holds("and the agent has forgotten it", known is not None and known <= BACK_WITHIN, shown)
    client.process.wait(30)
