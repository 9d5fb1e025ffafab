"""A LOW that dies again and again in a long kernel (programs/dying.py), and what HIGH beside it sees, and when."""

import collections
import dataclasses
import signal
import statistics
import subprocess
import time

import bursts
from experiment import PROGRAMS
from node import Failure

KINDS = ("kill", "fault", "assert")
NOT_READY = 75  # dying.py's exit status
TRIES = 40  # of a LOW that the server does not take yet
UP_SECONDS, DIE_SECONDS = 30, 15
SECONDS_EACH = 6  # at most on average, a start and a death
GIVE_UP = 2  # a LOW that did not die as it should, so often
RUNS_S = 0.3  # from the launch of LOW's kernel to the death, dying.py's AFTER_NS
EARLY_S = 0.05  # a death may come so much sooner than this program thinks
AFTER_S = 0.4  # from LOW's end to the next one; what comes later counts as while that starts
PHASES = ("starts", "runs", "dies")
# Requests are short and come often, so that one is on its way at any moment.
REQUESTS = ("--kernels", "2", "--gap-min-us", "300", "--gap-max-us", "700")


@dataclasses.dataclass
class Life:
    """Moments of one LOW, in seconds since the epoch. @launched: its long kernel. @ended: of its wait for the next one."""

    began: float
    launched: float = 0
    ended: float = 0

    def phase(self, moment):
        """In which phase a moment lies; None: LOW is not there."""
        if not self.began <= moment < self.ended:
            return None
        if not self.launched or moment < self.launched:
            return "starts"
        return "runs" if moment < self.launched + RUNS_S - EARLY_S else "dies"


@dataclasses.dataclass
class Longest:
    """HIGH's longest request that ended in a phase of one LOW. @after: its begin, s after LOW's kernel was to die."""

    us: float = 0
    after: float = 0


@dataclasses.dataclass
class Deaths:
    """@ends: how LOW ended, and how often. @died: as it should. @high: HIGH's figures; None: it died, with @words.
    @longest: phase to a Longest of each LOW that died."""

    ends: collections.Counter
    died: int = 0
    high: dict = None
    words: str = ""
    longest: dict = dataclasses.field(default_factory=dict)

    def __str__(self):
        return ", ".join(f"{n} x {end}" for end, n in self.ends.items())

    def middle(self, phase):
        """us"""
        return statistics.median(one.us for one in self.longest[phase])

    def cleaned_up(self):
        """us, of each death the longest one but for those while LOW runs. Under MPS what a killed LOW left may hit the GPU
        only when the next one starts."""
        return [max(start.us, end.us) for start, end in zip(self.longest["starts"], self.longest["dies"])]

    def undisturbed(self):
        """us, of each LOW the longest one while it runs."""
        return [one.us for one in self.longest["runs"]]

    def worst(self, phase):
        return max(self.longest[phase], key=lambda one: one.us)


def requests_of(path):
    """(end, us) of each of HIGH's requests, as burst's --log says."""
    with open(path) as file:
        return [tuple(float(word) for word in line.split()) for line in file]


def longest_of(life, requests):
    found = {phase: Longest() for phase in PHASES}
    for end, us in requests:
        phase = life.phase(end)
        if phase and us > found[phase].us:
            found[phase] = Longest(us, end - us / 1e6 - life.launched - RUNS_S)
    return found


def wait_up(low):
    end = time.monotonic() + UP_SECONDS
    while "up\n" not in low.output and low.process.poll() is None and time.monotonic() < end:
        time.sleep(0.005)
    return "up\n" in low.output


def try_once(bench, kind, weir, life):
    """Starts a LOW. Returns its exit status, None if it had to be killed; and what it said last."""
    argv = ["python3", str(PROGRAMS / "dying.py"), kind]
    env = {"GRID": "1" if bench.node.simulated else "1024"}
    low = bench.node.start(f"dying-{kind}", argv, bursts.LOW, weir, files=False, env=env)
    up = wait_up(low)
    life.launched = time.time()
    if kind == "kill" and up:
        time.sleep(RUNS_S)
        low.process.send_signal(signal.SIGKILL)
    try:
        code = low.process.wait(DIE_SECONDS if up else 1)
    except subprocess.TimeoutExpired:
        low.kill()
        return None, f"does not die in {DIE_SECONDS} s" if up else f"not up in {UP_SECONDS} s"
    said = (low.output + low.errors).strip().splitlines()
    return code, said[-1] if said else ""


def die_once(bench, kind, weir, life):
    """(whether LOW died as it should, how it ended). With a fault the server takes no clients for a while."""
    for _ in range(TRIES):
        code, said = try_once(bench, kind, weir, life)
        if code != NOT_READY:
            break
        time.sleep(0.25)
    if code == -signal.SIGKILL:
        return kind == "kill", "killed"
    if code == 3:
        return kind != "kill", said.split(": ")[-1]
    return False, said if code is None else f"exit {code}: {said[-100:]}"


def live_and_die(bench, kind, weir, found, lives):
    life = Life(time.time())
    good, how = die_once(bench, kind, weir, life)
    found.ends[how] += 1
    found.died += good
    time.sleep(AFTER_S)
    life.ended = time.time()
    if good:
        lives.append(life)
    return good


def deaths(bench, kind, n, weir=True, high_under_mps=True):
    """HIGH beside a LOW that dies @n times, or as often as there is time for; the report says so if it is less."""
    log = bench.node.folder / f"high-{kind}-{len(bench.node.clients)}.log"
    log.touch()
    log.chmod(0o666)  # HIGH may be another user
    argv = bench.burst_argv(1 << 40, extra=(*REQUESTS, "--log", str(log)))
    high = bench.node.start("high-survivor", argv, bursts.HIGH, weir, mps=high_under_mps)
    high.wait_ready()
    found, lives, end, wrong = Deaths(collections.Counter()), [], time.monotonic() + n * SECONDS_EACH, 0
    while found.died < n and wrong < GIVE_UP and high.process.poll() is None and time.monotonic() < end:
        wrong += not live_and_die(bench, kind, weir, found, lives)
    if found.died < n and time.monotonic() >= end:
        bench.report.cut(f"{found.died} of {n} deaths of {kind} within {n * SECONDS_EACH} s")
    if high.process.poll() is None:
        high.stop()
        try:
            found.high = high.result(30)
        except Failure as failure:
            found.words = str(failure)
    if not found.high:
        high.kill()
        found.words = found.words or high.last_words()
    requests = requests_of(log)
    each = [longest_of(life, requests) for life in lives]
    found.longest = {phase: [one[phase] for one in each] for phase in PHASES} if each else {}
    return found
