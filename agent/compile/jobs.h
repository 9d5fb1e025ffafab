/* What the compile service (compile.h) keeps: its clients, their requests, and jobs. */
#pragma once

#include "compile/cache.h"
#include "compile/compile-counters.h"
#include "compile/helper.h"
#include "compile/request.h"
#include "scheduler/compile-container.h"

#include "weir/protocol.h"

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
	struct digest key;       /* of what a job makes; */
	struct digest found;     /* of the cached object: the same, or of one with all forms */
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
