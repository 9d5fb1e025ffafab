/* Records the work that clients launch on one GPU, as a trace (trace.h), in memory. At a limit the
 * recording ends, and says so in the trace. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "scheduler/trace.h"

#define RECORD_MAX (16u << 20) /* bytes */

struct gpu;

struct record {
	const struct gpu *gpu; /* NULL: nothing is recorded */
	uint64_t begun, last;
	unsigned n_clients;
	bool full;
	FILE *out;
	char *text;
	size_t size;
};

/* A client's part. */
struct record_client {
	char name[TRACE_NAME_MAX]; /* in the trace; it does not change */
	uint64_t gpu_time;         /* ns of the work that it has launched, as of the last look */
};

/* @id: the GPU's. -EBUSY: a recording is going on; -ENOMEM. */
int record_begin(struct record *record, const struct gpu *gpu, const char *id, uint64_t now);
/* Only while @client's GPU is recorded, as the next one. @traits->name may have any characters. */
void record_add(struct record *record, struct record_client *client, struct trace_client *traits);
/* @gpu_time: on the client's status page now. */
void record_launches(struct record *record, struct record_client *client, uint64_t gpu_time,
		     uint64_t now);
/* The trace, which the caller frees. NULL: no memory, or no recording. */
char *record_end(struct record *record, uint64_t now);
