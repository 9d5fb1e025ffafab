"""A LOW pod and a HIGH pod at work, while something happens to the node."""

import time

import bursts
import kube
import watch
from bursts import HIGH, LOW


class Pair:
    """Starts both pods; check() says whether they survive something unchanged."""

    def __init__(self, bench):
        self.bench, self.cluster = bench, bench.node

    def __enter__(self):
        low = bursts.low_of(self.bench, "mm")
        self.low = self.cluster.start("low", low.argv, LOW, True)
        argv = self.bench.burst_argv(1 << 40, extra=("--log", "@folder/requests.log"))
        self.high = self.cluster.start("high", argv, HIGH, True)
        for client in (self.low, self.high):
            client.wait_ready(60)
        kube.wait_for("their levels", 10, self.levels)
        # Containers run a little before the API server shows them.
        kube.wait_for("their containers", 20, lambda: all(container for container, _ in self.identity()))
        self.identities = self.identity()
        return self

    def __exit__(self, *_):
        for client in (self.low, self.high):
            client.stop()
        for client in (self.low, self.high):
            try:
                client.process.wait(60)
            except Exception:
                client.kill()

    def identity(self):
        return [client.process.identity() for client in (self.low, self.high)]

    def levels(self):
        try:
            have = {c.get("pod"): c["level"] for c in self.cluster.status()}
        except Exception:
            return False
        return have.get(self.low.name) == 0 and have.get(self.high.name) == 2

    def requests(self):
        return watch.requests(self.high.folder / "requests.log")

    def launches(self):
        return [(self.cluster.client_of(client) or {}).get("launches", 0) for client in (self.low, self.high)]

    def check(self, what, act, seconds):
        """Does @act to the node; the pair must be the same, at work, and known by its levels afterwards."""
        usual_from = time.time()
        time.sleep(self.bench.seconds)
        began = time.time()
        act()
        acted = time.time()
        try:
            kube.wait_for("their levels", seconds, self.levels)
            back = time.time() - acted
            first = self.launches()
            kube.wait_for("work", 10, lambda: all(b > a for a, b in zip(first, self.launches())))
            error = ""
        except Exception as caught:
            back, error = None, str(caught)
        time.sleep(self.bench.seconds)
        ended = time.time()
        same = self.identity() == self.identities and all(c.process.poll() is None for c in (self.low, self.high))
        log = self.requests()
        medians = [watch.median_between(log, *span) for span in ((usual_from, began), (began, acted), (ended - self.bench.seconds, ended))]
        longest = [max((us for at, us in log if since <= at < until), default=0)
                   for since, until in ((usual_from, began), (began, ended))]
        figure = error or f"same containers: {same}, levels again {back:.2f} s after"
        baselines = "HIGH's median us before/meanwhile/after: " + "/".join(f"{us:.0f}" for us in medians) + \
            ", longest before/since: " + "/".join(f"{us:.0f}" for us in longest)
        self.bench.report.holds(what, same and back is not None, figure, baselines)


def roll(cluster, manifests):
    cluster.release.install(cluster.manifests(manifests))
    kube.wait_for("shares", 60, cluster.allocatable)
    kube.wait_for("the new agent", 30, cluster.status_works)
