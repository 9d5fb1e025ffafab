/* One GPU: who is on it, who has which bit, and the demand words' tidiness.
 *
 * A client's bit is its own in the words of all levels, so that it keeps it when its level changes.
 * The words are written by clients; the agent only clears, with one rule (gpu_sweep): a bit may be
 * set in the word of level q if a client above q has it, or had until a moment ago, or if it may
 * belong to a client that did not come back yet after the agent's restart. All else goes.
 *
 * Beyond 63 clients, the others share the last bit: while there are such, the agent looks at their
 * status pages each millisecond and keeps the bit for them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uthash.h>

#include "shm/region.h"
#include "policy/run-queue.h"

#include "weir/loop.h"
#include "weir/protocol.h"

#define GPU_ID_SIZE    41            /* GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx */
#define GPU_GRACE_NS   1000000000ull /* to claim a bit, to act on a lower level */
#define GPU_SHARING_NS 1000000ull

struct client;

/* The end of a turn is looked for without a timer. */
struct watch {
	uint64_t run;  /* by when it began */
	uint64_t left; /* ns, of that turn */
	bool on;
};

struct gpu {
	uint8_t uuid[16];
	char id[GPU_ID_SIZE];
	char name[96];
	uint64_t memory;
	int index;   /* as NVML counts; -1: it did not tell us of it */
	bool listed; /* NVML told us of it */
	bool open;   /* has its demand pages */
	UT_hash_handle hh;

	struct region region;
	struct client *clients;
	unsigned n_level[WEIR_LEVELS];
	/* The scheduler's: equals are not to wait until kernels end; their work is to be seen at
	 * once. */
	bool urgent[WEIR_LEVELS], keen[WEIR_LEVELS];
	const struct tenant *hasty[WEIR_LEVELS]; /* has such an objective; NULL: nobody */
	unsigned n_shared;
	uint64_t bits;     /* given out now */
	uint64_t reserved; /* given out before the agent's restart, not claimed yet */
	uint64_t reserved_until;
	uint64_t graces_until; /* a sweep is due, and the last by then; 0: none is */
	struct loop_timer sweep, sharing, blocking;

	/* scheduler.c's. */
	const struct policy *policy; /* NULL: the scheduler's, with its settings */
	struct policy_settings settings;
	struct run_queues queues;
	uint64_t looked; /* when at its clients last */
	struct watch watch;
	uint64_t refunds[WEIR_LEVELS]; /* charge.h's pools */
};

void gpu_format_id(const uint8_t uuid[16], char out[GPU_ID_SIZE]);
/* False: not an id of the form above. */
bool gpu_parse_id(const char *id, uint8_t out[16]);

/* Opens the demand pages and begins to wait for claims. The rest of @gpu is zero but for uuid, id,
 * name, memory and listed. */
int gpu_open(struct gpu *gpu, struct loop *loop, const struct folder *root);
/* No client may be left. */
void gpu_close(struct gpu *gpu);

/* Gives @client a bit, the claimed one where it is free, and counts it in at client->level. */
void gpu_add(struct gpu *gpu, struct client *client, uint8_t claimed_bit);
/* Counts it out, and clears its demand. @lives: it goes on without us, so its bit stays its own for
 * the next agent. */
void gpu_remove(struct gpu *gpu, struct client *client, bool lives);
/* The client has yet to be told. */
void gpu_set_level(struct gpu *gpu, struct client *client, uint8_t level);

/* What the timers do, for tests. */
void gpu_sweep(struct gpu *gpu, uint64_t now);
void gpu_share(struct gpu *gpu);
void gpu_tell_blocking(struct gpu *gpu, uint64_t now);
