#!/usr/bin/env python3
"""The experiments by which FLEP, EffiSha and GLoop are known. Called by bench/sched.sh."""

import sys

import players
import sched_early
import sched_pairs
import sched_servers
import sched_shares
import sched_torch
import suite

PARTS = {
    "d": ("endless co-runs at weights (FLEP 13, 14)", sched_shares.part_d),
    "f": ("2, 4, 8 instances, one with two thirds (GLoop 9, 11)", sched_shares.part_f),
    "k": ("weir-sim against both", sched_shares.part_k),
    "a": ("pairs: the small one has priority (FLEP 8)", sched_pairs.part_a),
    "b": ("pairs of equals (FLEP 10, 11)", sched_pairs.part_b),
    "c": ("triplets of equals (FLEP 12)", sched_pairs.part_c),
    "i": ("latency objectives beside equals", sched_servers.part_i),
    "g": ("servers beside a batch job (GLoop 13, 14)", sched_servers.part_g),
    "e": ("eleven, one behind the other (EffiSha 11, 12)", sched_pairs.part_e),
    "l": ("demand before the launch", sched_early.part_l),
    "h": ("how well times are predicted", sched_servers.part_h),
    "j": ("PyTorch, eight clients", sched_torch.part_j),
}

if __name__ == "__main__":
    sys.exit(suite.Suite("e2e/bench/sched.sh", __doc__, PARTS, 3, [*players.TENANTS, *sched_servers.TENANTS, *sched_torch.TENANTS]).main())
