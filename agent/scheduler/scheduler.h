/* Runs a policy on the real clock. It looks at the status pages of clients that may contend, tells
 * the run queues what it sees, and writes the hold words that they decide on. Where no two clients
 * are of one level, or the policy never holds, it does not wake up at all. */
#pragma once

#include "scheduler/client.h"
#include "scheduler/gpu/gpu.h"
#include "policy/coexec/memory.h"
#include "policy/policy.h"
#include "scheduler/record.h"

#include "weir/loop.h"

/* Times between two looks. All are in ns. A decision comes within 1 ms of its cause, with the look
 * itself and the timer's lateness. */
#define SCHEDULER_LOOK_NS      800000ull /* while a client with same-level clients has work */
#define SCHEDULER_FAST_POLL_NS 100000ull /* where work that comes or ends must be seen at once, */
#define SCHEDULER_FAST_FOR     200000000ull  /* for so long after there was work */
#define SCHEDULER_IDLE_NS      2000000ull    /* while none has work, */
#define SCHEDULER_BUSY_NS      1000000000ull /* for so long after there was some; and then */
#define SCHEDULER_IDLE_POLL_NS 70000ull      /* for each client of the node, */
#define SCHEDULER_ASLEEP_NS    50000000ull   /* but no more than this */
/* The end of a short run that others wait for: a timer may be so late, so from then on looks follow
 * each other without one, for so long in a run, and then so often. */
#define SCHEDULER_LATE_NS 60000ull
#define SCHEDULER_SPIN_NS 200000ull
#define SCHEDULER_END_NS  20000ull

#define SCHEDULER_COSTLY   10ull          /* times settings.cost: the most that is believed */
#define SCHEDULER_LONG_NS  2000000ull     /* a launch that no same-level client should wait for */
#define SCHEDULER_LONG_FOR 10000000000ull /* after a long launch more are expected */
#define SCHEDULER_HOLD_NS  1000000000ull  /* a hold ends then unless it is renewed */

struct scheduler {
	const struct policy *policy;    /* of GPUs that have none of their own */
	const struct policy *commanded; /* by weirctl, for all GPUs; NULL: none */
	struct policy_settings settings;
	struct loop_timer timer;
	struct gpu **gpus;   /* the registry's hash */
	uint64_t n_clients;  /* at the last look */
	uint64_t busy_until; /* SCHEDULER_IDLE_NS holds until then, */
	uint64_t fast_until; /* and SCHEDULER_FAST_POLL_NS until then */
	uint64_t due;        /* what the timer is set to; 0: it is not */
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
/* @client reports that it has got work: looks at once where SCHEDULER_FAST_POLL_NS applies. */
void scheduler_hear(struct scheduler *scheduler, const struct client *client);
/* Holds @client by hand for @ns; 0: releases it. */
void scheduler_hold(struct scheduler *scheduler, struct client *client, uint64_t ns);

/* Records the work that arrives on @gpu. As record_begin(). */
int scheduler_record(struct scheduler *scheduler, const struct gpu *gpu);

/* What the timer does, for tests. Returns when to look next, or POLICY_NEVER. */
uint64_t scheduler_look(struct scheduler *scheduler, struct gpu *gpu, uint64_t now);
