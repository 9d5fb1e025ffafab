/* A service as the host sees it: sizes, the CPU's answer, and a client's requests with a check of
 * the replies. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "services.h"

/* One connection of a client. */
struct conversation {
	uint32_t number; /* of the connection, from 0 */
	uint32_t size;
	uint64_t count; /* requests made so far */
};

struct service {
	const char *name;
	uint32_t threads;                    /* of the block that answers a request on the GPU */
	uint32_t simulated, gpu, most, step; /* default sizes, the largest, and what divides them */
	size_t (*request_bytes)(uint32_t size);
	size_t (*reply_bytes)(uint32_t size);
	/* The server's side on the CPU. @state: zeroed memory of @state_bytes for all connections.
	 */
	size_t state_bytes;
	void (*answer)(void *state, uint32_t size, const void *request, void *reply);
	/* The client's side. */
	void (*make)(struct conversation *conversation, void *request);
	bool (*is_right)(const struct conversation *conversation, const void *request,
			 const void *reply);
};

/* Ends the program with 2 if there is no such service, or it has no such size. 0: its default. */
const struct service *service_find(const char *name, uint64_t size);
