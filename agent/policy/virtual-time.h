/* Virtual time of weighted fair queueing: a client's elapses while it runs, more slowly with more
 * weight. All policies that charge clients by weight count it so. Pure. */
#pragma once

#include <stdint.h>

#include "policy/policy.h"

#include "weir/base.h"

/* Virtual time is ns * VIRTUAL_SCALE / weight: for a weight of a whole GPU it is ns. */
#define VIRTUAL_SCALE (100ull * POLICY_WEIGHT_ONE)

/* @ns may be a refund. */
static inline int64_t virtual_time_of(int64_t ns, uint64_t weight)
{
	return (int64_t)((__int128)ns * (int64_t)VIRTUAL_SCALE / (int64_t)weight);
}

/* @time and @step, which may be a refund; but not less than 0. */
static inline uint64_t time_moved(uint64_t time, int64_t step)
{
	return step < 0 ? time - smaller(time, (uint64_t)-step) : time + (uint64_t)step;
}
