"""The agent's counters of clients, read while the clients live."""

import statistics

from looking import Looking

COUNTERS = ("gates", "gatesClosed", "waits", "evictions")


class Watch(Looking):
    """Asks weirctl now and then, and keeps the largest number of each client's counters, by GPU."""

    def __init__(self, node):
        super().__init__()
        self.node, self.largest = node, {}

    def look_on(self):
        while not self.over.wait(0.1):
            try:
                clients = self.node.status()
            except Exception:  # the agent may be away; the next answer will do
                continue
            for client in clients:
                seen = self.largest.setdefault(self.node.identity_of(client), {}).setdefault(client["gpu"], {})
                for name in COUNTERS:
                    seen[name] = max(seen.get(name, 0), client[name])

    def counters(self, client):
        """The last counters that were seen of this client, summed over all GPUs."""
        seen = self.largest.get(self.node.identity(client), {}).values()
        return {name: sum(counts[name] for counts in seen) for name in COUNTERS}

    def held(self, client):
        """GPU to how often this client was stopped there. A closed gate always stops its client; libweir's worker samples the
        waits, so it may miss some."""
        seen = self.largest.get(self.node.identity(client), {})
        return {gpu: max(counts["gatesClosed"], counts["waits"]) + counts["evictions"] for gpu, counts in seen.items()}


def show_gated(bench, watch, clients):
    """The result of a client says nothing if no other client ever stopped it, before or inside a kernel."""
    seen = {client.name: watch.counters(client) for client in clients}
    good = all(sum(watch.held(client).values()) for client in clients)
    figure = ", ".join(
        f"{name} " + "/".join(str(counters[key]) for key in COUNTERS) for name, counters in seen.items())
    bench.report.holds(f"each was held: {'/'.join(COUNTERS)}", good, figure)


def records(path):
    """What a client says of each request so far: the time of its end, its us, and with --timed the parts of these."""
    lines = path.read_text().splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines.pop()  # half written
    return [[float(field) for field in line.split()] for line in lines]


def requests(path):
    """(time of the end, us) of each request so far."""
    return [(fields[0], fields[1]) for fields in records(path)]


def median_between(log, begin, end):
    values = [us for at, us in log if begin <= at < end]
    return statistics.median(values) if values else float("inf")
