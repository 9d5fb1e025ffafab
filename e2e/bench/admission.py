#!/usr/bin/env python3
"""How long the kubelet took to admit pods, and of that the plugin's Allocate, by its log at verbosity 4.
Usage: admission.py LOG."""

import datetime
import json
import re
import sys

ADDED, ASKED, ADMITTED = "SyncLoop ADD", "Making allocation request for device plugin", "Pod Admit Result"
LINE = re.compile(rf"^I(\d{{4}} [\d:]+\.\d{{6}}) .*?\] \"({ADDED}|{ASKED}|{ADMITTED})\" .*(default/p\d+)")


def quantiles(values):
    values = sorted(values)

    def at(q):
        return round(values[min(len(values) - 1, int(len(values) * q))], 3)

    return {"n": len(values), "p50_ms": at(0.5), "p99_ms": at(0.99), "max_ms": at(1)}


def main():
    seen, admission, allocate = {}, [], []
    for line in open(sys.argv[1], errors="replace"):
        found = LINE.match(line)
        if not found:
            continue
        when = datetime.datetime.strptime(found[1], "%m%d %H:%M:%S.%f")
        pod = seen.setdefault(found[3], {})
        pod.setdefault(found[2], when)
        if found[2] == ADMITTED and len(pod) == 3:
            admission.append((when - pod[ADDED]).total_seconds() * 1e3)
            allocate.append((when - pod[ASKED]).total_seconds() * 1e3)
            del seen[found[3]]
    if not admission:
        sys.exit("the kubelet's log says nothing of admissions")
    print(json.dumps({"admission": quantiles(admission), "allocate": quantiles(allocate)}))


if __name__ == "__main__":
    main()
