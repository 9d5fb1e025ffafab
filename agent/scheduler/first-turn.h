/* Clients whose first work after a pause waits until the agent has seen it.
 *
 * Below others slices are so short that nothing gets done in them. Clients whose first kernels come
 * at the same moment make the GPU switch from one to the next, 0.25 ms each, before the agent hears
 * of them. A request with a tight latency objective that comes at that moment waits for all these
 * switches: with three clients 1.1 ms, where its work takes 0.3 (H100). So while a client is there
 * that has such an objective, the gates of same-level clients without one are closed while they
 * pause, and the agent opens those of the client whose turn it is. That client waits for the agent,
 * about 0.2 ms, which is little after so long a pause. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define FIRST_TURN_PAUSE_NS 50000000ull
/* Of a level: for one other client the GPU switches no more often than where nobody waits. */
#define FIRST_TURN_CLIENTS 3u

struct client;

/* @client has no work, and its gates are to be closed. It must be one that takes turns. */
bool first_turn_waits(const struct client *client, uint64_t now);
