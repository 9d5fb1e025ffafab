/* dynamic priorities (EffiSha, section 7), as in schedulers for CPUs with two queues. A client that
 * waits in the active queue gains 1 of priority a millisecond, 20 at most. The highest priority is
 * next, and gets a quota of (p + 1) / 2 ms by its own priority p. A client that has used up its
 * quota waits in the inactive queue, at its own priority. When the active queue is empty, the two
 * change places. A client that comes enters the active queue, and takes over from a current client
 * whose priority is less than its own. That one keeps the priority that it has gained, and the rest
 * of its quota. */
#include "policy/policy.h"

#include <assert.h>

#include "weir/base.h"

#define AGE_MAX 20

struct dynamic {
	uint64_t queue;    /* number of the queue it waits in */
	uint64_t rest;     /* ns of its quota; 0: a new one */
	uint64_t priority; /* with which it became current */
};

/* The queue after the active one is the inactive one. */
struct active {
	uint64_t queue; /* number */
	uint64_t since; /* when it became active */
};

static_assert(sizeof(struct dynamic) <= POLICY_STATE_SIZE, "fits");

/* Priority from waiting, before it was evicted. */
static uint64_t gained(const struct run_queue_entry *entry)
{
	const struct dynamic *dynamic = policy_state(entry);
	uint64_t own = policy_priority(entry);

	return dynamic->rest && dynamic->priority > own ? dynamic->priority - own : 0;
}

static uint64_t priority(const struct run_queue_entry *entry)
{
	const struct active *active = policy_state(entry->queue);
	const struct dynamic *dynamic = policy_state(entry);
	uint64_t since = larger(entry->waiting_since, active->since);
	uint64_t age = gained(entry);

	if (dynamic->queue == active->queue && entry->queue->now > since)
		age += (entry->queue->now - since) / NS_PER_MS;
	return policy_priority(entry) + (age < AGE_MAX ? age : AGE_MAX);
}

static uint64_t rank(const struct run_queue_entry *entry)
{
	const struct dynamic *dynamic = policy_state(entry);

	return dynamic->queue << 6 | (63 - priority(entry));
}

static void arrived(struct run_queue_entry *entry)
{
	const struct active *active = policy_state(entry->queue);
	struct dynamic *dynamic = policy_state(entry);

	dynamic->queue = active->queue;
	dynamic->rest = 0;
}

static uint64_t quantum(struct run_queue_entry *entry)
{
	struct dynamic *dynamic = policy_state(entry);
	struct active *active = policy_state(entry->queue);

	/* The first by rank waits in the inactive queue, so the active one is empty. */
	if (dynamic->queue > active->queue && !entry->queue->forced)
		*active = (struct active){.queue = dynamic->queue, .since = entry->queue->now};
	dynamic->priority = priority(entry);
	return dynamic->rest ? dynamic->rest : (policy_priority(entry) + 1) * NS_PER_MS / 2;
}

static bool preempts(const struct run_queue_entry *waiting, const struct run_queue_entry *current)
{
	const struct dynamic *next = policy_state(waiting), *now = policy_state(current);
	const struct active *active = policy_state(current->queue);

	return !waiting->waited && waiting->arrived >= current->queue->started &&
	       next->queue == active->queue && policy_priority(waiting) > now->priority;
}

static void ended(struct run_queue_entry *entry, uint64_t left)
{
	const struct active *active = policy_state(entry->queue);
	struct dynamic *dynamic = policy_state(entry);

	dynamic->rest = left;
	if (left == 0)
		dynamic->queue = active->queue + 1;
}

const struct policy policy_dynamic = {.name = "dynamic",
				      .shares = true,
				      .rank = rank,
				      .quantum = quantum,
				      .preempts = preempts,
				      .arrived = arrived,
				      .ended = ended};
