/* Whether a GPU can be handed out. Pure, on the caller's clock.
 *
 * A GPU is sick while it does not answer, and for a while after an XID error that is not merely a
 * program's own fault. It is well again as soon as it answers and HEALTH_REST has passed without
 * another such error: a kubelet never forgets an unhealthy device by itself.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HEALTH_REST (60ull * 1000000000ull) /* ns */

struct health {
	bool silent;       /* did not answer when last asked */
	uint64_t sick_end; /* of the time after an error; 0: none */
};

/* XIDs that say nothing about the GPU, in the default configuration. */
extern const uint32_t health_ignored_xids[];
extern const size_t health_n_ignored_xids;

/* An XID error at @now. False: it is one of @ignored. */
bool health_xid(struct health *health, uint64_t xid, const uint32_t *ignored, size_t n_ignored,
		uint64_t now);
/* The GPU was asked something, and answered or not. */
void health_asked(struct health *health, bool answered);
bool health_good(const struct health *health, uint64_t now);
