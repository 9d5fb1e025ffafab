"""The agent keeps 10 000 profiles of 200 namespaces: what they take of its memory, how long a look-up takes, and what it
does with a file that is damaged. bench-profiles makes the file and looks up; the agent reads that file."""

import json
import os
import pathlib
import re
import statistics
import subprocess

import host
from report import at_most

SHOWS = "an agent with 10 000 profiles of 200 namespaces: its memory, a look-up, and files that are damaged"
PAPER = ""
BOUNDS = {"memory": at_most(20, " MB"), "lookup": at_most(50, " us")}
BASELINES = ("an agent without profiles",)
NEEDS = ("no gpu", "root")
SIMULATED = False

FILE = "state/cache/profiles"
TRIES = 6  # to ask the agent


def turned(data, at):
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


# What is wrong with a file, and the file.
DAMAGED = {
    "a bit of a profile": lambda data: turned(data, len(data) // 2),
    "the magic number": lambda data: turned(data, 0),
    "the version": lambda data: turned(data, 8),
    "the number of profiles": lambda data: turned(data, 16),
    "the end is missing": lambda data: data[: len(data) // 2],
    "empty": lambda data: b"",
}


def resident(pid):
    """MB."""
    return int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text())[1]) * 1024 / 1e6


class Store:
    """Starts agents with files of profiles."""

    def __init__(self, folder, env):
        self.folder, self.env, self.path = folder, env, folder / FILE

    def run(self, data):
        """An agent with such a file, or none: its MB, how many profiles it lists, and its warnings about the file."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.unlink(missing_ok=True)
        if data is not None:
            self.path.write_bytes(data)
        with open(self.folder / "log", "w+") as log:
            with host.agent(self.folder, self.env, "warning", log) as process:
                megabytes = resident(process.pid)
                listed = self.listed()
            log.seek(0)
            return megabytes, listed, [line for line in log if str(self.path) in line]

    def listed(self):
        """An agent that has just started may be late with its answer."""
        argv = [host.BUILD / "bin/weirctl", "--socket", self.folder / "control.sock", "profile", "list", "--json"]
        for _ in range(TRIES):
            done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
            if not done.returncode:
                return len(done.stdout.splitlines())
        raise RuntimeError(done.stderr.strip())


def show_damaged(bench, store, data):
    for what, damage in DAMAGED.items():
        bad = store.path.with_name("profiles.bad")
        bad.unlink(missing_ok=True)
        _, listed, lines = store.run(damage(data))
        good = len(lines) == 1 and "set aside" in lines[0] and bad.exists() and not listed
        bench.report.holds(
            f"damaged: {what}", good, f"{len(lines)} lines, {listed} profiles, {'set aside' if bad.exists() else 'lost'}")


def run(bench):
    argv = [*host.REAL_TIME, str(host.BUILD / "bench/bench-profiles")]
    with host.machine() as (folder, env):
        store = Store(folder, env)
        kept = folder / "profiles"
        runs = [host.output_of([*argv, str(kept)], dict(os.environ), "bench-profiles") for _ in range(bench.rounds)]
        data = kept.read_bytes()
        without = [store.run(None)[0] for _ in range(bench.rounds)]
        having = [store.run(data) for _ in range(bench.rounds)]
        counts = {listed for _, listed, _ in having}
        bench.report.holds("all profiles of the file are read", counts == {runs[0]["profiles"]}, json.dumps(sorted(counts)))
        more = statistics.median(megabytes for megabytes, *_ in having) - statistics.median(without)
        bench.report.judge(
            "what they add to the agent's resident memory", more, BOUNDS["memory"],
            f"the agent without profiles {statistics.median(without):.1f} MB; the file {len(data) / 1e6:.1f} MB")
        median = host.middle(runs, "lookup_us")
        bench.report.judge(
            "a look-up, p99", host.middle(runs, "lookup_p99_us"), BOUNDS["lookup"],
            f"median {median:.2f} us, the longest of 200 000 {host.middle(runs, 'lookup_max_us'):.0f} us; in a process of its "
            "own, not over the agent's socket")
        show_damaged(bench, store, data)
