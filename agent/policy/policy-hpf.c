/* hpf, highest priority first (FLEP, figure 6). Levels are the priorities. Among equals the one
 * with the shortest predicted remaining time is next, and takes the turn if what is left of the
 * running one exceeds that by more than the cost of preempting it: by Muthukrishnan et al. this
 * keeps the average slowdown within twice the best.
 *
 * FLEP's remaining time is that of a kernel. Where clients run abreast, others' kernels come
 * between those of one client, so it is one launch that is in their way: a long one is held for
 * them, and who has many short ones is not. Else it is all that a client has outstanding. */
#include "policy/policy.h"

static uint64_t rank(const struct run_queue *queue, const struct run_queue_entry *entry,
		     uint64_t now)
{
	(void)queue, (void)now;
	return entry->remaining;
}

static uint64_t in_the_way(const struct run_queue *queue, const struct run_queue_entry *entry)
{
	return queue->concurrent ? entry->remaining / entry->launches : entry->remaining;
}

static bool preempts(const struct run_queue *queue, const struct run_queue_entry *waiting,
		     const struct run_queue_entry *running, uint64_t now)
{
	uint64_t cost = policy_cost(queue, running), others = in_the_way(queue, running);

	(void)now;
	return others > cost && others - cost > waiting->remaining;
}

const struct policy policy_hpf = {
	.name = "hpf", .urgent = true, .concurrent = true, .rank = rank, .preempts = preempts};
