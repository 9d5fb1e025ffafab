#include "health.h"

#include "weir/base.h"

/* 13 graphics engine exception, 31 page fault, 43 channel reset, 45 clean-up after a killed
 * program, 68 video processor exception, 94 contained memory error: all are one program's, and end
 * with it. Not 109 (context switch timeout): the GPU is stuck. */
const uint32_t health_ignored_xids[] = {13, 31, 43, 45, 68, 94};
const size_t health_n_ignored_xids = countof(health_ignored_xids);

bool health_xid(struct health *health, uint64_t xid, const uint32_t *ignored, size_t n_ignored,
		uint64_t now)
{
	for (size_t i = 0; i < n_ignored; i++)
		if (ignored[i] == xid)
			return false;
	health->sick_end = now + HEALTH_REST;
	return true;
}

void health_asked(struct health *health, bool answered)
{
	health->silent = !answered;
}

bool health_good(const struct health *health, uint64_t now)
{
	return !health->silent && now >= health->sick_end;
}
