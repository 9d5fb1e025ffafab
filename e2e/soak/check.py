#!/usr/bin/env python3
"""What must hold at any time of a soak, by what the agent says (`weirctl status --json`, stdin).

Usage: check.py STATE AGENT-PID SECONDS-OF-CALM SAMPLES. Prints a line for each violation. STATE is kept
from one call to the next; a line `TIME PID RSS-KIB DESCRIPTORS CLIENTS` is added to SAMPLES.

Pods are called sSLOT-lLEVEL-GENERATION; those that run burst or filler never pause for long."""

import json
import os
import pathlib
import re
import sys
import time

STUCK_S = 90  # without a launch, of which nothing of what the soak does is the reason
SETTLED_S = 40  # until levels are right again after whatever was away
GONE_S = 10  # until a dead client is forgotten
RESTLESS = ("burst", "filler")


def alive(pid):
    try:
        # A zombie is dead.
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1][0] not in "ZX"
    except OSError:
        return False


def check_client(client, before, now, calm):
    """Yields violations; returns what to remember."""
    name = f"{client['pod']} ({client['command']}, pid {client['pid']}, on {client['gpu']})"
    memory = dict(before or {"launches": -1, "since": now, "dead": None})
    if client.get("memoryLimit") and client["memoryReserved"] > client["memoryLimit"]:
        yield f"{name} has {client['memoryReserved']} bytes of {client['memoryLimit']}"
    expected = re.fullmatch(r"s\d+-l(\d)-\d+", client["pod"])
    if calm > SETTLED_S and not expected:
        yield f"{name} is of no pod of ours"
    if calm > SETTLED_S and expected and now - memory.get("seen", now) > SETTLED_S and client["level"] != int(expected[1]):
        yield f"{name} has level {client['level']}: {client['reason']}"
    memory.setdefault("seen", now)
    if client["launches"] != memory["launches"]:
        memory.update(launches=client["launches"], since=now)
    busy = client["outstanding"] or client["command"] in RESTLESS
    if busy and min(now - memory["since"], calm) > STUCK_S:
        yield f"{name} stands still for {now - memory['since']:.0f} s: {json.dumps(client)}"
        memory["since"] = now
    if alive(client["pid"]):
        memory["dead"] = None
    elif memory["dead"] is None:
        memory["dead"] = now
    elif now - memory["dead"] > GONE_S:
        yield f"{name} is dead for {now - memory['dead']:.0f} s, and the agent has it still"
        memory["dead"] = now
    return memory


def sample(pid, clients, path, now):
    try:
        rss = re.search(r"VmRSS:\s*(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text())[1]
        descriptors = len(os.listdir(f"/proc/{pid}/fd"))
    except (OSError, TypeError):
        return
    with open(path, "a") as file:
        print(f"{now:.1f} {pid} {rss} {descriptors} {clients}", file=file)


def main():
    path, agent, calm, samples = pathlib.Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), sys.argv[4]
    now = time.monotonic()
    clients = json.load(sys.stdin)["clients"]
    before = json.loads(path.read_text()) if path.exists() else {}
    after = {}
    for client in clients:
        key = f"{client['pod']} {client['pid']} {client['gpu']}"
        checks = check_client(client, before.get(key), now, calm)
        while True:
            try:
                print(next(checks))
            except StopIteration as end:
                after[key] = end.value
                break
    path.write_text(json.dumps(after))
    sample(agent, len(clients), samples, now)


if __name__ == "__main__":
    main()
