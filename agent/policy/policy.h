/* Policies: who waits among those that the demand words leave equal.
 *
 * Levels need no policy: the demand words keep everybody behind those above, in microseconds. Among
 * the clients of one level that have work outstanding, one has the turn and the others are held.
 * turns.c keeps that, and with it what all policies have in common; a policy is a file with one
 * `const struct policy`, which says who is next, for how long, and who may take the turn from whom.
 *
 * All of it is pure: events and the time come in as numbers, and the only deed is to set or clear
 * hold words. So it runs the same on the agent's clock and on the simulator's. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define POLICY_NEVER        UINT64_MAX
#define POLICY_WEIGHT_ONE   100u /* the weight of 1/100 of a GPU */
#define POLICY_AGING        100000000ull
#define POLICY_PRIORITY_MAX 20ull

struct policy_settings {
	/* ns of waiting after which a client is next, whatever the policy says; 0: the policy's
	 * own, none if everybody's turn comes by itself; POLICY_NEVER: none. */
	uint64_t aging;
	uint64_t quantum;      /* ns: of wfq, and of a turn that was given for age */
	uint64_t min_quantum;  /* ns: nobody's turn is cut shorter by numbers */
	uint64_t cost;         /* ns that a switch costs if the client does not say */
	uint64_t min_timer;    /* ns: predicted ends are waited for no shorter than this */
	uint64_t late;         /* ns: how late it may be seen that work arrived, and a timer come */
	uint32_t max_overhead; /* of ffs, in millionths */
};

/* What a policy sees of a client; embedded in the client. */
struct run_queue_entry {
	uint8_t level;
	uint64_t group;     /* those of one container may wait for each other; 0: of none */
	uint32_t weight;    /* at least 1 */
	uint64_t slo;       /* ns from arrival of work to its start; 0: none wanted */
	uint64_t cost;      /* ns to evict it; 0: not known */
	uint64_t launches;  /* outstanding; at least 1 while it is active */
	uint64_t remaining; /* ns of these, predicted; may be a lie */

	/* turns.c's. */
	bool active;             /* has work outstanding */
	bool held;               /* its hold word */
	bool waited;             /* has lost the turn since its work arrived */
	bool ran;                /* since it began to wait: concurrent */
	uint64_t arrived, since; /* when it became active; when it began to wait */
	struct run_queue_entry *prev, *next;

	/* The policy's, zeroed when the client comes. */
	union {
		struct {
			int64_t balance; /* ns that it may still run in this round */
			int64_t back;    /* ns of former rounds that were others' */
			uint64_t ticket; /* its place in the ring */
			bool fresh;      /* has had nothing of this round yet */
		} ffs;
		struct {
			uint64_t virtual_time;
			uint64_t left; /* ns of a turn that was taken away; 0: none was */
		} wfq;
		struct {
			uint64_t queue;    /* number of the queue it waits in */
			uint64_t rest;     /* ns of its quota, 0: a new one */
			uint64_t priority; /* with which it got the turn */
		} dynamic;
	};
};

/* The clients of one level of one GPU that have work outstanding. */
struct run_queue {
	const struct policy_settings *settings;
	struct run_queue_entry *current;         /* NULL: nobody is active */
	struct run_queue_entry *waiting;         /* by `since` */
	const struct run_queue_entry *candidate; /* the first of them by rank; NULL: not known */
	unsigned n_active, n_slo;
	unsigned n_free;         /* of the waiting not held yet */
	uint64_t weights, costs; /* sums over the active */
	uint64_t slo;            /* the smallest of the active; 0: none has one */
	uint64_t started;        /* the running one's turn */
	uint64_t used, allowed;  /* ns of it */
	uint64_t due;            /* nobody waits too long before; POLICY_NEVER: ever */
	bool all_concurrent;     /* kernels of all its clients may run at the same time (MPS) */
	bool concurrent;         /* and do: who waits is held only where the policy says so */
	bool forced;             /* given for age: nobody takes it before its end */
	bool settled;            /* nothing happened since the last decision */
	uint64_t switches;       /* counter */
	/* The policy's. */
	uint64_t counter; /* ffs: the last ticket; wfq: virtual time; dynamic: the active queue */
	uint64_t swapped; /* dynamic: when that queue became active */
};

struct policy {
	const char *name;
	bool shares;    /* everybody's turn comes by itself: no aging unless it is asked for */
	bool untouched; /* nobody is ever held: gates need not look at hold words */
	/* Who takes the turn is not to wait for kernels: forms that leave soonest are worth their
	 * price. Else those with which turns cost least. */
	bool urgent;
	/* Where kernels of several clients may run at the same time, they do: the first by rank has
	 * the turn, and of the others only those are held from whom it would take it. */
	bool concurrent;
	/* Of those that wait the one with the smallest is the first; of equals the one that waits
	 * for longer. */
	uint64_t (*rank)(const struct run_queue *queue, const struct run_queue_entry *entry,
			 uint64_t now);
	/* How long the turn that @client gets now may be; NULL: until its work is done. 0: not now,
	 * its end is told at once. */
	uint64_t (*quantum)(struct run_queue *queue, struct run_queue_entry *entry, uint64_t now);
	/* @waiting, the first of those that wait, takes the turn from @running. NULL: never. */
	bool (*preempts)(const struct run_queue *queue, const struct run_queue_entry *waiting,
			 const struct run_queue_entry *running, uint64_t now);
	/* The rest may be NULL. @client has work now. */
	void (*arrived)(struct run_queue *queue, struct run_queue_entry *entry, uint64_t now);
	/* @client ran while others wanted to, with or without the turn; < 0: it did not, after all.
	 */
	void (*ran)(struct run_queue *queue, struct run_queue_entry *entry, int64_t ns);
	/* @client has work left, but not the turn any more. @left: of what it was allowed. */
	void (*ended)(struct run_queue *queue, struct run_queue_entry *entry, uint64_t left,
		      uint64_t now);
};

extern const struct policy policy_hpf, policy_ffs, policy_static, policy_dynamic, policy_wfq,
	policy_levels;

/* NULL: no policy of that name. */
const struct policy *policy_find(const char *name);
/* All names, for messages. */
const char *policy_names(void);

extern const struct policy_settings policy_defaults;

/* What it costs to evict @client. */
static inline uint64_t policy_cost(const struct run_queue *queue,
				   const struct run_queue_entry *entry)
{
	return entry->cost ? entry->cost : queue->settings->cost;
}

/* EffiSha's priorities, 1..20, of a weight: 20 is a whole GPU. */
static inline uint64_t policy_priority(const struct run_queue_entry *entry)
{
	uint64_t priority = entry->weight / (100 * POLICY_WEIGHT_ONE / POLICY_PRIORITY_MAX);

	return priority < 1 ? 1 : priority < POLICY_PRIORITY_MAX ? priority : POLICY_PRIORITY_MAX;
}
