/* Priorities of launches. Under MPS the GPU begins the waiting blocks with the greatest priority
 * first, whichever client launched them. A gate only keeps back what a client has not begun;
 * priorities let others go ahead of the blocks that it has begun to queue:
 *
 * - Clients of several levels: each launch has the priority of its level. A same-level client that
 *   had work first is a step ahead of those that come while it is at work.
 * - Clients of one level: a priority by the predicted length, short launches first (FLEP's shortest
 *   remaining time first, by whole launches).
 * - Launches with a bounded number of workers are a step ahead. Else a native kernel's waiting
 * blocks would take the SMs between two of them, and bounded kernels would wait for the native one.
 *
 * The driver's priorities belong to streams, and most programs use a default stream, which has
 * none. So each launch is given its own, as an attribute. */
#pragma once

#include "client/stream.h"
#include "gates/waiting.h"
#include "shim/call.h"

struct launch_order {
	_Atomic unsigned priorities; /* of launches, beside the least; 0: they mean nothing here */
	_Atomic int unordered;       /* something was launched that has no priority by its length */
	/* Launches of waiting same-level clients go ahead of this client's blocks; the worker sets
	 * it. A client that cannot be told apart from its own waits for less than twice its own
	 * time. */
	_Atomic int yields;

	/* Worker. */
	uint64_t ordered_at; /* ns, from when all launches count as ordered */
	bool ordered;        /* WEIR_STATUS_ORDERED */
};
PER_CLIENT(launch_order)

/* ns: all launches that are longer have the least priority of their level. */
#define PRIORITY_LONG_NS (8u * LONG_KERNEL_NS)

/* The launch keeps the priority that it has without us: the program gives it one, or it is
 * cooperative. Blocks of a cooperative kernel wait for each other. Of two such kernels with
 * different priorities each may get a part of the SMs and wait for ever, unless the GPU begins such
 * a kernel as a whole, which NVIDIA does not say. */
bool priority_stays(const CUlaunchConfig *config);

/* Launch path: this launch cannot be ordered by its length, so same-level clients cannot either. */
static inline void priority_note_unordered(const struct stream *stream, bool ordered)
{
	struct launch_order *order = launch_order_of(stream->client);

	if ((!ordered || stream->priority < 0) && !load_relaxed(&order->unordered))
		store_relaxed(&order->unordered, 1);
}

#define PRIORITY_OWN 1 /* not a priority: the launch's stream has the right one */

/* Of a launch that is predicted to take @predicted ns; 0: not known. @formed: in a form whose
 * workers can be bounded. */
int priority_under_mps(const struct stream *stream, const struct level_binding *binding,
		       uint64_t predicted, bool formed);
static inline int priority_of_launch(const struct stream *stream,
				     const struct level_binding *binding, uint64_t predicted,
				     bool formed)
{
	return load_relaxed(&launch_order_of(stream->client)->priorities)
		       ? priority_under_mps(stream, binding, predicted, formed)
		       : PRIORITY_OWN;
}

/* Launches with that priority. False: not launched, because it is PRIORITY_OWN, the launch's
 * priority stays, or the driver refuses; launch without. @per_thread: which default stream
 * @config means. */
bool priority_launch(struct client *client, int priority, const CUlaunchConfig *config,
		     bool per_thread, CUfunction function, void **params, void **extra,
		     CUresult *result);

/* Columns of the table. */
void priority_open(struct client *client);
void priority_stream_made(struct stream *stream);
void priority_work(struct client *client, struct tick *tick);
