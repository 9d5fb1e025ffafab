/* The compile service: clients' kernels in forms that can leave, from the cache, or made by
 * weir-compile.
 *
 *   COMPILE -> checked -> hashed -> cache ------------------> verified -> COMPILED
 *                                     \-> job -> weir-compile -> kept --/
 *
 * What is made is found by a hash of all that it is made from; the agent computes it, so that
 * nobody can say what somebody else will get. Requests for the same thing share a job. Jobs run a
 * few at a time; the next is that of the container that was served longest ago, and of its client.
 * A client that is gone has its requests dropped, and the jobs that nobody else waits for; one that
 * runs already goes on, for the cache. */
#pragma once

#include <stdio.h>

#include "compile/cache.h"
#include "config/config.h"
#include "compile/helper.h"

#include "weir/protocol.h"
#include "weir/transform.h"

#define COMPILE_REQUESTS_MAX 512 /* of all clients */
#define COMPILE_REASONS_MAX  48  /* that metrics tell apart */
#define COMPILE_REASON_SIZE  96

struct compile_client;
/* @fd is -1 unless the status is OK, and stays the caller's. Must not free the client. */
typedef void compile_answer_fn(struct compile_client *client, const struct weir_compiled *message,
			       int fd);

/* To be embedded; zeroed but for `answer` and `container`. */
struct compile_client {
	compile_answer_fn *answer;
	struct compile_request *requests;
	unsigned n;
	/* The service's count when a job was last started: of it, and of any client of its
	 * container, so that many processes, or ever new ones, are served no sooner than one. */
	uint64_t served, *container;
};

enum compile_bucket { COMPILE_BUCKETS = 8 };
extern const double compile_buckets[COMPILE_BUCKETS]; /* seconds */

struct compile_reason {
	enum weir_form form;
	char text[COMPILE_REASON_SIZE];
	uint64_t n;
};

struct compile_counters {
	uint64_t answers[WEIR_COMPILE_OFF + 1];
	uint64_t hits, misses, known_failures, damaged, unkept;
	uint64_t outcomes[HELPER_OUTCOMES];
	uint64_t nanoseconds, buckets[COMPILE_BUCKETS];
	/* Forms refused in objects that were made; the last row of all that found no room. */
	struct compile_reason reasons[COMPILE_REASONS_MAX];
	unsigned n_reasons;
	uint64_t other_reasons;
};

/* Waits, runs, or keeps its result. */
struct compile_job {
	struct compile *compile;
	struct digest key;
	UT_hash_handle hh;
	struct compile_job *prev, *next; /* waiting */
	bool running;
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
	/* Of weir-compile: what changes in transformer or compiler changes its bytes. */
	struct digest fingerprint;
	unsigned helpers;
	struct hash_queue hashes;
	struct cache cache;
	struct compile_job *jobs;    /* hash by key */
	struct compile_job *waiting; /* the oldest first */
	unsigned n_running, n_requests;
	uint64_t started;
	struct compile_counters counters;
};

#define COMPILE_NONE ((struct compile){.program = {.fd = -1}, .cache = {.folder = {-1, -1}}})

/* @machine_code: what COMPILE_AUTO means on this node. An agent without weir-compile, or without a
 * cache folder, has the service off, and says so. */
int compile_init(struct compile *compile, struct loop *loop, const struct config_compile *config,
		 const char *cache_dir, bool machine_code);
void compile_deinit(struct compile *compile);

/* Takes @fd. The client is answered once, now or later. */
void compile_ask(struct compile *compile, struct compile_client *client, uint32_t id, int fd);
/* The client is gone. */
void compile_leave(struct compile_client *client);

/* Metrics of the service. */
void compile_metrics_write(FILE *out, const struct compile *compile);
