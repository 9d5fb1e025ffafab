/* hpf, highest priority first (FLEP, figure 6). The levels are the priorities. Among same-level
 * clients the one with the shortest predicted remaining time is next. It takes over if the current
 * client's remaining time exceeds its own by more than the cost of preempting. By Muthukrishnan et
 * al. this keeps the average slowdown within twice the best.
 *
 * FLEP's remaining time is that of a kernel: policy_in_the_way(). */
#include "policy/policy.h"

static uint64_t rank(const struct run_queue_entry *entry)
{
	return entry->remaining;
}

static bool preempts(const struct run_queue_entry *waiting, const struct run_queue_entry *current)
{
	uint64_t cost = policy_cost(current), left = policy_in_the_way(current);

	return left > cost && left - cost > waiting->remaining;
}

const struct policy policy_hpf = {
	.name = "hpf", .urgent = true, .concurrent = true, .rank = rank, .preempts = preempts};
