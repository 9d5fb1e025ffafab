"""A port of 127.0.0.1 that nobody has; as a script, prints it. Not one of those that the kernel gives to connections: one of
these might have it before the server does."""

import contextlib
import random
import socket

PORTS = range(27000, 32768)


def free_port():
    while True:
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", random.choice(PORTS)))
            return probe.getsockname()[1]


if __name__ == "__main__":
    print(free_port())
