/* What clients are told on their control pages of the clients beside them: whether to expect a
 * hold, whether same-level clients may wait until kernels end, whether short launches go ahead of
 * long ones, and how many clients run at the same time. */
#pragma once

#include "scheduler/client.h"
#include "scheduler/gpu/gpu.h"

#define CONTENTION_AMONG_NS      20000000ull /* of work beside others: then shares matter */
#define CONTENTION_FAST_POLL_MAX 32u         /* clients of a level that are polled fast, at most */

/* Call when clients of @gpu, their levels or their objectives change, or its policy. */
void contention_find_urgent(struct gpu *gpu);
/* Whether work of clients of @level must be seen at once. */
bool contention_polls_fast(const struct gpu *gpu, uint8_t level);
/* Call after each decision. */
void contention_tell(struct gpu *gpu, uint64_t now);
