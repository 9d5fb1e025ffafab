"""What Weir under time-slicing is compared with in the same run, besides time-slicing: an MPS daemon, and the gates alone."""

import contextlib

SHORT = 2  # seconds a measurement; with less there are no such baselines
LEFT_OUT = "without MPS and without the gates alone"
OFF = "hardwarePreemption: false\n"  # in the agent's configuration
MPS_WAYS = {"MPS": (), "MPS + stream priority": ("--priority",)}  # name to HIGH's options


def wanted(bench):
    """Whether there is time for them; the report says so if not."""
    if bench.seconds >= SHORT or bench.node.simulated:
        return True
    bench.report.cut(LEFT_OUT)
    return False


@contextlib.contextmanager
def under_mps(node):
    node.ensure_mps()
    try:
        yield
    finally:
        node.stop_mps()


@contextlib.contextmanager
def gates_alone(node):
    """An agent without the hardware's help, as it is on drivers where the self-test fails."""
    before = node.scheduling
    node.stop_agent()
    try:
        node.scheduling = before + OFF
        node.ensure_agent()
        yield
    finally:
        node.stop_agent()
        node.scheduling = before
