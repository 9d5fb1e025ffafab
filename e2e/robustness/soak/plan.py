#!/usr/bin/env python3
"""What a soak does when, from its seed: a line `SECOND KIND ARGUMENT` for each event.

Usage: plan.py SEED SECONDS SLOTS. The last tenth is calm, and the first events are one of each kind,
as far as there is time. After the first third no agent is killed, so that one lives long enough for its
memory to be judged."""

import random
import sys

# kind: weight, and its argument
KINDS = {
    "client": (40, lambda r, slots: r.randrange(slots)),  # SIGKILL to the program in this slot
    "pod": (25, lambda r, slots: r.randrange(slots)),  # deleted at once
    "slow": (7, lambda r, slots: r.randint(4, 12)),  # so many connections that say or read nothing
    "clock": (5, lambda r, slots: r.choice((-3600, -90, 5, 3600, 7 * 86400))),  # seconds from the true time
    "plugin": (6, lambda r, slots: r.randint(0, 3)),  # SIGKILL, back after so many seconds
    "disk": (4, lambda r, slots: r.randint(3, 8)),  # full for so many seconds
    "agent": (4, lambda r, slots: r.randint(0, 2)),
    "kubelet": (4, lambda r, slots: r.randint(0, 3)),
    "api": (3, lambda r, slots: r.randint(2, 12)),
}
PAUSE = (2.0, 8.0)  # seconds between events


def plan(seed, seconds, slots):
    chance = random.Random(seed)
    first = [kind for kind in KINDS if kind not in ("client", "pod")]
    chance.shuffle(first)
    first = [kind for one in first for kind in ("client", one, "pod")]
    at, end = 0.0, seconds * 0.9
    # A short one has to be quick to have everything in it.
    pace = min(1.0, 0.8 * end / (len(first) * sum(PAUSE) / 2))
    while True:
        at += chance.uniform(*PAUSE) * pace
        if at > end:
            return
        kinds = [kind for kind in KINDS if kind != "agent" or at < seconds / 3]
        kind = first.pop(0) if first else chance.choices(kinds, [KINDS[kind][0] for kind in kinds])[0]
        yield f"{at:.1f} {kind} {KINDS[kind][1](chance, slots)}"


if __name__ == "__main__":
    print("\n".join(plan(*map(int, sys.argv[1:4]))))
