#include "policy/coexec/join.h"

#include <string.h>
#include <utlist.h>

#include "policy/coexec/measure.h"
#include "policy/coexec/memory.h"
#include "policy/policy.h"

/* Limits, because each client that is looked at costs a walk through the memory. */
#define CANDIDATES 32u /* waiting clients that may join */
#define OTHERS     8u  /* and other partners of each */

/* The speed-up of two kernels that is known, or else expected. Kernels that both gain beside a
 * third one are taken to wait for the same thing. */
static double expected_of_pair(struct coexec_memory *memory, uint64_t a, uint64_t b)
{
	const uint64_t both[] = {a, b};
	double found = memory ? coexec_memory_find(memory, both, 2, NULL) : 0;

	if (found > 0)
		return found;
	found = memory ? coexec_unfinished_highest(&memory->unfinished, both, 2) : 0;
	if (found > 0)
		return found > COEXEC_ALIKE ? found : COEXEC_ALIKE;
	return memory && coexec_memory_alike(memory, a, b) ? COEXEC_ALIKE : COEXEC_UNTRIED;
}

/* Whether there is time to try a set that seldom gains. Time that was not used for this long ago
 * does not count, so clients that come for a moment cannot use all of it. */
static bool may_explore(struct coexec_plan *plan, uint64_t now)
{
	uint64_t most = COEXEC_EXPLORES * (plan->explored + 2 * COEXEC_LONGEST);

	if (now - plan->begun > most)
		plan->begun = now - most;
	return plan->explored + COEXEC_LONGEST <= (now - plan->begun) / COEXEC_EXPLORES;
}

/* The speed-up that is expected of the members with @entry; 0: it must not join. */
static double expected(struct coexec_plan *plan, const struct run_queue_entry *entry,
		       struct coexec_memory *memory)
{
	uint64_t numbers[COEXEC_MOST], own = entry->coexec.kernel.number;
	double least = 2 * COEXEC_UNTRIED, known;

	if (!entry->active || entry->coexec.together || !entry->coexec.measured ||
	    entry->coexec.refused == plan->sets)
		return 0;
	memcpy(numbers, plan->numbers, sizeof(numbers));
	numbers[plan->n] = own;
	known = memory ? coexec_memory_find(memory, numbers, plan->n + 1, NULL) : 0;
	if (known > 0)
		return known < plan->speed_up + COEXEC_GAIN ? 0 : known;
	for (unsigned i = 0; i < plan->n; i++) {
		double pair = expected_of_pair(memory, plan->numbers[i], own);
		least = pair < least ? pair : least;
	}
	if (least < 1 + COEXEC_GAIN)
		return 0;
	bool unlikely = plan->n > 1 || least <= COEXEC_ALIKE;
	return !unlikely || may_explore(plan, coexec_clock(entry->queue)) ? least : 0;
}

/* The speed-up that is expected of both, at least that of turns, which is 1. */
static double pair_with(const struct run_queue_entry *entry, const struct run_queue_entry *other,
			struct coexec_memory *memory)
{
	double pair;

	if (!other || other == entry || other->coexec.together)
		return 1;
	pair = expected_of_pair(memory, other->coexec.kernel.number, entry->coexec.kernel.number);
	return pair > 1 ? pair : 1;
}

/* The highest speed-up of @entry with a client that waits. */
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

/* The highest joins. For the second member counts what it gains here over what it would gain with a
 * client that waits: so the first member is left to a client that gains with few. */
static double score(struct run_queue *queue, const struct run_queue_entry *entry,
		    struct coexec_memory *memory)
{
	double here = expected(&queue->plan, entry, memory);

	return here > 0 && queue->plan.n == 1 ? here / best_elsewhere(queue, entry, memory) : here;
}

/* @entry may take the second member's place, and is expected to gain more than @found. */
static bool gains_more(const struct run_queue *queue, const struct run_queue_entry *entry,
		       struct coexec_memory *memory, double found)
{
	const struct coexec_plan *plan = &queue->plan;

	return entry->active && !entry->coexec.together && entry->coexec.measured &&
	       entry->coexec.refused != plan->sets &&
	       expected_of_pair(memory, plan->numbers[0], entry->coexec.kernel.number) > found;
}

bool coexec_expects_more(const struct run_queue *queue, struct coexec_memory *memory, double found)
{
	const struct run_queue_entry *entry;
	double least = found > COEXEC_ALIKE ? found : COEXEC_ALIKE;
	unsigned n = 0;

	if (queue->current && gains_more(queue, queue->current, memory, least))
		return true;
	DL_FOREACH (queue->waiting, entry) {
		if (++n > CANDIDATES)
			break;
		if (gains_more(queue, entry, memory, least))
			return true;
	}
	return false;
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
		double own = score(queue, entry, memory);
		if (own > most) {
			most = own;
			found = entry;
		}
	}
	if (queue->current)
		coexec_recognise(&queue->current->coexec, memory);
	if (queue->current && score(queue, queue->current, memory) > most)
		found = queue->current;
	return found;
}
