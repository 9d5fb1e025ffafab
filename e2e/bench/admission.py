#!/usr/bin/env python3
"""How long the kubelet took to admit pods, by its log at verbosity 4. Usage: admission.py LOG."""

import datetime
import json
import re
import sys

LINE = re.compile(r"^I(\d{4} [\d:]+\.\d{6}) .*?\] \"(SyncLoop ADD|Pod is being synced for the first time)\" (.*)")


def quantile(values, q):
    return values[min(len(values) - 1, int(len(values) * q))]


def main():
    added, took = {}, []
    for line in open(sys.argv[1], errors="replace"):
        found = LINE.match(line)
        if not found:
            continue
        when = datetime.datetime.strptime(found[1], "%m%d %H:%M:%S.%f")
        pod = re.search(r"default/p\d+", found[3])
        if pod and found[2] == "SyncLoop ADD":
            added.setdefault(pod[0], when)
        elif pod and pod[0] in added:
            took.append((when - added.pop(pod[0])).total_seconds() * 1e3)
    if not took:
        sys.exit("the kubelet's log says nothing of admissions")
    took.sort()
    print(
        json.dumps(
            {
                "n": len(took),
                "p50_ms": round(quantile(took, 0.5), 3),
                "p99_ms": round(quantile(took, 0.99), 3),
                "max_ms": round(took[-1], 3),
            }
        )
    )


if __name__ == "__main__":
    main()
