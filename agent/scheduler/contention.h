/* What clients are told of those beside them, on their control pages: whether a hold is to be
 * expected, whether equals may wait until kernels end, whether short launches go ahead of long
 * ones, and how many run at the same time. */
#pragma once

#include "scheduler/client.h"
#include "scheduler/gpu.h"
#include "policy/policy.h"

#define CONTENTION_URGENT_NS 5000000ull /* objectives below this make equals leave at once */
#define CONTENTION_KEEN_MAX  32u        /* clients of a level whose work is seen at once, at most */

/* @flag: of enum weir_control_flags. */
void contention_set_flag(struct client *client, uint32_t flag, bool set);
/* Clients of @gpu, their levels or objectives are others: finds on which levels equals are not to
 * wait until kernels end, nor until they are seen. @policy: the GPU's. */
void contention_find_urgent(struct gpu *gpu, const struct policy *policy);
/* Work of equals of @level is to be seen at once. */
bool contention_may_be_keen(const struct gpu *gpu, uint8_t level);
/* Tells all clients of @gpu, behind each decision. */
void contention_tell(struct gpu *gpu, uint64_t now);
