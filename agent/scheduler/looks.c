#include "scheduler/looks.h"

#include "scheduler/contention.h"

#include "weir/base.h"

/* Clients of the level had work lately, and an idle one may get some, or the current run ends soon.
 */
static bool polls_fast(const struct looks *looks, const struct gpu *gpu, uint8_t level,
		       uint64_t now)
{
	const struct run_queue *queue = &gpu->queues.levels[level];

	if (!contention_polls_fast(gpu, level) || now >= looks->fast_until)
		return false;
	return queue->n_active < gpu->n_level[level] ||
	       (queue->current && queue->current->remaining < LOOKS_WORK_NS);
}

/* Of the runs of clients with an objective that others wait for, the one that ends first; NULL:
 * there is none. */
static const struct run_queue *ends_first(const struct gpu *gpu)
{
	const struct run_queue *first = NULL;

	for (uint8_t level = 0; level < WEIR_LEVELS; level++) {
		const struct run_queue *queue = &gpu->queues.levels[level];
		const struct run_queue_entry *current = queue->current;
		if (current && current->slo && queue->waiting &&
		    (!first || current->remaining < first->current->remaining))
			first = queue;
	}
	return first;
}

/* Such runs are short and many, and the GPU is idle from the end of each until the agent sees it.
 * Timers are too late for that, so shortly before the predicted end looks follow each other without
 * one. */
static uint64_t until_end(struct gpu *gpu, uint64_t passed)
{
	const struct run_queue *queue = ends_first(gpu);
	struct end_poll *poll = &gpu->end_poll;

	if (!queue)
		return POLICY_NEVER;
	if (poll->run != queue->started)
		*poll = (struct end_poll){.run = queue->started, .left = LOOKS_SPIN_NS};
	if (poll->on)
		poll->left -= passed < poll->left ? passed : poll->left;
	poll->on = queue->current->remaining <= LOOKS_LATE_NS;
	if (!poll->on)
		return queue->current->remaining - LOOKS_LATE_NS;
	return poll->left ? 1 : LOOKS_END_NS;
}

/* No client had work for a second, but new work must be seen soon: as often as it costs little. */
static uint64_t idle_poll(const struct looks *looks)
{
	uint64_t wanted = looks->n_clients * LOOKS_CLIENT_NS;

	return smaller(larger(wanted, LOOKS_IDLE_NS), LOOKS_ASLEEP_NS);
}

/* The longest time until the next look. */
static uint64_t longest_wait(struct looks *looks, const struct gpu *gpu, bool busy, uint64_t now)
{
	if (busy) {
		looks->busy_until = now + LOOKS_BUSY_NS;
		looks->fast_until = now + LOOKS_FAST_FOR;
	}
	for (uint8_t level = 0; level < WEIR_LEVELS; level++)
		if (polls_fast(looks, gpu, level, now))
			return LOOKS_FAST_NS;
	if (busy)
		return LOOKS_WORK_NS;
	return now < looks->busy_until ? LOOKS_IDLE_NS : idle_poll(looks);
}

uint64_t looks_next(struct looks *looks, struct gpu *gpu, bool busy, uint64_t passed, uint64_t now)
{
	return smaller(longest_wait(looks, gpu, busy, now), until_end(gpu, passed));
}
