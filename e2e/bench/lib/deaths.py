"""A LOW that dies again and again in a long kernel (programs/dying.py), and what HIGH beside it sees."""

import collections
import dataclasses
import signal
import subprocess
import time

import bursts
from experiment import PROGRAMS
from node import Failure

KINDS = ("kill", "fault", "assert")
NOT_READY = 75  # dying.py's exit status
TRIES = 40  # of a LOW that the server does not take yet
UP_SECONDS, DIE_SECONDS = 30, 15
SECONDS = 60  # for all deaths of one kind
GIVE_UP = 2  # a LOW that did not die as it should, so often


@dataclasses.dataclass
class Deaths:
    """@ends: how LOW ended, and how often. @died: as it should. @high: HIGH's figures; None: it died, with @words."""

    ends: collections.Counter
    died: int = 0
    high: dict = None
    words: str = ""

    def __str__(self):
        return ", ".join(f"{n} x {end}" for end, n in self.ends.items())


def wait_up(low):
    end = time.monotonic() + UP_SECONDS
    while "up\n" not in low.output and low.process.poll() is None and time.monotonic() < end:
        time.sleep(0.02)
    return "up\n" in low.output


def try_once(bench, kind):
    """Starts a LOW. Returns its exit status, None if it had to be killed; and what it said last."""
    argv = ["python3", str(PROGRAMS / "dying.py"), kind]
    low = bench.node.start(f"dying-{kind}", argv, bursts.LOW, True, files=False, env={"GRID": "1" if bench.node.simulated else "1024"})
    up = wait_up(low)
    if kind == "kill" and up:
        time.sleep(0.3)
        low.process.send_signal(signal.SIGKILL)
    try:
        code = low.process.wait(DIE_SECONDS if up else 1)
    except subprocess.TimeoutExpired:
        low.kill()
        return None, f"does not die in {DIE_SECONDS} s" if up else f"not up in {UP_SECONDS} s"
    said = (low.output + low.errors).strip().splitlines()
    return code, said[-1] if said else ""


def die_once(bench, kind):
    """(whether LOW died as it should, how it ended). With a fault the server takes no clients for a while."""
    for _ in range(TRIES):
        code, said = try_once(bench, kind)
        if code != NOT_READY:
            break
        time.sleep(0.25)
    if code == -signal.SIGKILL:
        return kind == "kill", "killed"
    if code == 3:
        return kind != "kill", said.split(": ")[-1]
    return False, said if code is None else f"exit {code}: {said[-100:]}"


def deaths(bench, kind, n):
    """HIGH beside a LOW that dies @n times, or as often as there is time for."""
    high = bench.node.start("high-survivor", bench.burst_argv(1 << 40), bursts.HIGH, True)
    high.wait_ready()
    found, end, wrong = Deaths(collections.Counter()), time.monotonic() + SECONDS, 0
    while found.died < n and wrong < GIVE_UP and high.process.poll() is None and time.monotonic() < end:
        good, how = die_once(bench, kind)
        found.ends[how] += 1
        found.died += good
        wrong += not good
        time.sleep(0.2)
    if high.process.poll() is None:
        high.stop()
        try:
            found.high = high.result(30)
            return found
        except Failure as failure:
            found.words = str(failure)
    high.kill()
    found.words = found.words or high.last_words()
    return found
