#!/usr/bin/env python3
"""The experiments by which FLEP, EffiSha and GLoop are known. Called by bench/sched.sh."""

import sys

import players
import sched_shares
import suite

PARTS = {
    "d": ("endless co-runs at weights (FLEP 13, 14)", sched_shares.part_d),
    "f": ("2, 4, 8 instances, one with two thirds (GLoop 9, 11)", sched_shares.part_f),
    "k": ("weir-sim against both", sched_shares.part_k),
}

if __name__ == "__main__":
    sys.exit(suite.Suite("e2e/bench/sched.sh", __doc__, PARTS, 3, players.TENANTS).main())
