/* Same-level clients with nobody above them share a GPU through the hardware's slices alone, where
 * the policy allows it and each of them has a channel group: none is held. */
#pragma once

#include "scheduler/gpu.h"

/* Clients of @gpu have come, gone, or changed, or its policy: finds the level that shares so. */
void slice_shares_refresh(struct gpu *gpu);
