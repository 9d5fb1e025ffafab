/* static priorities (EffiSha, section 7): the highest goes first and evicts whom it finds running;
 * the others run until their work is done, first come first served. Levels come before all;
 * among equals the share is the priority. */
#include "policy/policy.h"

static uint64_t rank(const struct turn *turn, const struct policy_client *client, uint64_t now)
{
	(void)turn, (void)now;
	return (POLICY_PRIORITY_MAX - policy_priority(client)) << 59 | client->arrived;
}

static bool preempts(const struct turn *turn, const struct policy_client *waiting,
		     const struct policy_client *running, uint64_t now)
{
	(void)turn, (void)now;
	return policy_priority(waiting) > policy_priority(running);
}

const struct policy policy_static = {.name = "static", .rank = rank, .preempts = preempts};
