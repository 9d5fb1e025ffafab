"""What the agent counts of clients while they live."""

import threading

COUNTERS = ("gates", "gatesClosed", "waits", "evictions")


class Watch:
    """Asks weirctl now and then, and keeps the largest number of each client's counters, by GPU."""

    def __init__(self, node):
        self.node, self.largest, self.done = node, {}, threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)

    def run(self):
        while not self.done.wait(0.1):
            try:
                clients = self.node.status()
            except Exception:  # the agent may be away; the next answer will do
                continue
            for client in clients:
                seen = self.largest.setdefault(self.node.identity_of(client), {}).setdefault(client["gpu"], {})
                for name in COUNTERS:
                    seen[name] = max(seen.get(name, 0), client[name])

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.done.set()
        self.thread.join()

    def counters(self, client):
        """Of this client on all GPUs, as far as they were seen."""
        seen = self.largest.get(self.node.identity(client), {}).values()
        return {name: sum(counts[name] for counts in seen) for name in COUNTERS}

    def held(self, client):
        """GPU to how often it was held there: whoever puts a closed gate is held by it, and waits are those that libweir's
        worker saw, which looks now and then."""
        seen = self.largest.get(self.node.identity(client), {})
        return {gpu: max(counts["gatesClosed"], counts["waits"]) + counts["evictions"] for gpu, counts in seen.items()}
