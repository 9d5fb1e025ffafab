"""As pairs-priority does, with a pod for each client, and MPS daemons that the agent runs."""

import experiment
from pods import mode_mps
from report import at_least

SHOWS = "pairs of pods: speed-up over MPS of a small kernel with priority, right behind a large one"
PAPER = "FLEP figure 8"
BOUNDS = {"speed-up, mean": at_least(10, "x"), "speed-up, best": at_least(25, "x"), "of the ideal speed-up": at_least(95)}
BASELINES = ("MPS", "MPS with stream priority", "time-slicing", "the ratio of the kernels' lengths as ideal")
NEEDS = ("gpu", "mps", "kubelet", "root")
SIMULATED = True


def run(bench):
    with mode_mps(bench):
        experiment.load_all()["pairs-priority"].module.run(bench)
