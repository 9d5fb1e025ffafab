/* Records what clients ask of one GPU as a trace (trace.h). In memory, up to a limit: at its end
 * the recording stops, and says so. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "scheduler/trace.h"

#define RECORD_MAX (16u << 20) /* bytes */

struct client;
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

/* -EBUSY: a recording is going on; -ENOMEM. */
int record_begin(struct record *record, const struct gpu *gpu, uint64_t now);
/* @client is there, and has a name that it keeps. Does nothing where its GPU is not recorded; so
 * does the next. */
void record_client(struct record *record, struct client *client);
/* @client launched @ns of work. */
void record_work(struct record *record, const struct client *client, uint64_t ns, uint64_t now);
/* The trace, the caller's. NULL: no memory, or nothing was recorded. */
char *record_end(struct record *record, uint64_t now);
