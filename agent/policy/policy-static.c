/* static priorities (EffiSha, section 7): the highest goes first and evicts whom it finds running;
 * the others run until their work is done, first come first served. Levels come before all;
 * among equals the share is the priority. */
#include "policy/policy.h"

static uint64_t rank(const struct run_queue *queue, const struct run_queue_entry *entry,
		     uint64_t now)
{
	(void)queue, (void)now;
	return (POLICY_PRIORITY_MAX - policy_priority(entry)) << 59 | entry->arrived;
}

static bool preempts(const struct run_queue *queue, const struct run_queue_entry *waiting,
		     const struct run_queue_entry *running, uint64_t now)
{
	(void)queue, (void)now;
	return policy_priority(waiting) > policy_priority(running);
}

const struct policy policy_static = {.name = "static", .rank = rank, .preempts = preempts};
