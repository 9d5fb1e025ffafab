/* For how long kernels may keep those above waiting. One whose work takes 5 ms hardly feels a wait
 * of 0.2 ms: then kernels that are no longer need no form that leaves, which would cost them up to
 * a tenth. Clients tell how long their work takes; what follows from that is told to those below
 * them. It is looked at now and then, and only where there are clients of different levels. */
#pragma once

#include "scheduler/gpu.h"

#define MAX_BLOCKING_TIME_LOOK_NS 250000000ull
#define MAX_BLOCKING_TIME_PART    20u      /* of the work above: that much it may take longer */
#define MAX_BLOCKING_TIME_MAX     1000000u /* ns */
#define MAX_BLOCKING_TIME_IDLE_NS 20000000000ull /* who had no work for so long does not count */

/* Of a GPU, when it is opened and closed. */
int max_blocking_time_init(struct gpu *gpu, struct loop *loop);
void max_blocking_time_deinit(struct gpu *gpu);
/* Its clients, or their levels, are others. */
void max_blocking_time_follow(struct gpu *gpu);

/* What the timer does, for tests. */
void max_blocking_time_tell(struct gpu *gpu, uint64_t now);
