/* Runs a policy on the real clock: looks at the status pages of clients that may contend, tells the
 * policy what it sees, and writes the hold words that it decides on. Where no two clients are of
 * one level, or the policy never holds, it does not wake up at all. */
#pragma once

#include "scheduler/client.h"
#include "scheduler/gpu.h"
#include "policy/policy.h"
#include "scheduler/record.h"

#include "weir/loop.h"

/* Decisions come within a millisecond, the look itself and the timer's lateness included. */
#define SCHEDULER_LOOK_NS   800000ull /* while somebody who has an equal has work */
#define SCHEDULER_KEEN_NS   100000ull /* while work that comes or ends is to be seen at once */
#define SCHEDULER_END_NS    20000ull  /* at the end of a short turn that others wait for */
#define SCHEDULER_LATE_NS   60000ull  /* by which a timer may be late: from then on none is set, */
#define SCHEDULER_WATCH_NS  200000ull /* for so long in a turn */
#define SCHEDULER_KEEN_FOR  200000000ull /* after there was some */
#define SCHEDULER_BUSY_NS   1000000000ull
#define SCHEDULER_IDLE_NS   2000000ull /* while nobody has, as somebody soon may */
#define SCHEDULER_DOZE_NS   70000ull /* a client of the node, between looks while nobody has work */
#define SCHEDULER_ASLEEP_NS 50000000ull    /* nobody had for a second */
#define SCHEDULER_COSTLY    10ull          /* times settings.cost: no client is believed more */
#define SCHEDULER_LONG_NS   2000000ull     /* a launch for which no equal is to wait to its end */
#define SCHEDULER_LONG_FOR  10000000000ull /* after there was one, others like it are expected */
#define SCHEDULER_HOLD_NS   1000000000ull  /* a hold lasts no longer if it is not renewed */

struct scheduler {
	const struct policy *policy;    /* of GPUs that have none of their own */
	const struct policy *commanded; /* of all, whatever was configured; NULL: none is */
	struct policy_settings settings;
	struct loop_timer timer;
	struct gpu **gpus;   /* the registry's hash */
	uint64_t n_clients;  /* at the last look */
	uint64_t busy_until; /* looked at idle clients often until then */
	uint64_t keen_until; /* and where objectives or preemption need it, very often */
	uint64_t due;        /* what the timer is set to; 0: it is not */
	struct scheduler_timers {
		uint64_t n, late; /* times that it came; ns that it was late, in all */
	} timers;
	struct record record;
};

int scheduler_init(struct scheduler *scheduler, struct loop *loop, const struct policy *policy,
		   const struct policy_settings *settings, struct gpu **gpus);
void scheduler_deinit(struct scheduler *scheduler);
/* By command, of all GPUs, those that come later included. Everybody's turn begins anew. */
void scheduler_set_policy(struct scheduler *scheduler, const struct policy *policy);
/* By a configuration that is read anew, of GPUs that have none of their own: what was commanded is
 * no longer in force. scheduler_configure() of each GPU follows. */
void scheduler_take(struct scheduler *scheduler, const struct policy *policy,
		    const struct policy_settings *settings);
/* By the configuration, of one GPU, if they are others than before: then turns begin anew on it. A
 * policy that was commanded stays. */
void scheduler_configure(struct scheduler *scheduler, struct gpu *gpu, const struct policy *policy,
			 const struct policy_settings *settings);

/* @client is on its GPU already, or still. */
void scheduler_add(struct scheduler *scheduler, struct client *client);
void scheduler_remove(struct client *client);
/* Level, share or objective of some clients of @gpu are others. */
void scheduler_change(struct scheduler *scheduler, struct gpu *gpu);
/* @client says that it has got work: looks at once, where work that comes is to be seen at once. */
void scheduler_hear(struct scheduler *scheduler, const struct client *client);
/* Holds @client by hand for @ns; 0: no more. */
void scheduler_hold(struct scheduler *scheduler, struct client *client, uint64_t ns);

/* Records the work that arrives on @gpu; see record.h. */
int scheduler_record(struct scheduler *scheduler, const struct gpu *gpu);

/* What the timer does, for tests. When to look next; POLICY_NEVER: not. */
uint64_t scheduler_look(struct scheduler *scheduler, struct gpu *gpu, uint64_t now);
