/* wfq, weighted fair queueing (GLoop, section 5.3). A client's virtual time elapses while it runs,
 * the slower the more weight it has; the one with the least is next. It is work-conserving: a
 * client that had nothing to do does not save that up, for its virtual time is set to that of the
 * one in service when it comes back. Unlike GLoop's, a client that is ahead stays so: else going
 * idle for a moment would cancel its debts.
 *
 * Who loses the turn to one whose objective is in danger has the rest of it behind that: else each
 * of those would cost a turn more. Objectives are kept in that way; turns are shorter for their
 * sake only where several would have to wait for each other. */
#include "policy/policy.h"

/* Virtual time is ns * SCALE / weight. */
#define SCALE (100ull * POLICY_WEIGHT_ONE)

static uint64_t rank(const struct run_queue *queue, const struct run_queue_entry *entry,
		     uint64_t now)
{
	(void)queue, (void)now;
	return entry->wfq.left ? 0 : entry->wfq.virtual_time + 1;
}

static void arrived(struct run_queue *queue, struct run_queue_entry *entry, uint64_t now)
{
	(void)now;
	entry->wfq.left = 0;
	if (entry->wfq.virtual_time < queue->counter)
		entry->wfq.virtual_time = queue->counter;
}

static uint64_t quantum(struct run_queue *queue, struct run_queue_entry *entry, uint64_t now)
{
	const struct policy_settings *settings = queue->settings;
	uint64_t length = entry->wfq.left ? entry->wfq.left : settings->quantum;

	(void)now;
	entry->wfq.left = 0;
	if (queue->counter < entry->wfq.virtual_time && !queue->forced)
		queue->counter = entry->wfq.virtual_time;
	if (queue->n_slo > 1 && queue->slo / queue->n_active < length)
		length = queue->slo / queue->n_active;
	return length > settings->min_quantum ? length : settings->min_quantum;
}

static void ran(struct run_queue *queue, struct run_queue_entry *entry, int64_t ns)
{
	int64_t step = (int64_t)((__int128)ns * (int64_t)SCALE / entry->weight);

	(void)queue;
	if (step < 0 && entry->wfq.virtual_time < (uint64_t)-step)
		entry->wfq.virtual_time = 0;
	else
		entry->wfq.virtual_time += (uint64_t)step;
}

static void ended(struct run_queue *queue, struct run_queue_entry *entry, uint64_t left,
		  uint64_t now)
{
	(void)now;
	entry->wfq.left = queue->n_slo && left >= queue->settings->min_quantum ? left : 0;
}

const struct policy policy_wfq = {
	.name = "wfq",
	.shares = true,
	.rank = rank,
	.quantum = quantum,
	.arrived = arrived,
	.ran = ran,
	.ended = ended,
};
