#!/usr/bin/env python3
"""What must hold at any time of a soak, by what the agent says (`weirctl status --json`, stdin).

Usage: check.py STATE AGENT-PID SECONDS-OF-CALM SAMPLES. Prints a line for each violation. STATE is kept from one call to
the next, with the longest times that were seen; a line `TIME PID RSS-KIB DESCRIPTORS CLIENTS` is added to SAMPLES.

Pods are called sSLOT-lLEVEL-GENERATION; those that run burst or filler never pause for long."""

import json
import os
import pathlib
import re
import sys
import time

STUCK_S = 60  # with work, while nobody of its level or above runs on its GPU; or without, if it never pauses
SETTLED_S = 10  # until levels are right again after whatever was away
GONE_S = 5  # until a dead client is forgotten
RESTLESS = ("burst", "filler")


def alive(pid):
    try:
        # A zombie is dead.
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1][0] not in "ZX"
    except OSError:
        return False


def name_of(client):
    return f"{client['pod']} ({client['command']}, pid {client['pid']}, on {client['gpu']})"


def key_of(client):
    return f"{client['pod']} {client['pid']} {client['gpu']}"


class Look:
    """One look: what was known before, what is known after it, and the violations."""

    def __init__(self, clients, state, now, calm):
        self.clients, self.now, self.calm = clients, now, calm
        self.before, self.longest = state.get("clients", {}), state.get("longest", {})
        self.after = {key_of(client): self.remember(client) for client in clients}

    def remember(self, client):
        """Since when the client has run nothing, had nothing to run, had another level than it should, and been dead."""
        did = [client["launches"], client["gpuSeconds"]]
        old = self.before.get(key_of(client), {})
        expected = re.fullmatch(r"s\d+-l(\d)-\d+", client["pod"])
        since = {
            "still": old.get("did") == did,
            "without work": old.get("did") == did and not client["outstanding"],
            "wrong level": not expected or client["level"] != int(expected[1]),
            "dead": not alive(client["pid"]),
        }
        return {"did": did} | {what: old.get(what) or self.now if holds else None for what, holds in since.items()}

    def lasts(self, client, what, since, limit):
        seconds = round(self.now - since, 1) if since else 0
        self.longest[what] = max(self.longest.get(what, [0, ""]), [seconds, name_of(client)])
        return seconds > limit

    def stood_still(self, client):
        """Since when nobody ran on its GPU whom it waits for, nor itself; None: somebody does."""
        others = [
            self.after[key_of(other)]["still"]
            for other in self.clients
            if other["gpu"] == client["gpu"] and other["level"] >= client["level"]
        ]
        return None if None in others else max(others)

    def violations(self, client):
        """Each is told once, and again when it has lasted as long again."""
        name, known = name_of(client), self.after[key_of(client)]
        if client.get("memoryLimit") and client["memoryReserved"] > client["memoryLimit"]:
            yield f"{name} has {client['memoryReserved']} bytes of {client['memoryLimit']}"
        wrong = known["wrong level"] and max(known["wrong level"], self.now - self.calm)
        if self.lasts(client, "wrong level", wrong, SETTLED_S):
            known["wrong level"] = self.now
            yield f"{name} has level {client['level']}: {client['reason']}"
        if client["outstanding"] and self.lasts(client, "still with work", self.stood_still(client), STUCK_S):
            known["still"] = self.now
            yield f"{name} stands still: {json.dumps(client)}"
        if client["command"] in RESTLESS and self.lasts(client, "without work", known["without work"], STUCK_S):
            known["without work"] = self.now
            yield f"{name} has no work any more: {json.dumps(client)}"
        if self.lasts(client, "dead", known["dead"], GONE_S):
            known["dead"] = self.now
            yield f"{name} is dead, and the agent has it still"


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
    look = Look(clients, json.loads(path.read_text()) if path.exists() else {}, now, calm)
    for client in clients:
        for violation in look.violations(client):
            print(violation)
    path.write_text(json.dumps({"clients": look.after, "longest": look.longest}))
    sample(agent, len(clients), samples, now)


if __name__ == "__main__":
    main()
