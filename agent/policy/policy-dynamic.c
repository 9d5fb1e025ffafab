/* dynamic priorities (EffiSha, section 7), as in schedulers for CPUs with two queues. Who waits in
 * the active queue gains 1 of priority a millisecond, 20 at most; the highest is next and gets a
 * quota of (p + 1) / 2 ms by its own priority p. Who has used it up waits in the inactive queue, at
 * its own priority; when the active one is empty, the two change places. A client that comes enters
 * the active queue, and evicts a running one of less priority than its own; that one keeps the
 * priority that it has by now, and the rest of its quota. */
#include "policy/policy.h"

#define MS      1000000ull
#define AGE_MAX 20

/* By waiting, before it was evicted. */
static uint64_t gained(const struct run_queue_entry *entry)
{
	uint64_t own = policy_priority(entry);

	return entry->dynamic.rest && entry->dynamic.priority > own ? entry->dynamic.priority - own
								    : 0;
}

static uint64_t priority(const struct run_queue *queue, const struct run_queue_entry *entry,
			 uint64_t now)
{
	uint64_t since = entry->since > queue->swapped ? entry->since : queue->swapped;
	uint64_t age = gained(entry);

	if (entry->dynamic.queue == queue->counter && now > since)
		age += (now - since) / MS;
	return policy_priority(entry) + (age < AGE_MAX ? age : AGE_MAX);
}

static uint64_t rank(const struct run_queue *queue, const struct run_queue_entry *entry,
		     uint64_t now)
{
	return entry->dynamic.queue << 6 | (63 - priority(queue, entry, now));
}

static void arrived(struct run_queue *queue, struct run_queue_entry *entry, uint64_t now)
{
	(void)now;
	entry->dynamic.queue = queue->counter;
	entry->dynamic.rest = 0;
}

static uint64_t quantum(struct run_queue *queue, struct run_queue_entry *entry, uint64_t now)
{
	/* The first of all waits in the inactive queue: the active one is empty. */
	if (entry->dynamic.queue > queue->counter && !queue->forced) {
		queue->counter = entry->dynamic.queue;
		queue->swapped = now;
	}
	entry->dynamic.priority = priority(queue, entry, now);
	return entry->dynamic.rest ? entry->dynamic.rest : (policy_priority(entry) + 1) * MS / 2;
}

static bool preempts(const struct run_queue *queue, const struct run_queue_entry *waiting,
		     const struct run_queue_entry *running, uint64_t now)
{
	(void)now;
	return !waiting->waited && waiting->arrived >= queue->started &&
	       waiting->dynamic.queue == queue->counter &&
	       policy_priority(waiting) > running->dynamic.priority;
}

static void ended(struct run_queue *queue, struct run_queue_entry *entry, uint64_t left,
		  uint64_t now)
{
	(void)now;
	entry->dynamic.rest = left;
	if (left == 0)
		entry->dynamic.queue = queue->counter + 1;
}

const struct policy policy_dynamic = {
	.name = "dynamic",
	.shares = true,
	.rank = rank,
	.quantum = quantum,
	.preempts = preempts,
	.arrived = arrived,
	.ended = ended,
};
