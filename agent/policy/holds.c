#include "policy/holds.h"

#include <utlist.h>

#include "policy/waiting.h"

void holds_set(struct run_queues *queues, struct run_queue_entry *entry, bool held)
{
	if (entry->held == held)
		return;
	entry->held = held;
	queues->hold(queues, entry, held);
}

/* Whether @entry must not run beside the current client. */
static bool must_wait(const struct run_queue *queue, const struct run_queue_entry *entry)
{
	const struct run_queue_entry *running = queue->current;

	if (running->group && entry->group == running->group)
		return false;
	return !queue->concurrent || queue->forced || queue->policy->preempts(running, entry);
}

static void hold_some(struct run_queues *queues, struct run_queue *queue)
{
	struct run_queue_entry *entry, *next;

	queue->n_free = 0;
	DL_FOREACH_SAFE (queue->waiting, entry, next) {
		bool held = must_wait(queue, entry);
		if (queue->concurrent && held && !entry->held)
			waiting_from_now(queue, entry);
		holds_set(queues, entry, held);
		queue->n_free += !held;
	}
}

/* Most entries that are not held yet are at the list's end. */
static void hold_all(struct run_queues *queues, struct run_queue *queue)
{
	struct run_queue_entry *entry = queue->waiting;

	for (; entry && queue->n_free > 0; entry = entry->prev) {
		queue->n_free -= !entry->prev->held;
		holds_set(queues, entry->prev, true);
	}
}

void holds_write(struct run_queues *queues, struct run_queue *queue)
{
	if (queue->current && (queue->current->group || queue->concurrent))
		hold_some(queues, queue);
	else
		hold_all(queues, queue);
	if (queue->current)
		holds_set(queues, queue->current, false);
}
