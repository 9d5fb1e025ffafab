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

#include "compile/cache.h"
#include "compile/compile-counters.h"
#include "config/config.h"
#include "compile/helper.h"
#include "compile/request.h"
#include "scheduler/compile-container.h"

#include "weir/protocol.h"
#include "weir/transform.h"

#define COMPILE_REQUESTS_MAX  512 /* of all clients, beyond the first few of each container */
#define COMPILE_CONTAINER_MAX 64  /* of a container's clients */
#define COMPILE_FIRST         8   /* a container's requests that always find room */

struct compile_client;
/* @fd is -1 unless the status is OK, and stays the caller's. Must not free the client. */
typedef void compile_answer_fn(struct compile_client *client, const struct weir_compiled *message,
			       int fd);
/* Before the answer: the request is about this kernel, by name and image, whatever it is compiled
 * for. Must not free the client. */
typedef void compile_kernel_fn(struct compile_client *client, uint32_t id,
			       const struct digest *kernel);

/* To be embedded; zero except the functions and `container`. */
struct compile_client {
	compile_answer_fn *answer;
	compile_kernel_fn *kernel; /* NULL: none */
	struct compile_request *requests;
	unsigned n;
	/* Number of the last job started for this client. The container's number comes first, so
	 * that more processes do not get more service. */
	uint64_t served;
	struct compile_container *container;
};

struct compile_request {
	struct compile *compile;
	struct compile_client *client;
	struct compile_request *prev, *next; /* of the client */
	uint32_t id;
	int fd, object; /* the client's file; the cached object, or -1 */
	struct request head;
	struct async_hash hash;
	struct digest key; /* of what a job makes; */
	struct digest
		found; /* of the cached object: the same, or that of an object with all forms */
	struct compile_job *job; /* NULL: does not wait for a job */
	struct compile_request *job_prev, *job_next;
};

struct compile_job {
	struct compile *compile;
	struct digest key;
	UT_hash_handle hh;
	struct compile_job *prev, *next; /* of the waiting jobs */
	bool running;
	bool yields; /* its helper was killed for another container's job */
	struct compile_request *requests;
	int fd;
	uint64_t began;
	struct helper helper;
	uint64_t size;
	struct cache_draft draft;
	struct async_hash keeping;
};

struct compile {
	struct loop *loop;
	bool on;
	struct helper_program program;
	/* Hash of the program weir-compile: a new transformer or compiler gives new keys. */
	struct digest fingerprint;
	unsigned helpers;
	struct hash_queue hashes;
	struct cache cache;
	struct compile_job *jobs;    /* hash by key */
	struct compile_job *waiting; /* oldest first */
	unsigned n_running, n_requests;
	uint64_t started;
	struct compile_counters counters;
};

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
