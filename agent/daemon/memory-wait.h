/* Allocations that wait because their GPU is full (`weir.dev/memory-full: wait`). A connection is a
 * wait; libweir waits, and the agent counts and tells. */
#pragma once

#include <stdint.h>

struct events;
struct gpus;
struct pods;
struct tenant;
struct gpu;
struct usage;

struct memory_wait {
	struct usage *usage; /* NULL: none */
	uint64_t began;
};

/* @bytes: as the client says. */
void memory_wait_begin(struct memory_wait *wait, struct tenant *tenant, struct gpu *gpu,
		       uint64_t bytes, uint64_t now);
void memory_wait_end(struct memory_wait *wait, uint64_t now);
/* Tells the pod of @tenant that it waits, if it did since the last look. */
void memory_wait_tell(struct events *events, struct pods *pods, struct tenant *tenant);
