/* A TCP server on loopback with the input and output on the CPU: it collects complete requests and
 * hands them over in batches. */
#pragma once

#include "../workload.h"
#include "service.h"

#define FRONT_CONNECTIONS_MAX 1024

/* Fills in @replies[slot] from @requests[slot] for @n slots. */
typedef void front_answer(void *context, const uint32_t *slots, uint32_t n);

struct front {
	const struct service *service;
	uint32_t size;
	uint16_t port;
	/* Room for each slot, one behind the other. */
	uint8_t *requests, *replies;
	front_answer *answer;
	void *context;
};

/* Serves until workload_stopped(). Calls workload_ready() when it listens. Returns the number of
 * requests. */
uint64_t front_serve(const struct front *front, struct workload *workload);
