/* The compile service: gives clients their kernels in forms that can leave, from the cache or made
 * by weir-compile.
 *
 *   COMPILE -> checked -> hashed -> cache ------------------> verified -> COMPILED
 *                                     \-> job -> weir-compile -> kept --/
 *
 * The key of an object is a hash of all that it is made from. The agent computes it, so that no
 * client decides what another one gets. Requests for the same key share a job. A few jobs run at a
 * time. The next one is that of the container, and then of its client, that was served longest ago.
 * When a client goes, its requests are dropped, and its jobs unless others wait for them or they
 * run already.
 *
 * Containers do not crowd each other out. A container has a limit of requests, and finds room for a
 * few even if all others together fill the queue. If a container without a running job waits while
 * no helper is free, a job that nobody waits for, or one of a container that has several, goes back
 * to the queue. */
#pragma once

#include <stdio.h>

#include "compile/jobs.h"
#include "config/config.h"

#define COMPILE_REQUESTS_MAX  512 /* of all clients, beyond the first few of each container */
#define COMPILE_CONTAINER_MAX 64  /* of a container's clients */
#define COMPILE_FIRST         8   /* a container's requests that always find room */

#define COMPILE_NONE ((struct compile){.program = {.fd = -1}, .cache = {.folder = {-1, -1}}})

/* @machine_code: the meaning of COMPILE_AUTO on this node. Without weir-compile or a cache folder
 * the service is off, and the log says so. */
int compile_init(struct compile *compile, struct loop *loop, const struct config_compile *config,
		 const char *cache_dir, bool machine_code);
void compile_deinit(struct compile *compile);

/* Takes @fd. Answers the client once, now or later. */
void compile_ask(struct compile *compile, struct compile_client *client, uint32_t id, int fd);
/* The client is gone. */
void compile_leave(struct compile_client *client);

/* Metrics of the service. */
void compile_metrics_write(FILE *out, const struct compile *compile);
