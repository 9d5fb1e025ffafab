/* Runs a policy on the real clock. It looks at the status pages of clients that may contend, tells
 * the run queues what it sees, and writes the hold words that they decide on. Where no two clients
 * are of one level, or the policy never holds, it does not wake up at all. */
#pragma once

#include "scheduler/client.h"
#include "scheduler/gpu/gpu.h"
#include "policy/coexec/memory.h"
#include "policy/policy.h"
#include "scheduler/looks.h"
#include "scheduler/record.h"

#include "weir/loop.h"

#define SCHEDULER_COSTLY   10ull          /* times settings.cost: the most that is believed */
#define SCHEDULER_LONG_NS  2000000ull     /* a launch that no same-level client should wait for */
#define SCHEDULER_LONG_FOR 10000000000ull /* so long more is expected: long launches, much work */
#define SCHEDULER_HOLD_NS  1000000000ull  /* a hold ends then unless it is renewed */

struct scheduler {
	const struct policy *policy;    /* of GPUs that have none of their own */
	const struct policy *commanded; /* by weirctl, for all GPUs; NULL: none */
	struct policy_settings settings;
	struct loop_timer timer;
	struct gpu **gpus; /* the registry's hash */
	struct looks looks;
	uint64_t due; /* what the timer is set to; 0: it is not */
	struct scheduler_timers {
		uint64_t n, late; /* expirations; ns that they were late, in all */
	} timers;
	struct record record;
	struct coexec_memory memory;
};

int scheduler_init(struct scheduler *scheduler, struct loop *loop, const struct policy *policy,
		   const struct policy_settings *settings, struct gpu **gpus);
void scheduler_deinit(struct scheduler *scheduler);
/* By weirctl: of all GPUs, also of those that come later. All runs start over. */
void scheduler_set_policy(struct scheduler *scheduler, const struct policy *policy);
/* By a changed configuration: of GPUs that have no policy of their own. Ends a commanded policy.
 * Call scheduler_configure() for each GPU then. */
void scheduler_take(struct scheduler *scheduler, const struct policy *policy,
		    const struct policy_settings *settings);
/* By the configuration: of one GPU. If something changes, its runs start over. A commanded policy
 * stays. */
void scheduler_configure(struct scheduler *scheduler, struct gpu *gpu, const struct policy *policy,
			 const struct policy_settings *settings);

/* @client is in its GPU's list. */
void scheduler_add(struct scheduler *scheduler, struct client *client);
void scheduler_remove(struct client *client);
/* Level, share or objective of some clients of @gpu have changed. */
void scheduler_change(struct scheduler *scheduler, struct gpu *gpu);
/* @client reports that it has got work: looks at once where LOOKS_FAST_NS applies. */
void scheduler_hear(struct scheduler *scheduler, const struct client *client);
/* Holds @client by hand for @ns; 0: releases it. */
void scheduler_hold(struct scheduler *scheduler, struct client *client, uint64_t ns);
/* ns until the client's hold ends: by hand as commanded; a policy's, which is renewed as long as it
 * lasts, when nobody renews it. 0: it is not held. */
uint64_t scheduler_hold_left(const struct client *client, uint64_t now);

/* Records the work that arrives on @gpu. As record_begin(). */
int scheduler_record(struct scheduler *scheduler, const struct gpu *gpu);

/* What the timer does, for tests. Returns when to look next, or POLICY_NEVER. */
uint64_t scheduler_look(struct scheduler *scheduler, struct gpu *gpu, uint64_t now);
