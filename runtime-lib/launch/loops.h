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
	uint64_t evictions, blocked, blocked_time; /* of loops that have ended */
};
PER_CLIENT(loops)

/* Worker: adds up what they say. Returns their evictions. */
uint64_t loops_tell(const struct client *client, struct weir_status_page *status);
