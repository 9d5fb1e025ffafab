"""Kernels that count in a page which an experiment watches."""

import mmap
import pathlib
import struct
import time

from node import Failure


class Page:
    """What the kernel counts."""

    def __init__(self, path):
        self.file = open(path, "r+b")
        self.map = mmap.mmap(self.file.fileno(), 4096)

    @property
    def count(self):
        return struct.unpack_from("I", self.map)[0]

    def moves(self, seconds):
        before = self.count
        time.sleep(seconds)
        return self.count - before

    def stands(self):
        """Whether it stands still for 0.2 s, within some seconds."""
        end = time.monotonic() + 5
        while (moves := self.moves(0.2)) and time.monotonic() < end:
            pass
        return not moves

    def await_motion(self, seconds):
        """Seconds until the count changes."""
        before, begin = self.count, time.monotonic()
        while self.count == before:
            if time.monotonic() > begin + seconds:
                raise Failure("the kernel does not run")
        return time.monotonic() - begin


def file_of(bench, name):
    """In memory: the driver registers no page of another file."""
    return pathlib.Path("/dev/shm") / f"{bench.node.folder.name}-{name}"


def can_be_stopped(bench, known):
    """Itself, or the MPS server of its level."""
    servers = [server for gpu in bench.node.gpus() for server in gpu.get("servers", ())]
    return known["hardwarePreemption"] or any(one["hardwarePreemption"] and one["level"] == known["level"] for one in servers)


def number_of(bench, client):
    """The agent's number of the client, once it has hardware preemption."""
    end = time.monotonic() + 20
    while time.monotonic() < end:
        for known in bench.node.status():
            if known["pid"] == client.process.pid and can_be_stopped(bench, known):
                return known["client"]
        time.sleep(0.05)
    raise Failure("the client has no hardware preemption")
