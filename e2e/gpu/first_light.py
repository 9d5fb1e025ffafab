#!/usr/bin/env python3
"""Everything that must be seen on a real GPU, part by part. Called by first-light.sh."""

import sys

import cost
import sharing
import suite
import truth

PARTS = {
    "w": ("our workloads, checked", truth.part_w),
    "c": ("bursts beside torch.mm, MPS", sharing.part_c),
    "d": ("bursts beside a training step, MPS", sharing.part_d),
    "h": ("applications bit for bit", truth.part_h),
    "j": ("agent killed under load", truth.part_j),
    "e": ("bursts beside both, time-slicing", sharing.part_e),
    "g": ("cost of a launch", cost.part_g),
    "f": ("throughput with nobody else", cost.part_f),
}

if __name__ == "__main__":
    sys.exit(suite.Suite("e2e/gpu/first-light.sh", __doc__, PARTS, 4).main())
