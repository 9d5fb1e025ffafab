/* What modules know of a GPU. gpu.h says more. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uthash.h>

#include "hardware/channels.h"
#include "hardware/freeze.h"
#include "hardware/process-use.h"
#include "hardware/self-test.h"
#include "shm/demand-page.h"
#include "shm/region.h"
#include "scheduler/gpu/gpu-id.h"
#include "policy/run-queue.h"

#include "weir/loop.h"
#include "weir/protocol.h"

struct client;
struct scheduler;

/* looks.c's: the scheduler looks for the end of a run without a timer. */
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
	/* demand-bits.c's. */
	uint64_t bits;         /* given out now */
	uint64_t reserved;     /* given out before the agent's restart, not claimed yet */
	uint64_t bits_refused; /* times that a client above level 0 got none of its own */
	/* demand-words.c's. */
	struct demand_page_look sms_looks[WEIR_DEMAND_LEVELS];

	unsigned n_shared; /* clients with demand_bit_is_shared() */
	uint64_t reserved_until;
	uint64_t graces_until; /* somebody may act on an older level until then */
	uint32_t unsafe;       /* bit q: page q needs a new generation */
	int64_t renew_from;    /* pages are renewed from then on */
	const struct folder *root;
	struct freezer *freezer; /* of all GPUs */
	bool watched;
	struct loop_timer watch, sharing;

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
	uint64_t company_due; /* when it is looked at next who works below those that yield */
	uint64_t looked;      /* when at its clients last */
	struct end_poll end_poll;
	uint64_t refunds[WEIR_LEVELS]; /* charge.h's pools */
};
