/* coexec (FlexSched): kernels of one level run at the same time, each with a bounded number of
 * workers on an SM (coexec/coexec.h). Those that would lose by it take turns. Where clients cannot
 * run at the same time, all take turns of a quantum. */
#include "policy/coexec/plan.h"
#include "policy/policy.h"
#include "policy/virtual-time.h"

#include "weir/base.h"

#define PAUSES 8 /* after about so many shorter ones, a long pause is forgotten */

/* Members of the plan come first. */
static uint64_t rank(const struct run_queue_entry *entry)
{
	return entry->queue->concurrent && !entry->coexec.runs;
}

static uint64_t quantum(struct run_queue_entry *entry)
{
	const struct run_queue *queue = entry->queue;

	return queue->concurrent ? POLICY_NEVER : queue->settings->quantum;
}

/* Whether @current must wait while @waiting runs. */
static bool preempts(const struct run_queue_entry *waiting, const struct run_queue_entry *current)
{
	return waiting->queue->concurrent && !current->coexec.runs;
}

/* The longest of the latest pauses. Nobody waits for the end of a pause of COEXEC_GRACE or more, so
 * those do not count. */
static void note_pause(struct run_queue_entry *entry)
{
	uint64_t pause = entry->queue->now - entry->left, *longest = &entry->coexec.pause;

	if (entry->left && pause < COEXEC_GRACE)
		*longest = larger(pause, *longest - *longest / PAUSES);
}

/* A client that had no work saves nothing up. */
static void arrived(struct run_queue_entry *entry)
{
	entry->coexec.served = larger(entry->coexec.served, entry->queue->plan.service);
	note_pause(entry);
}

/* Served least by what it was charged: what a client reports about itself does not count. */
static void ran(struct run_queue_entry *entry, int64_t ns)
{
	uint64_t *served = &entry->coexec.served;

	*served = time_moved(*served, virtual_time_of(ns, entry->weight));
}

const struct policy policy_coexec = {.name = "coexec",
				     .shares = true,
				     .concurrent = true,
				     .rank = rank,
				     .quantum = quantum,
				     .preempts = preempts,
				     .arrived = arrived,
				     .ran = ran,
				     .plan = coexec_plan_decide};
