/* wfq, weighted fair queueing (GLoop, section 5.3). A client's virtual time elapses while it runs,
 * more slowly with more weight. The client with the least virtual time is next. A client that had
 * no work saves nothing up: when it comes back its virtual time is set to that of the one in
 * service. Unlike GLoop's, a client that is ahead stays ahead; else going idle for a moment would
 * cancel its debts.
 *
 * A client that made room for a latency objective runs for the rest of its quantum afterwards; else
 * each objective would cost a run more. Runs are shorter for the sake of objectives only where
 * several clients with one would have to wait for each other. */
#include "policy/policy.h"
#include "policy/virtual-time.h"

#include <assert.h>

#include "weir/base.h"

struct wfq {
	uint64_t virtual_time;
	uint64_t left; /* ns of a run that was cut short; 0: none was */
};

/* The queue's state is the virtual time of the client in service. */
static_assert(sizeof(struct wfq) <= POLICY_STATE_SIZE, "fits");

static uint64_t rank(const struct run_queue_entry *entry)
{
	const struct wfq *wfq = policy_state(entry);

	return wfq->left ? 0 : wfq->virtual_time + 1;
}

static void arrived(struct run_queue_entry *entry)
{
	const uint64_t *service = policy_state(entry->queue);
	struct wfq *wfq = policy_state(entry);

	wfq->left = 0;
	wfq->virtual_time = larger(wfq->virtual_time, *service);
}

static uint64_t quantum(struct run_queue_entry *entry)
{
	const struct run_queue *queue = entry->queue;
	const struct policy_settings *settings = queue->settings;
	uint64_t *service = policy_state(entry->queue);
	struct wfq *wfq = policy_state(entry);
	uint64_t length = wfq->left ? wfq->left : settings->quantum;

	wfq->left = 0;
	if (*service < wfq->virtual_time && !queue->forced)
		*service = wfq->virtual_time;
	if (queue->n_slo > 1 && queue->slo / queue->n_active < length)
		length = queue->slo / queue->n_active;
	return length > settings->min_quantum ? length : settings->min_quantum;
}

static void ran(struct run_queue_entry *entry, int64_t ns)
{
	struct wfq *wfq = policy_state(entry);

	wfq->virtual_time = time_moved(wfq->virtual_time, virtual_time_of(ns, entry->weight));
}

static void ended(struct run_queue_entry *entry, uint64_t left)
{
	const struct run_queue *queue = entry->queue;
	struct wfq *wfq = policy_state(entry);

	wfq->left = queue->n_slo && left >= queue->settings->min_quantum ? left : 0;
}

const struct policy policy_wfq = {.name = "wfq",
				  .shares = true,
				  .slices = true,
				  .rank = rank,
				  .quantum = quantum,
				  .arrived = arrived,
				  .ran = ran,
				  .ended = ended};
