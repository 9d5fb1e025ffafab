"""Throttles: event loops of nothing but scheduling points, each a client of its own, and what each got of the GPU."""

import statistics
import time

import loops
import ports

ENDLESS = 600  # seconds; they are stopped
SAMPLES = 500  # a second
BEGUN = 0.4  # seconds until all have their part


def start(bench, tenant):
    argv = ports.argv_of(bench, "loop-throttle", way="look", samples=SAMPLES, seconds=ENDLESS)
    client = bench.node.start("throttle", argv, tenant, True, mps=ports.under_mps(bench, True))
    client.wait_ready()
    return client


def end(client):
    """Stops it. Returns its progress: points by time, in seconds."""
    client.stop()
    return loops.Progress([(ns / 1e9, points) for ns, points in client.result(60)["samples"]])


def rates_together(bench, tenants, window, n):
    """The points a second of each of @tenants, in each of @n windows, while all run."""
    clients = [start(bench, tenant) for tenant in tenants]
    begin = time.monotonic() + BEGUN
    time.sleep(BEGUN + n * window)
    found = [end(client) for client in clients]
    return [[one.rate(begin + i * window, begin + (i + 1) * window) for one in found] for i in range(n)]


def parts(rates):
    """Of each, in per cent of all."""
    return [100 * rate / (sum(rates) or 1) for rate in rates]


def off(rows):
    """The furthest that a part is from an equal one in any window, in points."""
    return max(abs(part - 100 / len(row)) for row in rows for part in parts(row))


def total(rows):
    return statistics.fmean(sum(row) for row in rows)


def shown(rows):
    each = ", ".join(":".join(f"{part:.2f}" for part in parts(row)) for row in rows)
    return f"{each}, {total(rows) / 1e6:.2f} million points/s"
