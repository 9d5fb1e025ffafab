/* whpf, weighted hpf. Of the clients that are within their shares the rules are hpf's: the shortest
 * predicted remaining time is next, and takes over. The others wait.
 *
 * A client's virtual time elapses while it runs, more slowly with more weight. The fair time is the
 * mean of the active clients' virtual times, by weight: it is where all were if each had got its
 * part of the GPU all the time. What a client is beyond that is its lead. With the lead that its
 * part of a round makes, it is `spent`, and waits until the fair time has caught up. So clients
 * that always have work share the GPU by weight, and each has rounds of its own: none waits for a
 * common one to end.
 *
 * Rounds are short for clients that always have work, so that shares hold over each second. They
 * are longer for a client's first work after a while, so that it is served as soon as by hpf.
 * Either way a lead is a debt: the client waits for as long as the others need to catch up.
 *
 * A client that had no work saves nothing up: it comes back at the fair time. */
#include "policy/policy.h"

#include <assert.h>

#include <utlist.h>

#include "weir/base.h"

/* Virtual time is ns * SCALE / weight: a whole GPU's time. It may wrap around; leads do not. */
#define SCALE (100ull * POLICY_WEIGHT_ONE)
/* ns of the GPU. In 1 s a client's part is off by half a round at most, which is 2 points. */
#define ROUND       40000000ull
#define FIRST_ROUND 200000000ull
/* The rank of a client that must wait, without its lead. */
#define WAITS (1ull << 63)

struct whpf {
	uint64_t virtual_time;
	uint64_t began; /* when it came with work after a round or more without */
	bool spent;
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

static int64_t to_virtual(int64_t ns, uint64_t weight)
{
	return (int64_t)((__int128)ns * (int64_t)SCALE / (int64_t)weight);
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

	if (others == 0)
		return INT64_MAX;
	return to_virtual((int64_t)((first ? FIRST_ROUND : ROUND) * others / all), all);
}

static bool is_beyond_share(const struct run_queue_entry *entry)
{
	int64_t lead = lead_of(entry);

	return lead > 0 && (state_of(entry)->spent || lead >= most_lead(entry));
}

static uint64_t rank(const struct run_queue_entry *entry)
{
	if (is_beyond_share(entry))
		return WAITS | (uint64_t)lead_of(entry);
	return smaller(entry->remaining, WAITS - 1);
}

static void arrived(struct run_queue_entry *entry)
{
	const struct run_queue *queue = entry->queue;
	struct whpf *whpf = state_of(entry);
	int64_t lead = lead_of(entry);

	if (whpf->began == 0 || lead < -to_virtual(ROUND, queue->weights))
		whpf->began = queue->now;
	if (lead < 0)
		whpf->virtual_time = *fair_time(queue);
}

/* Until it has its most lead. While it runs, the fair time goes on too. */
static uint64_t quantum(struct run_queue_entry *entry)
{
	const struct run_queue *queue = entry->queue;
	uint64_t others = queue->weights - entry->weight;
	int64_t lead = lead_of(entry);

	if (lead <= 0)
		state_of(entry)->spent = false;
	if (others == 0)
		return POLICY_NEVER;
	__int128 room = (__int128)most_lead(entry) - lead;
	__int128 ns = room * entry->weight / (__int128)others * (__int128)queue->weights / SCALE;
	if (ns < (__int128)queue->settings->min_quantum)
		return queue->settings->min_quantum;
	return ns < INT64_MAX ? (uint64_t)ns : POLICY_NEVER;
}

static uint64_t in_the_way(const struct run_queue_entry *entry)
{
	return entry->queue->concurrent ? entry->remaining / entry->launches : entry->remaining;
}

static bool preempts(const struct run_queue_entry *waiting, const struct run_queue_entry *current)
{
	uint64_t cost = policy_cost(current), left = in_the_way(current);

	if (is_beyond_share(waiting))
		return false;
	if (is_beyond_share(current))
		return true;
	return left > cost && left - cost > waiting->remaining;
}

static void ran(struct run_queue_entry *entry, int64_t ns)
{
	const struct run_queue *queue = entry->queue;

	state_of(entry)->virtual_time += (uint64_t)to_virtual(ns, entry->weight);
	if (queue->weights > 0)
		*fair_time(queue) += (uint64_t)to_virtual(ns, queue->weights);
}

/* It owes nothing for that. */
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
	if (left == 0)
		state_of(entry)->spent = true;
	set_fair_time(entry->queue);
}

const struct policy policy_whpf = {.name = "whpf",
				   .shares = true,
				   .urgent = true,
				   .concurrent = true,
				   .rank = rank,
				   .quantum = quantum,
				   .preempts = preempts,
				   .arrived = arrived,
				   .ran = ran,
				   .ran_alone = ran_alone,
				   .ended = ended};
