/* Same-level clients with nobody above them share a GPU through the hardware's slices alone, where
 * the policy allows it and each of them has a channel group: none is held. If that depends on what
 * work they have (policy.h: slices_now), the run queue decides it. */
#pragma once

#include "scheduler/gpu/gpu.h"

#define SLICE_SHARES_NS 100000000ull /* between two changes of slices: each calls the driver */

/* Clients of @gpu have come, gone, or changed, or its policy: finds the level that shares so. */
void slice_shares_refresh(struct gpu *gpu);
/* Call after each decision: slices depend on which clients have work. */
void slice_shares_look(struct gpu *gpu, uint64_t now);
