"""An agent with an MPS server for each level (mode mps-per-level)."""

import contextlib
import pathlib
import shutil
import tempfile


@contextlib.contextmanager
def levels(bench):
    """An agent with a server for each level; clients leave it to the agent which one they join."""
    node = bench.node
    # A path of a socket has at most 107 characters.
    folder = pathlib.Path(tempfile.mkdtemp(prefix="wm-"))
    folder.chmod(0o755)
    before = node.scheduling
    node.stop_agent()
    node.scheduling = (
        f"{before}mode: mps-per-level\n"
        f"mps: {{dir: {folder}/m, program: {node.mps_control()}, check: 200ms, keep: false}}\n"
    )
    node.pipes = ""
    if node.simulated:
        node.simulate("slices = 1\n")  # of servers
    try:
        node.ensure_agent()
        yield folder / "m"
    finally:
        node.stop_agent()
        node.scheduling, node.pipes = before, None
        for log in folder.glob("m/*/level-*/*.log"):
            shutil.copy(log, node.folder / f"mps-{log.parent.name}-{log.name}")
        shutil.rmtree(folder, ignore_errors=True)
