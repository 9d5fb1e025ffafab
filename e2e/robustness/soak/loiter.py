#!/usr/bin/env python3
"""Connections to the agent that say nothing, say half of it, or read nothing.

Usage: loiter.py CLIENTS CONTROL METRICS N SECONDS: the agent's two sockets and the port of its metrics.
Fails if an agent that lived all the time did not hang up on those that owe it a word."""

import socket
import sys
import time

HELLO_S = 5  # the agent's patience with clients
MARGIN_S = 5  # and with a machine that is busy


def connect_unix(path, kind):
    one = socket.socket(socket.AF_UNIX, kind)
    one.connect(path)
    return one


def silent(clients, control, port):
    return connect_unix(clients, socket.SOCK_SEQPACKET), True


def half(clients, control, port):
    one = connect_unix(clients, socket.SOCK_SEQPACKET)
    one.send(b"\x57")
    return one, True


def mute_control(clients, control, port):
    one = connect_unix(control, socket.SOCK_STREAM)
    one.send(b'{"command": "sta')
    return one, False  # its patience is longer than we are


def deaf_control(clients, control, port):
    one = connect_unix(control, socket.SOCK_STREAM)
    one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    one.send(b"status\n")
    return one, False


def deaf_metrics(clients, control, port):
    one = socket.create_connection(("127.0.0.1", port))
    one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    one.send(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n")
    return one, False


def ended(one):
    one.settimeout(0)
    try:
        while one.recv(4096):
            pass
        return True
    except BlockingIOError:
        return False
    except OSError:
        return True


def main():
    clients, control, port, n, seconds = sys.argv[1:3] + [int(word) for word in sys.argv[3:]]
    kinds = (silent, half, mute_control, silent, deaf_control, deaf_metrics)
    owing, others = [], []
    began = time.monotonic()
    for i in range(n):
        try:
            one, owes = kinds[i % len(kinds)](clients, control, port)
            (owing if owes else others).append(one)
        except OSError:  # the agent is away, or has enough of us
            pass
    while owing and time.monotonic() < began + HELLO_S + MARGIN_S:
        owing = [one for one in owing if not ended(one)]
        time.sleep(0.2)
    time.sleep(max(0.0, began + seconds - time.monotonic()))
    if owing:
        sys.exit(f"{len(owing)} connections that said nothing are still open after {HELLO_S + MARGIN_S} s")


if __name__ == "__main__":
    main()
