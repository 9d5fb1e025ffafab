/* Same-level clients with nobody above them share a GPU through the hardware's slices alone, where
 * the policy allows it and each of them has a channel group: none is held. */
#pragma once

#include "scheduler/gpu.h"

#define SLICE_SHARES_NS 100000000ull /* slices are changed no more often: the driver is called */

/* Where the policy allows it only while some things hold of their work, the run queue decides
 * (policy.h: slices_now). */

/* Clients of @gpu have come, gone, or changed, or its policy: finds the level that shares so. */
void slice_shares_refresh(struct gpu *gpu);
/* Call after each decision: slices depend on which clients have work. */
void slice_shares_look(struct gpu *gpu, uint64_t now);
