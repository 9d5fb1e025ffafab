"""As servers-batch does, with a pod for each server and for the batch job, and MPS daemons that the agent runs."""

import experiment
from pods import mode_mps
from report import at_least, at_most

SHOWS = "three servers' pods at 20 % each beside a batch job's: their p99, and what the batch job keeps"
PAPER = "GLoop figure 13"
BOUNDS = {"servers' p99": at_most(1.05), "the batch job's part": at_least(95)}
BASELINES = ("servers without the batch job", "MPS", "time-slicing")
NEEDS = ("gpu", "mps", "kubelet", "root")
SIMULATED = True


def run(bench):
    with mode_mps(bench):
        experiment.load_all()["servers-batch"].module.run(bench)
