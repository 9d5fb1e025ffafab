/* Starts: how long a launch waits that goes into an idle stream (none of its launches outstanding).
 *
 * With a latency objective and a predicted time, such a launch is measured to its end. It is late
 * if it ends later than the objective plus its predicted time, or, if it was evicted, if it had not
 * begun by the objective. Without, it starts at once behind an open gate, and behind a closed one
 * when the worker sees that open. */
#pragma once

#include "client/level-binding.h"
#include "client/subsystem.h"
#include "measure/sample.h"

struct start {
	_Atomic uint64_t starts;
	_Atomic uint64_t since; /* ns, of the launch that waits to start; 0: none */
	uint64_t late;          /* worker */
};
PER_CLIENT(start)

/* Launch path: non-zero: such a launch is to be measured, and was made at this time. */
static inline uint64_t start_measured(const struct level_binding *binding, uint64_t predicted)
{
	return predicted && binding_has_slo(binding) ? client_now() : 0;
}

/* Launch path: it is not measured. @closed: its gate was closed when it was put. */
static inline void start_begin(struct client *client, bool closed)
{
	struct start *start = start_of(client);
	uint64_t none = 0;

	/* Launches that wait behind the same closed gates start together: the first counts. */
	if (closed)
		atomic_compare_exchange_strong(&start->since, &none, client_now());
	else
		add_relaxed(&start->starts, 1);
}

/* Any thread: all launches are finished, so they have started. The worker may look much later. */
void start_done(struct client *client, const struct level_binding *binding);

/* Worker: a measured launch has ended. The worker may see an end late by one look. */
void start_ended(struct client *client, const struct sample *sample);

/* Columns of the table. */
void start_look(struct client *client, struct tick *tick);
void start_work(struct client *client, struct tick *tick);
