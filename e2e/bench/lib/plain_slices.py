"""The hardware's slices without Weir, as a baseline: HIGH and LOW are plain processes, and libcuda asks for the slices that
Weir would give them (programs/plain-slice.c). Who comes then waits for the rest of LOW's slice and for the switch. There
are no gates, so LOW also comes back in each gap between HIGH's kernels."""

import contextlib

from node import Failure

# us, by level, as in agent/hardware/slices.h: SLICE_ABOVE and SLICE_BELOW.
SLICES = {"high": 100_000, "low": 5}
NAME = "the hardware's slices without Weir"


def check(client):
    if "us: taken" not in client.errors or "refused" in client.errors:
        raise Failure(f"{client.name} does not have its slices: {client.errors.strip() or 'no message'}")


@contextlib.contextmanager
def plain(node):
    """Clients without libweir that start meanwhile have these slices. They must make their contexts meanwhile. On the
    simulated GPU an agent must have run: it makes device nodes for clients that may make none."""
    before, node.slices = len(node.clients), SLICES
    try:
        yield
        for client in node.clients[before:]:
            check(client)
    finally:
        node.slices = {}
