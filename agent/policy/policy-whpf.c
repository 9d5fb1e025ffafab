/* whpf, weighted hpf. Of the clients that are within their shares the rules are hpf's: the shortest
 * predicted remaining time is next, and takes over. The others wait.
 *
 * A client's virtual time elapses while it runs, more slowly with more weight. The fair time is the
 * mean of the active clients' virtual times, by weight: all would be there if each had got its
 * part of the GPU all the time. A client's lead is how far it is beyond that. When its lead is as
 * long as its part of a round, it is spent, and waits until the fair time has caught up. So clients
 * that always have work share the GPU by weight, and each has rounds of its own: none waits for a
 * common one to end.
 *
 * The remaining time of a client that refills its queue all the time says nothing of when its work
 * will be done. Such clients are steady. If the shortest of them took over, they would take over
 * from each other with each launch that ends, and each time costs a switch. So a steady client
 * takes over from none, and comes after all others; of steady clients the one that is furthest
 * behind its share is next.
 *
 * Rounds are short for clients that always have work, so that shares hold over each second. They
 * are longer for a client's first work after a while, so that it is served as soon as by hpf.
 * Either way a lead is a debt: the client waits for as long as the others need to catch up.
 *
 * A client that had no work saves nothing up: it comes back at the fair time. */
#include "policy/policy.h"
#include "policy/virtual-time.h"

#include <assert.h>

#include <utlist.h>

#include "weir/base.h"

/* ns of the GPU. A client's lead swings by as much as its part of a round makes, to both sides. So
 * in 1 s its part is off by half a round at most, which is 1.5 points. */
#define ROUND       30000000ull
#define FIRST_ROUND 200000000ull
/* A client is steady when it ran for so many ns, and for so many times what it had outstanding at
 * most, without a gap. */
#define STEADY       40000000ull
#define STEADY_TIMES 4
/* Ranks: of a client that must wait, plus its lead; of a steady client without a lead. */
#define WAITS       (1ull << 63)
#define RANK_STEADY (1ull << 62)
#define RANK_MOST   (1ull << 61)

struct whpf {
	uint64_t virtual_time; /* it may wrap around; leads do not */
	uint64_t began;        /* when it came with work after a round or more without */
	uint64_t repaid;       /* it is spent until the fair time is this */
	uint64_t busy;         /* ns that it ran without a gap */
	uint64_t most;         /* ns outstanding since then; gets less, as it may be wrong */
};

static_assert(sizeof(struct whpf) <= POLICY_STATE_SIZE, "fits");

static struct whpf *state_of(const struct run_queue_entry *entry)
{
	return policy_state(entry);
}

static uint64_t *fair_time(const struct run_queue *queue)
{
	return policy_state(queue);
}

static int64_t lead_of(const struct run_queue_entry *entry)
{
	return (int64_t)(state_of(entry)->virtual_time - *fair_time(entry->queue));
}

/* The lead of a client that ran for its part of a round while the fair time went on. INT64_MAX:
 * there is none but it. */
static int64_t most_lead(const struct run_queue_entry *entry)
{
	const struct run_queue *queue = entry->queue;
	bool first = queue->now - state_of(entry)->began < FIRST_ROUND;
	uint64_t all = queue->weights, others = all - entry->weight;

	if (all <= entry->weight)
		return INT64_MAX;
	return virtual_time_of((int64_t)((first ? FIRST_ROUND : ROUND) * others / all), all);
}

static bool is_spent(const struct run_queue_entry *entry)
{
	return (int64_t)(state_of(entry)->repaid - *fair_time(entry->queue)) > 0;
}

static bool is_beyond_share(const struct run_queue_entry *entry)
{
	int64_t lead = lead_of(entry);

	return lead > 0 && (is_spent(entry) || lead >= most_lead(entry));
}

static bool is_steady(const struct run_queue_entry *entry)
{
	const struct whpf *whpf = state_of(entry);

	uint64_t most = larger(whpf->most, entry->remaining);

	return whpf->busy >= STEADY && whpf->busy / STEADY_TIMES >= most;
}

/* If all clients are steady only shares matter. Slices keep them better than turns, and cost less.
 */
static bool slices_now(const struct run_queue *queue)
{
	const struct run_queue_entry *entry;

	if (queue->current && !is_steady(queue->current))
		return false;
	DL_FOREACH (queue->waiting, entry)
		if (!is_steady(entry))
			return false;
	return true;
}

static uint64_t rank(const struct run_queue_entry *entry)
{
	int64_t lead = lead_of(entry), most = (int64_t)RANK_MOST - 1;

	if (is_beyond_share(entry))
		return WAITS | (uint64_t)lead;
	if (is_steady(entry))
		return RANK_STEADY + (uint64_t)(lead < -most ? -most : lead < most ? lead : most);
	return smaller(entry->remaining, RANK_MOST - 1);
}

static void note_outstanding(const struct run_queue_entry *entry)
{
	struct whpf *whpf = state_of(entry);

	whpf->most = larger(whpf->most, entry->remaining);
}

static void arrived(struct run_queue_entry *entry)
{
	const struct run_queue *queue = entry->queue;
	struct whpf *whpf = state_of(entry);
	int64_t lead = lead_of(entry);

	if (whpf->began == 0 || lead < -virtual_time_of(ROUND, queue->weights))
		whpf->began = queue->now;
	if (lead < 0)
		whpf->virtual_time = *fair_time(queue);
	if (entry->busy_since == queue->now)
		whpf->busy = whpf->most = 0;
	note_outstanding(entry);
}

/* Until the client has its most lead. The fair time goes on while it runs. */
static uint64_t quantum(struct run_queue_entry *entry)
{
	const struct run_queue *queue = entry->queue;
	uint64_t others = queue->weights - entry->weight;

	if (others == 0)
		return POLICY_NEVER;
	__int128 room = (__int128)most_lead(entry) - lead_of(entry);
	__int128 ns =
		room * entry->weight / (__int128)others * (__int128)queue->weights / VIRTUAL_SCALE;
	if (ns < (__int128)queue->settings->min_quantum)
		return queue->settings->min_quantum;
	return ns < INT64_MAX ? (uint64_t)ns : POLICY_NEVER;
}

static bool preempts(const struct run_queue_entry *waiting, const struct run_queue_entry *current)
{
	uint64_t cost = policy_cost(current), left = policy_in_the_way(current);

	if (is_beyond_share(waiting))
		return false;
	if (is_beyond_share(current))
		return true;
	if (!current->queue->concurrent && (is_steady(waiting) || is_steady(current)))
		return !is_steady(waiting);
	return left > cost && left - cost > (is_steady(waiting) ? ROUND : waiting->remaining);
}

/* @ns may be a refund. */
static void ran(struct run_queue_entry *entry, int64_t ns)
{
	const struct run_queue *queue = entry->queue;
	struct whpf *whpf = state_of(entry);
	bool spent = is_spent(entry);

	if (ns > 0)
		whpf->most -= smaller(whpf->most, (uint64_t)ns / 2);
	note_outstanding(entry);
	whpf->busy = time_moved(whpf->busy, ns);
	whpf->virtual_time += (uint64_t)virtual_time_of(ns, entry->weight);
	if (queue->weights > 0)
		*fair_time(queue) += (uint64_t)virtual_time_of(ns, queue->weights);
	if (spent || lead_of(entry) >= most_lead(entry))
		whpf->repaid = whpf->virtual_time;
}

/* A client that ran alone owes nothing for it. */
static void ran_alone(struct run_queue_entry *entry, int64_t ns)
{
	ran(entry, ns);
	if (lead_of(entry) > 0)
		*fair_time(entry->queue) = state_of(entry)->virtual_time;
}

/* The fair time goes on with what the clients run, but those that come and go change the mean. All
 * active clients are in the list. */
static void set_fair_time(const struct run_queue *queue)
{
	const struct run_queue_entry *entry;
	__int128 sum = 0;

	DL_FOREACH (queue->waiting, entry)
		sum += (__int128)lead_of(entry) * entry->weight;
	*fair_time(queue) += (uint64_t)(int64_t)(sum / (__int128)queue->weights);
}

static void ended(struct run_queue_entry *entry, uint64_t left)
{
	struct whpf *whpf = state_of(entry);

	if (left == 0 || is_spent(entry))
		whpf->repaid = whpf->virtual_time;
	set_fair_time(entry->queue);
}

const struct policy policy_whpf = {.name = "whpf",
				   .shares = true,
				   .slices_now = slices_now,
				   .urgent = true,
				   .concurrent = true,
				   .rank = rank,
				   .quantum = quantum,
				   .preempts = preempts,
				   .arrived = arrived,
				   .ran = ran,
				   .ran_alone = ran_alone,
				   .ended = ended};
