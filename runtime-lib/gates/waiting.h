/* Which other clients wait for the kernels of a client, or did so lately. The autotuner asks. */
#pragma once

#include "autotune/autotuner.h"
#include "client/client.h"
#include "client/subsystem.h"

/* The worker writes it; any thread reads it. */
struct waiters {
	_Atomic int waiting; /* enum waiting */
	/* ns: a kernel up to this long may run to its end although others wait (README.md). */
	_Atomic uint32_t max_blocking_time;
	/* Those that wait are higher-level clients whose latest work was short, and needed no SMs
	 * of its own (struct weir_demand_page, places). */
	_Atomic int places;
	/* Higher-level clients share the GPU, or did so lately: more may come. */
	_Atomic int below_lately;

	/* Worker: until when something that was seen counts, ns. */
	uint64_t waited_until, urgent_until, held_until, below_until;
	unsigned places_seen; /* looks */
};
PER_CLIENT(waiters)

/* Columns of the table. */
void waiting_look(struct client *client, struct tick *tick);
void waiting_work(struct client *client, struct tick *tick);
