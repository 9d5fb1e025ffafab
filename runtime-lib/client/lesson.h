/* What this process found out about its kernels, on its way to the agent: the worker fills a slot,
 * the link thread sends it. A lesson without a slot is lost: it saves later processes time, no
 * more. */
#pragma once

#include "client/client.h"

#include "weir/protocol.h"

#define LESSONS_MAX 32 /* of all clients */

/* Worker. False: there is no room now. */
bool lesson_put(const struct client *client, const uint8_t kernel[32],
		const struct weir_profile *profile);

/* Link thread: sends what there is on @socket. Returns when to call again, in ns; UINT64_MAX:
 * never. */
uint64_t lesson_send(const struct client *client, int socket, uint64_t now);

/* While neither thread uses the client: drops its lessons. */
void lesson_reset(const struct client *client);
