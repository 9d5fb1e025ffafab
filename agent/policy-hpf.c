/* hpf, highest priority first (FLEP, figure 6). Levels are the priorities. Among equals the one
 * with the shortest predicted remaining time is next, and takes the turn if what is left of the
 * running one exceeds that by more than the cost of preempting it: by Muthukrishnan et al. this
 * keeps the average slowdown within twice the best. */
#include "policy.h"

static uint64_t rank(const struct turn *turn, const struct policy_client *client, uint64_t now)
{
	(void)turn, (void)now;
	return client->remaining;
}

static bool preempts(const struct turn *turn, const struct policy_client *waiting,
		     const struct policy_client *running, uint64_t now)
{
	uint64_t cost = policy_cost(turn, running);

	(void)now;
	return running->remaining > cost && running->remaining - cost > waiting->remaining;
}

const struct policy policy_hpf = {.name = "hpf", .rank = rank, .preempts = preempts};
