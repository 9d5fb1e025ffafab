/* One GPU: its clients, their demand bits, and what the agent clears in the demand words.
 *
 * A client has the same bit in the words of all levels, so it keeps it when its level changes.
 * Clients set bits; the agent only clears, by one rule (gpu_sweep). A bit may be set in the word of
 * level q if a client above q has it, or if it may belong to a client that has not come back after
 * the agent's restart, or came back a moment ago. All other bits are cleared. So is one whose
 * client reports no work: another may have set it. The client is asked, and sets it again if it
 * does have work. What holds for `word` of a page holds for `whole`; spatial.h says more.
 *
 * Level 0 needs no bit. A container gets another one only while more are free than it has, so the
 * first one leaves half of them, the second one a quarter, and each new one finds one. Clients
 * without share the last bit. While there are such clients above level 0, the agent looks at their
 * status pages each millisecond and keeps the bit for them.
 *
 * When a client may no longer write a page, the page gets a new generation (shm/region.h). Clients
 * keep all generations mapped, so there are only so many, in case somebody's level is lowered again
 * and again. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uthash.h>

#include "hardware/channels.h"
#include "hardware/process-use.h"
#include "hardware/self-test.h"
#include "shm/demand-page.h"
#include "shm/region.h"
#include "scheduler/max-blocking-time.h"
#include "policy/run-queue.h"

#include "weir/loop.h"
#include "weir/protocol.h"

#define GPU_ID_SIZE    41            /* GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx */
#define GPU_GRACE_NS   1000000000ull /* to claim a bit, and to learn of a lower level then */
#define GPU_SHARING_NS 1000000ull
#define GPU_WATCH_NS   MAX_BLOCKING_TIME_LOOK_NS
#define GPU_RENEWALS   256u /* new generations at once; a process of 0.1.0 has room for 341 */
#define GPU_RENEW_NS   600000000000ull /* beyond these, between two */
#define GPU_CLAIM_NS   200000000ull    /* for this long a bit may be set without work */

struct client;
struct scheduler;

/* The scheduler looks for the end of a run without a timer. */
struct end_poll {
	uint64_t run;  /* when that began */
	uint64_t left; /* ns for which it may still do so in this run */
	bool on;
};

struct gpu {
	uint8_t uuid[16];
	char id[GPU_ID_SIZE];
	char name[96];
	uint64_t memory;
	int index;   /* of NVML; -1: NVML does not list it */
	bool listed; /* by NVML */
	bool open;   /* has its demand pages */
	UT_hash_handle hh;

	struct region region;
	struct channels_gpu channels;
	/* preemption.c's: MPS servers of a level each; NULL: none. */
	struct channels_client *servers[WEIR_LEVELS];
	struct self_test self_test; /* of its channel groups */
	struct process_use use;
	/* Begins to end the processes of its clients for which client_end() was called. NULL: those
	 * that do not obey holds are not to end. */
	void (*end_disobedient)(struct gpu *gpu);
	struct client *clients;
	unsigned n_level[WEIR_LEVELS];
	/* contention.c's. */
	struct {
		bool urgent;                    /* clients must not wait until kernels end */
		bool fast_poll;                 /* work must be seen at once */
		const struct tenant *tight_slo; /* has such an objective; NULL: none has */
	} contention[WEIR_LEVELS];
	unsigned n_shared;
	uint64_t bits;     /* given out now */
	uint64_t reserved; /* given out before the agent's restart, not claimed yet */
	uint64_t reserved_until;
	uint64_t bits_refused; /* times that a client above level 0 got none of its own */
	uint32_t unsafe;       /* bit q: page q needs a new generation */
	int64_t renew_from;    /* pages are renewed from then on */
	const struct folder *root;
	uint64_t graces_until; /* somebody may act on an older level until then */
	bool watched;
	struct loop_timer watch, sharing;
	struct demand_page_look sms_looks[WEIR_DEMAND_LEVELS];

	/* scheduler.c's. */
	const struct policy *policy; /* NULL: the scheduler's, with its settings */
	struct policy_settings settings;
	struct run_queues queues;
	struct scheduler *scheduler; /* NULL: no client has come yet */
	bool sliced;                 /* clients of `sliced_level` share by slices: none is held */
	uint8_t sliced_level;
	/* Clients that the hardware slices now and then (run_queue.sliced): how many, the sum of
	 * their weights, and when that was seen. */
	struct {
		unsigned n;
		uint64_t weights, at;
	} sliced_among;
	bool limited;           /* a client has a compute limit */
	uint64_t limits_looked; /* when they were charged last */
	bool rated;             /* a client has a minimum rate */
	uint64_t rates_sum;     /* of these, in thousandths */
	uint64_t rates_looked;
	uint64_t yields_due;  /* when yields are looked at next, */
	uint64_t company_due; /* and who works below those that yield */
	uint64_t looked;      /* when at its clients last */
	struct end_poll end_poll;
	uint64_t refunds[WEIR_LEVELS]; /* charge.h's pools */
};

void gpu_format_id(const uint8_t uuid[16], char out[GPU_ID_SIZE]);
/* False: not an id of the form above. */
bool gpu_parse_id(const char *id, uint8_t out[16]);

/* Opens the demand pages and begins to wait for claims. The rest of @gpu is zero but for uuid, id,
 * name, memory and listed. */
int gpu_open(struct gpu *gpu, struct loop *loop, const struct folder *root);
/* Waits for claims from now on: clients could not connect before. */
void gpu_await_claims(struct gpu *gpu);
/* No client may be left. */
void gpu_close(struct gpu *gpu);

/* Gives @client a bit, @claimed_bit if it is free, and counts it at client->level. */
void gpu_add(struct gpu *gpu, struct client *client, uint8_t claimed_bit);
/* Clears its demand. @lives: it goes on without this agent, and keeps its bit for the next one. */
void gpu_remove(struct gpu *gpu, struct client *client, bool lives);
/* Gives it a bit if it needs one. gpu_tell() must follow. */
void gpu_set_level(struct gpu *gpu, struct client *client, uint8_t level);
/* Somebody who had @former has @level now, and must not write the pages in between. gpu_tell() must
 * follow. */
void gpu_revoke(struct gpu *gpu, uint8_t level, uint8_t former);
/* Renews pages if necessary, and sends LEVEL to all clients that must hear of something. */
void gpu_tell(struct gpu *gpu);

/* While it is @paused its demand does not count, whatever work it has. Call again at each look
 * while it is. */
void gpu_pause(struct gpu *gpu, struct client *client, bool paused);
/* Shows the demand of @client, if it has work and does not show any: it may have been told too late
 * to show it. */
void gpu_show(const struct gpu *gpu, const struct client *client);

static inline bool gpu_slices(const struct gpu *gpu, uint8_t level)
{
	return gpu->sliced && gpu->sliced_level == level;
}

/* Clients of different levels have MPS servers of their own, which share the GPU by time. */
static inline bool gpu_has_servers(const struct gpu *gpu)
{
	for (unsigned level = 0; level < WEIR_LEVELS; level++)
		if (gpu->servers[level])
			return true;
	return false;
}

/* What the timers do, for tests. */
void gpu_sweep(struct gpu *gpu, uint64_t now);
void gpu_share(struct gpu *gpu);
void gpu_tell_blocking(struct gpu *gpu, uint64_t now);
/* Call when clients, levels or yields have changed. */
void gpu_tell_spatial(struct gpu *gpu);
