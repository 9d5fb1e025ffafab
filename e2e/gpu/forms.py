#!/usr/bin/env python3
"""What kernels cost in the forms that can leave, and how soon they leave. Called by bench/forms.sh."""

import sys

import form_cost
import form_delay
import form_sharing
import form_truth
import suite

PARTS = {
    "f": ("kernels that can have each form", form_truth.part_f),
    "b": ("how soon every workload leaves", form_delay.part_b),
    "c": ("64 queued kernels stand still", form_delay.part_c),
    "a": ("every kernel alone, in the form that was chosen", form_cost.part_a),
    "g": ("the first use of a module", form_cost.part_g),
    "t": ("how fast the transformer is", form_cost.part_t),
    "h": ("results under evictions", form_truth.part_h),
    "d": ("bursts beside short and long blocks, MPS", form_sharing.part_d),
    "e": ("bursts beside short and long blocks, time-slicing", form_sharing.part_e),
}

if __name__ == "__main__":
    sys.exit(suite.Suite("e2e/bench/forms.sh", __doc__, PARTS, 3).main())
