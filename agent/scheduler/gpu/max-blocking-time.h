/* For how long kernels may keep clients of higher levels waiting. A client whose work takes 5 ms
 * hardly feels a wait of 0.2 ms. So kernels below it that are no longer than that need no form that
 * leaves, which would cost them up to a tenth. Clients report how long their work takes
 * (`busy_period`); the agent tells lower levels what follows from that. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "weir/protocol.h"

#define MAX_BLOCKING_TIME_LOOK_NS 250000000ull   /* between two looks at a GPU's clients */
#define MAX_BLOCKING_TIME_PART    20u            /* a higher client's work may take 1/20 longer */
#define MAX_BLOCKING_TIME_MAX     1000000u       /* ns */
#define MAX_BLOCKING_TIME_IDLE_NS 20000000000ull /* clients idle for so long are ignored */

/* A client's part: when it last had work, which its counter of launches shows. */
struct max_blocking_client {
	uint64_t launches, worked_at; /* 0: never */
};

/* What one look at all clients of a GPU has found. */
struct max_blocking_look {
	uint64_t least[WEIR_LEVELS]; /* ns that all clients of the level can wait */
	unsigned clients[WEIR_LEVELS];
	unsigned concurrent[WEIR_LEVELS]; /* with work, and kernels that run beside others' */
};

void max_blocking_time_begin(struct max_blocking_look *look);
/* @slo: ns; 0: none. */
void max_blocking_time_add(struct max_blocking_look *look, struct max_blocking_client *client,
			   const struct weir_status_page *status, uint8_t level, uint64_t slo,
			   uint64_t now);
/* The result for each level, in ns. @may_return: clients of any level may come back after the
 * agent's restart. */
void max_blocking_time_find(const struct max_blocking_look *look, bool may_return,
			    uint32_t out[WEIR_LEVELS]);
