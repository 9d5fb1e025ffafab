#include "policy/waiting.h"

#include <utlist.h>

#include "weir/base.h"

#define LEAD_PART 20 /* of an objective, that a client comes sooner than it must */

void waiting_note(struct run_queue *queue, const struct run_queue_entry *entry)
{
	const struct policy *policy = queue->policy;

	queue->n_free += !entry->held;
	if (queue->candidate && policy->preempts &&
	    policy->rank(entry) < policy->rank(queue->candidate))
		queue->candidate = entry;
}

void waiting_withdraw(struct run_queue *queue, struct run_queue_entry *entry)
{
	DL_DELETE(queue->waiting, entry);
	queue->n_free -= !entry->held;
	if (queue->candidate == entry)
		queue->candidate = NULL;
}

void waiting_put_back(struct run_queue *queue, struct run_queue_entry *entry)
{
	struct run_queue_entry *after = queue->waiting;

	while (after && after->waiting_since <= entry->waiting_since)
		after = after->next;
	DL_PREPEND_ELEM(queue->waiting, after, entry);
}

void waiting_from_now(struct run_queue *queue, struct run_queue_entry *entry)
{
	if (!entry->ran)
		return;
	entry->ran = false;
	entry->waiting_since = queue->now;
	entry->waited = true;
	DL_DELETE(queue->waiting, entry);
	DL_APPEND(queue->waiting, entry);
}

struct run_queue_entry *waiting_first(const struct run_queue *queue)
{
	struct run_queue_entry *entry, *first = NULL;
	uint64_t smallest = 0;

	DL_FOREACH (queue->waiting, entry) {
		uint64_t rank = queue->policy->rank(entry);
		if (!first || rank < smallest) {
			first = entry;
			smallest = rank;
		}
	}
	return first;
}

uint64_t waiting_due(const struct run_queue *queue, const struct run_queue_entry *entry)
{
	uint64_t aging = queue->settings->aging, due = POLICY_NEVER;
	uint64_t lead = queue->settings->late;

	if (queue->concurrent && !entry->held)
		return POLICY_NEVER;
	if (aging < POLICY_NEVER - entry->waiting_since)
		due = entry->waiting_since + aging;
	if (entry->slo && !entry->waited) {
		lead += entry->lag + (queue->current ? policy_cost(queue->current) : 0) +
			entry->slo / LEAD_PART;
		uint64_t wait = entry->slo > lead ? entry->slo - lead : 0;
		uint64_t at = entry->quick ? larger(entry->arrived, entry->began + wait)
					   : entry->arrived + wait;
		due = smaller(due, at);
	}
	return due;
}

struct run_queue_entry *waiting_urgent(const struct run_queue *queue)
{
	struct run_queue_entry *entry, *first = queue->waiting;
	uint64_t earliest = first ? waiting_due(queue, first) : POLICY_NEVER;

	/* By age it is the first in the list, if all of them wait. */
	if (queue->n_slo == 0 && !queue->concurrent)
		return first;
	DL_FOREACH (queue->waiting, entry) {
		uint64_t due = waiting_due(queue, entry);
		if (due < earliest) {
			earliest = due;
			first = entry;
		}
	}
	return first;
}

struct run_queue_entry *waiting_due_now(const struct run_queue *queue)
{
	struct run_queue_entry *urgent = queue->now < queue->due ? NULL : waiting_urgent(queue);

	return urgent && waiting_due(queue, urgent) <= queue->now ? urgent : NULL;
}
