"""programs/mps-daemon.sh has the agent run a real MPS daemon: two users with preemption, dying clients, a fault, a killed
daemon, a killed agent. It prints what clients see; there are no bounds."""

import subprocess
import sys

from experiment import PROGRAMS

SHOWS = "what clients of a real MPS daemon see when clients, the daemon and the agent die"
PAPER = ""
BOUNDS = {}
BASELINES = ()
NEEDS = ("gpu", "mps", "root")
SIMULATED = False


def run(bench):
    argv = [str(PROGRAMS / "mps-daemon.sh"), str(bench.node.bundle)]
    done = subprocess.run(argv, stdout=subprocess.PIPE, text=True, timeout=120, check=False)
    sys.stdout.write(done.stdout)
    (bench.node.folder / "mps-daemon.log").write_text(done.stdout)
    bench.report.add("what clients see stands in mps-daemon.log", f"exit status {done.returncode}")
