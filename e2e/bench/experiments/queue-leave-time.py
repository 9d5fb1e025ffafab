"""XSched's experiment: 64 kernels are queued behind gates, and their blocks watch the clock."""

import forms
from report import at_most

SHOWS = "time until 64 queued kernels stand still"
PAPER = "XSched"
BOUNDS = {"p99": at_most(30, " us")}
BASELINES = ()
NEEDS = ("gpu",)
SIMULATED = True

LENGTHS_US = (100, 200, 500, 1000, 2000, 0)  # of a block; 0: endless


def run(bench):
    for length in LENGTHS_US[::5] if bench.node.simulated else LENGTHS_US:
        forms.show_queue(bench, length, [], BOUNDS["p99"])
