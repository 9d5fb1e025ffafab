/* static priorities (EffiSha, section 7). The client with the highest priority is next and takes
 * over from one with a lower; clients of one priority run until their work is done, first come
 * first served. The share is the priority among same-level clients. */
#include "policy/policy.h"

static uint64_t rank(const struct run_queue_entry *entry)
{
	return (POLICY_PRIORITY_MAX - policy_priority(entry)) << 59 | entry->arrived;
}

static bool preempts(const struct run_queue_entry *waiting, const struct run_queue_entry *current)
{
	return policy_priority(waiting) > policy_priority(current);
}

const struct policy policy_static = {.name = "static", .rank = rank, .preempts = preempts};
