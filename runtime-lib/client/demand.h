/* Demand: our bits in the demand words of the levels below, set while launches are outstanding.
 * That there is work, and that there is none any more, is told in the status page at the same
 * moment: the agent sees an equal's work without having to wait for the worker's next look. */
#pragma once

#include "client/client.h"

enum demand {
	DEMAND_NONE,
	DEMAND_SHOWN,
	DEMAND_EARLY, /* for a launch that is expected (early.h) */
};

/* Launch path, after the stream's `begun` has grown: one load when the bits are set already. */
static inline void demand_raise(struct client *client, const struct level_binding *binding,
				uint64_t predicted);

/* @predicted: ns of the work that comes. */
void demand_set(struct client *client, const struct level_binding *binding, uint64_t predicted);

/* Sets the bits, though nothing is outstanding yet. False: they were set already. */
bool demand_set_early(struct client *client, const struct level_binding *binding);

/* Clears the bits if no launch is outstanding, unless the next is expected at once: then the worker
 * clears them a little later. Any thread, never on the launch path. */
void demand_settle(struct client *client);

/* The worker's part: as above, and the time to linger is over at @now. True: bits are (still) set.
 */
bool demand_expire(struct client *client, uint64_t now);

/* Clears the bits whatever is outstanding: the context goes. */
void demand_drop(struct client *client);

/* Publishes another binding: our demand moves to its words. */
void demand_move(struct client *client, const struct level_binding *next);

/* Clears what a launch that had read @former just before may have set by it since. */
void demand_scrub(struct client *client, const struct level_binding *former);

static inline void demand_raise(struct client *client, const struct level_binding *binding,
				uint64_t predicted)
{
	/* seq_cst, as is the growth of `begun`: either we see that the bits were cleared, or who
	 * cleared them sees our launch and sets them again. */
	if (atomic_load(&client->demanding) != DEMAND_SHOWN)
		demand_set(client, binding, predicted);
}
