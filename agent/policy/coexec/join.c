#include "policy/coexec/join.h"

#include <string.h>
#include <utlist.h>

#include "policy/coexec/measure.h"
#include "policy/coexec/memory.h"
#include "policy/policy.h"

/* Waiting clients that are looked at: each look goes through the memory. */
#define CANDIDATES 32u
#define OTHERS     8u /* as better partners of one of these */

/* What two kernels are known to reach; or what is hoped for: kernels that both go well with a third
 * one wait for the same thing. */
static double hope_of_pair(struct coexec_memory *memory, uint64_t a, uint64_t b)
{
	double found = memory ? coexec_memory_find(memory, (uint64_t[]){a, b}, 2, NULL) : 0;

	if (found > 0)
		return found;
	return memory && coexec_memory_alike(memory, a, b) ? COEXEC_ALIKE : COEXEC_HOPE;
}

/* Whether there is time to try a set that is not likely to gain. What was not used for that long
 * ago does not count: clients that are here for a moment do not get all of it. */
static bool may_explore(struct coexec_plan *plan, uint64_t now)
{
	uint64_t most = COEXEC_EXPLORES * (plan->explored + 2 * COEXEC_LONGEST);

	if (now - plan->begun > most)
		plan->begun = now - most;
	return plan->explored + COEXEC_LONGEST <= (now - plan->begun) / COEXEC_EXPLORES;
}

/* Of all together; 0: it must not join. */
static double hope(struct coexec_plan *plan, const struct run_queue_entry *entry,
		   struct coexec_memory *memory)
{
	uint64_t numbers[COEXEC_MOST], own = entry->coexec.kernel.number;
	double least = 2 * COEXEC_HOPE, known;

	if (!entry->active || entry->coexec.together || !entry->coexec.measured ||
	    entry->coexec.refused == plan->sets)
		return 0;
	memcpy(numbers, plan->numbers, sizeof(numbers));
	numbers[plan->n] = own;
	known = memory ? coexec_memory_find(memory, numbers, plan->n + 1, NULL) : 0;
	if (known > 0)
		return known < plan->speed_up + COEXEC_GAIN ? 0 : known;
	for (unsigned i = 0; i < plan->n; i++) {
		double pair = hope_of_pair(memory, plan->numbers[i], own);
		least = pair < least ? pair : least;
	}
	if (least < 1 + COEXEC_GAIN)
		return 0;
	bool unlikely = plan->n > 1 || least <= COEXEC_ALIKE;
	return !unlikely || may_explore(plan, coexec_clock(entry->queue)) ? least : 0;
}

/* 1: @other is no partner for @entry, or a bad one: each takes its turn. */
static double pair_with(const struct run_queue_entry *entry, const struct run_queue_entry *other,
			struct coexec_memory *memory)
{
	double hoped;

	if (!other || other == entry || other->coexec.together)
		return 1;
	hoped = hope_of_pair(memory, other->coexec.kernel.number, entry->coexec.kernel.number);
	return hoped > 1 ? hoped : 1;
}

/* The best pair of @entry and one that is no member. */
static double best_elsewhere(const struct run_queue *queue, const struct run_queue_entry *entry,
			     struct coexec_memory *memory)
{
	const struct run_queue_entry *other;
	unsigned n = 0;
	double most = pair_with(entry, queue->current, memory);

	DL_FOREACH (queue->waiting, other) {
		if (++n > OTHERS)
			break;
		double pair = pair_with(entry, other, memory);
		most = pair > most ? pair : most;
	}
	return most;
}

/* What its joining promises. A second member that has better partners among those that wait leaves
 * this one to a client that has none. */
static double promise(struct run_queue *queue, const struct run_queue_entry *entry,
		      struct coexec_memory *memory)
{
	double hoped = hope(&queue->plan, entry, memory);

	return hoped > 0 && queue->plan.n == 1 ? hoped / best_elsewhere(queue, entry, memory)
					       : hoped;
}

struct run_queue_entry *coexec_find_joiner(struct run_queue *queue, struct coexec_memory *memory)
{
	struct run_queue_entry *entry, *found = NULL;
	unsigned n = 0;
	double most = 0;

	DL_FOREACH (queue->waiting, entry) {
		if (++n > CANDIDATES)
			break;
		coexec_recognise(&entry->coexec, memory);
		double now = promise(queue, entry, memory);
		if (now > most) {
			most = now;
			found = entry;
		}
	}
	if (queue->current)
		coexec_recognise(&queue->current->coexec, memory);
	if (queue->current && promise(queue, queue->current, memory) > most)
		found = queue->current;
	return found;
}
