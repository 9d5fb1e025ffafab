/* Clients of one tenant and level take no turns, as they may wait for one another
 * (policy/run-queue.h). With the short slices of clients that take turns below others, two of them
 * that have work would stop each other (hardware/slices.h). So clients that work at the same time
 * as another one of their tenant and level share the GPU by slices, and for SIBLINGS_NS after that.
 * A client that works without others keeps its short slice: whoever comes from above waits for its
 * end. */
#pragma once

#include "scheduler/client.h"

/* How long they count as working together when they no longer do: each change calls the driver. */
#define SIBLINGS_NS 1000000000ull

/* Looks which clients of @gpu work together. True: that has changed, and with it their slices. */
bool siblings_look(struct gpu *gpu, uint64_t now);

/* Both are to have work at the same time, and neither waits for the other's turn. */
static inline bool siblings_share(const struct client *client, const struct client *other)
{
	return client->tenant == other->tenant && client->level == other->level &&
	       client->beside_sibling && other->beside_sibling;
}
