/* A server that answers in an event loop on the GPU. */
#pragma once

#include "../workload.h"
#include "leaves.h"
#include "service.h"

struct loop_server {
	const struct service *service;
	uint32_t size;
	uint16_t port;
	uint32_t blocks; /* 0: as many as fit */
	uint32_t slots;  /* requests of a block at a time */
	uint32_t files;  /* connections, and one; 0: the library's default */
	struct leaves leaves;
};

/* Serves until workload_stopped(). Calls workload_ready() when it listens. Returns the number of
 * requests. */
uint64_t loop_serve(struct loop_server *server, struct workload *workload);
