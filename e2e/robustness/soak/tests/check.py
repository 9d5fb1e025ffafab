#!/usr/bin/env python3
"""What check.py calls a violation, and what not."""

import json
import pathlib
import subprocess
import sys
import tempfile
import time

CHECK = pathlib.Path(__file__).parents[1] / "check.py"
NOBODY = 2**22 + 1  # no process has this pid
LIVING = 1
CALM, DISTURBED = 1000, 1
failed = False


def client(**what):
    usual = {"pod": "s1-l1-1", "command": "vector-add", "pid": LIVING, "gpu": "G", "level": 1, "reason": "r"}
    return usual | {"launches": 7, "gpuSeconds": 1.5, "outstanding": 1, "memoryReserved": 0} | what


def found(clients, since, calm=CALM):
    """What is said of them when the look before was @since seconds ago, and showed the same but for `before`."""
    now = time.monotonic()
    before = {
        f"{c['pod']} {c['pid']} {c['gpu']}": {"did": [c["launches"] - c.get("new", 0), 1.5]}
        | {what: now - since if what in c.get("was", ()) else None for what in ("still", "without work", "wrong level", "dead")}
        for c in clients
    }
    with tempfile.TemporaryDirectory() as folder:
        state = pathlib.Path(folder) / "state"
        state.write_text(json.dumps({"clients": before}))
        argv = [CHECK, state, str(LIVING), str(calm), pathlib.Path(folder) / "samples"]
        status = json.dumps({"clients": clients})
        said = [subprocess.run(argv, input=status, text=True, check=True, stdout=subprocess.PIPE).stdout for _ in range(2)]
        return len(said[0].splitlines()), len(said[1].splitlines())


def expect(what, violations, *arguments, again=0, **named):
    """So many, and so many again at the next look, which is at once."""
    global failed
    says = found(*arguments, **named)
    if says == (violations, again):
        print(f"ok - soak: {what}")
    else:
        print(f"not ok - soak: {what} # {says}")
        failed = True


still = {"was": ["still"]}
above = client(pod="s2-l2-2", level=2, new=1)
below = client(pod="s3-l0-3", level=0, new=1)
elsewhere = client(pod="s4-l2-4", level=2, gpu="H", new=1)
expect("all is well", 0, [client(), client(pod="s2-l1-2")], 100)
expect("standing still for a minute", 1, [client(**still), elsewhere], 61)
expect("and for less", 0, [client(**still)], 50)
expect("while somebody above runs", 0, [client(**still), above], 100)
expect("while an equal runs", 0, [client(**still), client(pod="s2-l1-2", new=1)], 100)
expect("while somebody below runs", 1, [client(**still), below], 100)
expect("with something away", 1, [client(**still)], 100, calm=DISTURBED)
expect("without work", 0, [client(outstanding=0, **still)], 100)
idle = {"outstanding": 0, "was": ["still", "without work"]}
expect("without work that should always come", 1, [client(command="burst", **idle), above], 100)
expect("and that has just been done, after a long wait", 0, [client(outstanding=0, command="burst", **still), above], 100)
expect("another level", 1, [client(level=2, was=["wrong level"])], 11)
expect("another level for a moment", 0, [client(level=2, was=["wrong level"])], 5)
expect("another level while something is away", 0, [client(level=2, was=["wrong level"])], 100, calm=DISTURBED)
expect("somebody's pod", 1, [client(pod="else", was=["wrong level"])], 11)
expect("a dead client", 1, [client(pid=NOBODY, was=["dead"])], 6)
expect("one that just died", 0, [client(pid=NOBODY)], 6)
expect("all of its memory", 0, [client(memoryLimit=8, memoryReserved=8)], 1)
expect("more than its memory", 1, [client(memoryLimit=8, memoryReserved=9)], 1, again=1)
sys.exit(failed)
