#!/usr/bin/env python3
"""Reads from the kubelet's log at verbosity 4 how long it took to admit pods, and how long each of the plugin's two answers
took: GetPreferredAllocation, and Allocate with the kubelet's checkpoint. Usage: admission.py LOG."""

import datetime
import json
import math
import re
import sys

ADDED, ADMITTED = "SyncLoop ADD", "Pod Admit Result"
PREFERENCE, ALLOCATE = "Issuing a GetPreferredAllocation call for container", "Making allocation request for device plugin"
# From one message to another. Pods come one after the other, as the messages between name a pod only by its uid.
SPANS = {"admission": (ADDED, ADMITTED), "preference": (PREFERENCE, ALLOCATE), "allocate": (ALLOCATE, ADMITTED)}
LINE = re.compile(rf'^I(\d{{4}} [\d:]+\.\d{{6}}) .*?\] "({ADDED}|{PREFERENCE}|{ALLOCATE}|{ADMITTED})"(.*)')
POD = re.compile(r"default/p\d+")


def quantiles(values):
    values = sorted(values)

    def at(q):
        return round(values[math.ceil(len(values) * q) - 1], 3)

    return {"n": len(values), "p50_ms": at(0.5), "p99_ms": at(0.99), "max_ms": at(1)}


def main():
    seen, spans = {}, {name: [] for name in SPANS}
    for line in open(sys.argv[1], errors="replace"):
        found = LINE.match(line)
        if not found or (found[2] in (ADDED, ADMITTED) and not POD.search(found[3])):
            continue
        if found[2] == ADDED:
            seen = {}
        seen[found[2]] = datetime.datetime.strptime(found[1], "%m%d %H:%M:%S.%f")
        if found[2] == ADMITTED and len(seen) == 4:
            for name, (begin, end) in SPANS.items():
                spans[name].append((seen[end] - seen[begin]).total_seconds() * 1e3)
            seen = {}
    if not spans["admission"]:
        sys.exit("the kubelet's log has no admissions")
    print(json.dumps({name: quantiles(values) for name, values in spans.items()}))


if __name__ == "__main__":
    main()
