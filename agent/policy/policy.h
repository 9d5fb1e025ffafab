/* Policies: which of the clients that demand words leave equal waits.
 *
 * Levels need no policy. The demand words keep every client behind those of higher levels, within
 * microseconds. Of the clients of one level that have work outstanding, one is the current client
 * of the level's run queue, and the others are held. run-queue.c does that, and all that policies
 * have in common. A policy is a file with one `const struct policy`, which says which
 * client is next, for how long, and which may take over, and a row in policies.def.
 *
 * All of it is pure: events and the time come in as numbers, and the only effect is a call for each
 * hold word that changes. So it runs the same on the agent's clock and on the simulator's. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "policy/coexec/coexec.h"

#include "weir/protocol.h"

#define POLICY_NEVER        UINT64_MAX
#define POLICY_WEIGHT_ONE   100u /* the weight of 1/100 of a GPU */
#define POLICY_AGING        100000000ull
#define POLICY_PRIORITY_MAX 20ull
#define POLICY_GAP          2000000ull /* ns: shorter gaps in a client's work may not be seen */
/* ns that a switch costs in addition where the hardware stops held clients: both groups have
 * kernels then, and the hardware saves those of one (H100). */
#define POLICY_STOP 270000ull
/* ns: work that is no longer is `quick`. It is one slice of the hardware (SLICE_BETWEEN). */
#define POLICY_QUICK      500000ull
#define POLICY_STATE_SIZE 40 /* bytes; a policy asserts that its type fits */

struct coexec_memory;
struct policy;

struct policy_settings {
	/* ns of waiting after which a client is next, whatever the policy says. 0: the policy's
	 * own. POLICY_NEVER: none. */
	uint64_t aging;
	uint64_t quantum;      /* ns: of wfq, and of a run that was given for age */
	uint64_t min_quantum;  /* ns: no run is shorter for the sake of shares */
	uint64_t cost;         /* ns that a switch costs if the client does not report it */
	uint64_t min_timer;    /* ns: no timer for a predicted end is shorter */
	uint64_t late;         /* ns: how late the agent sees that work arrived or a run is over */
	uint32_t max_overhead; /* of ffs, in millionths */
};

/* What the run queue and the policy know of a client. Embedded in the client. */
struct run_queue_entry {
	uint8_t level;
	uint64_t group;  /* of its container, whose clients may wait for each other; 0: none */
	uint32_t weight; /* at least 1 */
	uint64_t slo;    /* ns from arrival of work to its start; 0: no objective */
	uint64_t cost;   /* ns to evict it; 0: not known */
	uint64_t lag;    /* ns until it runs where the hardware stops who is held */
	/* It has an objective, and its work is done sooner than the hardware would stop it and let
	 * it go on. So it begins at once, but no more often than if it waited each time. */
	bool quick;
	uint64_t launches;  /* outstanding; at least 1 while it is active */
	uint64_t remaining; /* ns of these, predicted; may be a lie */

	/* run-queue.c's. */
	struct run_queue *queue; /* of its level */
	bool active;             /* has work outstanding */
	bool held;               /* its hold word */
	bool waited;             /* was current since its work arrived, and is not any more */
	bool ran;                /* since it began to wait, beside the current client */
	uint64_t arrived;        /* when it became active */
	uint64_t left;           /* and when it ceased to be, the last time */
	uint64_t busy_since;     /* without a gap of POLICY_GAP; 0: it was never active */
	uint64_t waiting_since;  /* and when it began to wait */
	uint64_t began;          /* its last run; 0: it had none */
	uint64_t preempted;      /* times that another client took over from it. A counter */
	struct run_queue_entry *prev, *next;

	struct coexec_client coexec;

	/* The policy's, zero when the client comes: see policy_state(). */
	_Alignas(uint64_t) unsigned char state[POLICY_STATE_SIZE];
};

/* The clients of one level of one GPU that have work outstanding. A run is the time for which one
 * of them is current. */
struct run_queue {
	const struct policy *policy;
	const struct policy_settings *settings;
	uint64_t now;                            /* the time of the event */
	struct run_queue_entry *current;         /* NULL: none is active */
	struct run_queue_entry *waiting;         /* in the order of `waiting_since` */
	const struct run_queue_entry *candidate; /* the first of them by rank; NULL: not known */
	unsigned n_active, n_slo;
	unsigned n_free;         /* of the waiting that are not held yet */
	uint64_t weights, costs; /* sums over the active; of their switches, with POLICY_STOP */
	uint64_t slo;            /* the smallest of the active; 0: none has one */
	uint64_t started;        /* the current run */
	uint64_t used, allowed;  /* ns of it */
	uint64_t due;            /* by then a waiting client must be current; or POLICY_NEVER */
	bool all_concurrent;     /* kernels of all its clients may run at the same time (MPS) */
	bool slices;             /* the hardware slices its clients by weight, if none is held */
	bool sliced;             /* and none is: all clients may run */
	bool concurrent;         /* and do: waiting clients are held only if the policy says so */
	bool forced;             /* the run was given for age: none takes over before its end */
	bool settled;            /* nothing happened since the last decision */
	uint64_t switches;       /* counter */
	/* The caller sets it: launches of its clients can have a bounded number of workers, and the
	 * clients report which kernels they have, and what is done. */
	bool bounds;
	uint64_t blocked; /* ns that higher-level clients ran, as the caller saw it. A counter */
	struct coexec_plan plan;

	/* The policy's, zero at first. */
	_Alignas(uint64_t) unsigned char state[POLICY_STATE_SIZE];
};

struct run_queues;
typedef void run_queues_hold_fn(struct run_queues *queues, struct run_queue_entry *entry,
				bool held);

/* All of a GPU: run-queue.h. */
struct run_queues {
	const struct policy *policy;
	struct policy_settings settings; /* with the aging that is in force */
	run_queues_hold_fn *hold;
	struct run_queue levels[WEIR_LEVELS]; /* the caller sets all_concurrent and bounds */
	struct coexec_memory *memory;         /* the caller's; NULL: none */
};

/* `state` of an entry or a run queue, as a pointer to the policy's own type. */
#define policy_state(holder) ((void *)(uintptr_t)(holder)->state)

struct policy {
	const char *name;
	bool shares;      /* all clients are served in time: no aging unless it is configured */
	bool never_holds; /* so gates need not look at hold words */
	/* Slices of the hardware, in proportion to weight, do the same: where clients have them,
	 * and nobody is above, none need be held. */
	bool slices;
	/* The same, while this holds of the clients that are active. NULL: never. */
	bool (*slices_now)(const struct run_queue *queue);
	/* ns: how long those are in the mean, if that is the policy's to say. NULL: it is not. */
	uint64_t (*slice)(const struct policy_settings *settings);
	/* A client that takes over must not wait for kernels: forms that leave soonest are worth
	 * their price. Else the forms with which switches cost least. */
	bool urgent;
	/* Where kernels of several clients can run at the same time, they do. The first by rank is
	 * current, and only those are held that it would take over from. */
	bool concurrent;
	/* The waiting client with the smallest is next; of equal ones the one that waits longest.
	 */
	uint64_t (*rank)(const struct run_queue_entry *entry);
	/* How long the run that @entry begins may be. NULL: until its work is done. 0: not now;
	 * ended() follows at once. */
	uint64_t (*quantum)(struct run_queue_entry *entry);
	/* Whether @waiting, the first by rank, takes over from @current. NULL: never. */
	bool (*preempts)(const struct run_queue_entry *waiting,
			 const struct run_queue_entry *current);
	/* The rest may be NULL. @entry has become active. */
	void (*arrived)(struct run_queue_entry *entry);
	/* @entry is charged @ns while others wait, current or not. < 0: a refund. */
	void (*ran)(struct run_queue_entry *entry, int64_t ns);
	/* @entry ran for @ns while no other waited. */
	void (*ran_alone)(struct run_queue_entry *entry, int64_t ns);
	/* A run of @entry is over, and it has work left. @left: ns of what it was allowed. */
	void (*ended)(struct run_queue_entry *entry, uint64_t left);
	/* Decides first which clients run at the same time. Such a policy is `concurrent` only
	 * where workers can be bounded. @memory: NULL: nothing is remembered. */
	void (*plan)(struct run_queue *queue, struct coexec_memory *memory);
};

#define POLICY(name) extern const struct policy policy_##name;
#include "policy/policies.def"
#undef POLICY

/* NULL: no policy of that name. */
const struct policy *policy_find(const char *name);
/* All names, for messages. */
const char *policy_names(void);

extern const struct policy_settings policy_defaults;

/* What it costs to evict @entry. */
static inline uint64_t policy_cost(const struct run_queue_entry *entry)
{
	return entry->cost ? entry->cost : entry->queue->settings->cost;
}

/* ns of @entry's work that others would wait for. Where clients run concurrently, kernels of others
 * run between those of one client, so only a single launch is in their way: a client is held for
 * its long launches, and not for many short ones. Elsewhere all its outstanding work counts. */
static inline uint64_t policy_in_the_way(const struct run_queue_entry *entry)
{
	return entry->queue->concurrent ? entry->remaining / entry->launches : entry->remaining;
}

/* EffiSha's priorities, 1..20, of a weight: 20 is a whole GPU. */
static inline uint64_t policy_priority(const struct run_queue_entry *entry)
{
	uint64_t priority = entry->weight / (100 * POLICY_WEIGHT_ONE / POLICY_PRIORITY_MAX);

	return priority < 1 ? 1 : priority < POLICY_PRIORITY_MAX ? priority : POLICY_PRIORITY_MAX;
}
