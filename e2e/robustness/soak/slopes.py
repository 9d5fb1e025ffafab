#!/usr/bin/env python3
"""Does the agent's memory grow? Usage: slopes.py SAMPLES, lines of check.py.

The slope is that of straight lines through the samples of each agent that lived long enough, with one
slope for all of them. Prints it, and fails if it is over its limit; with less than five minutes of
samples it says nothing. Descriptors come and go with clients and are counted when all are gone."""

import sys

WARM_UP_S = 660  # of each agent, which remembers containers that are gone for 600 s
ENOUGH_S = 300
LIMIT_KIB = 4096  # in an hour
KIB = 2  # column


def groups(path):
    by_agent = {}
    for line in open(path):
        values = [float(word) for word in line.split()]
        by_agent.setdefault(values[1], []).append(values)
    for rows in by_agent.values():
        warm = [row for row in rows if row[0] >= rows[0][0] + WARM_UP_S]
        if len(warm) > 2:
            yield warm


def slope(agents, column):
    above = below = 0.0
    for rows in agents:
        mean_t = sum(row[0] for row in rows) / len(rows)
        mean_v = sum(row[column] for row in rows) / len(rows)
        above += sum((row[0] - mean_t) * (row[column] - mean_v) for row in rows)
        below += sum((row[0] - mean_t) ** 2 for row in rows)
    return 3600 * above / below


def main():
    agents = list(groups(sys.argv[1]))
    seconds = sum(rows[-1][0] - rows[0][0] for rows in agents)
    if seconds < ENOUGH_S:
        print(f"growth of the agent: not judged after {seconds:.0f} s")
        return 0
    found = slope(agents, KIB)
    values = [row[KIB] for rows in agents for row in rows]
    print(
        f"growth of the agent: {found:.0f} KiB an hour, at most {LIMIT_KIB}; "
        f"{min(values):.0f} to {max(values):.0f} in {seconds:.0f} s"
    )
    return 0 if found <= LIMIT_KIB else 1


if __name__ == "__main__":
    sys.exit(main())
