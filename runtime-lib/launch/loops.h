/* Loops of programs (weir/loop-link.h): which words their kernels look at, and what the status page
 * says of them. */
#pragma once

#include "client/level-binding.h"
#include "client/subsystem.h"

#include "weir/loop-link.h"

#define LOOPS_MAX 32 /* of a client */

/* Of a client. */
struct loops {
	const struct weir_loop_state *loop[LOOPS_MAX];
	struct loops_total {
		uint64_t evictions, blocked, blocked_time;
		uint64_t ran; /* ns on the GPU: a prediction of a loop's launch says nothing */
	} ended;              /* of loops that have ended */
	/* ns of `ran` of all: as of the last look, and what came while the hardware had stopped the
	 * client. A loop counts by the host's clock, and does not know that its kernel stands
	 * still. */
	uint64_t seen, stood_still;
};
PER_CLIENT(loops)

/* Column of the table (subsystem.h). */
void loops_fork(void);

/* Worker: adds up what they say. @stopped: the hardware has stopped the client, so what they ran
 * since the last look does not count. */
struct loops_total loops_tell(const struct client *client, struct weir_status_page *status,
			      bool stopped);
