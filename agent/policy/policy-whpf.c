/* whpf, weighted hpf. Time is divided into rounds. In each round a client may run for its part of
 * ROUND, by weight: clients that have some of that left go before those that have none. Among the
 * former the rules are hpf's: the shortest predicted remaining time is next, and takes over.
 *
 * So short work is served as soon as by hpf while its client stays within its share, and clients
 * that always have work share the GPU by weight. A client that had no work saves nothing up: it
 * comes back into the round that is being served. What it ran too long is taken off its next
 * rounds. */
#include "policy/policy.h"

#include <assert.h>

/* Virtual time is ns * SCALE / weight: a whole GPU's time. */
#define SCALE         (100ull * POLICY_WEIGHT_ONE)
#define ROUND         200000000ull
#define ROUND_MIN     1000000ull
#define REMAINING_MAX ((1ull << 40) - 1)
#define AHEAD_MAX     ((1ull << 23) - 1)

struct whpf {
	uint64_t virtual_time;
};

/* The queue's state is the virtual time of the client in service. */
static_assert(sizeof(struct whpf) <= POLICY_STATE_SIZE, "fits");

static uint64_t virtual_time(const struct run_queue_entry *entry)
{
	return ((const struct whpf *)policy_state(entry))->virtual_time;
}

/* In virtual time. If the clients' weights add up to a GPU, they run for ROUND in it. Where they
 * add up to more, it is halved until they do: rounds of another length begin where the former ones
 * did. */
static uint64_t round_length(const struct run_queue *queue)
{
	uint64_t length = ROUND;

	for (uint64_t weights = queue->weights; weights > SCALE && length > ROUND_MIN; weights /= 2)
		length /= 2;
	return length;
}

static uint64_t round_of(const struct run_queue_entry *entry)
{
	return virtual_time(entry) / round_length(entry->queue);
}

/* The round, then the remaining time. Rounds count from the one in service, so that they have room.
 */
static uint64_t rank(const struct run_queue_entry *entry)
{
	const uint64_t *service = policy_state(entry->queue);
	uint64_t n = round_of(entry), first = *service / round_length(entry->queue);
	uint64_t ahead = n > first ? n - first : 0;
	uint64_t remaining = entry->remaining < REMAINING_MAX ? entry->remaining : REMAINING_MAX;

	return (ahead < AHEAD_MAX ? ahead : AHEAD_MAX) << 40 | remaining;
}

static void arrived(struct run_queue_entry *entry)
{
	const uint64_t *service = policy_state(entry->queue);
	uint64_t begins = *service - *service % round_length(entry->queue);
	struct whpf *whpf = policy_state(entry);

	if (whpf->virtual_time < begins)
		whpf->virtual_time = begins;
}

/* What it has left of its round. */
static uint64_t quantum(struct run_queue_entry *entry)
{
	const struct run_queue *queue = entry->queue;
	uint64_t length = round_length(queue), *service = policy_state(queue);
	uint64_t left = (length - virtual_time(entry) % length) * entry->weight / SCALE;

	if (!queue->forced)
		*service = virtual_time(entry);
	return left > queue->settings->min_quantum ? left : queue->settings->min_quantum;
}

static uint64_t in_the_way(const struct run_queue_entry *entry)
{
	return entry->queue->concurrent ? entry->remaining / entry->launches : entry->remaining;
}

static bool preempts(const struct run_queue_entry *waiting, const struct run_queue_entry *current)
{
	uint64_t cost = policy_cost(current), left = in_the_way(current);

	if (round_of(waiting) != round_of(current))
		return round_of(waiting) < round_of(current);
	return left > cost && left - cost > waiting->remaining;
}

static void ran(struct run_queue_entry *entry, int64_t ns)
{
	int64_t step = (int64_t)((__int128)ns * (int64_t)SCALE / entry->weight);
	struct whpf *whpf = policy_state(entry);

	if (step < 0 && whpf->virtual_time < (uint64_t)-step)
		whpf->virtual_time = 0;
	else
		whpf->virtual_time += (uint64_t)step;
}

/* Others who come then find its round in service, not one from before. */
static void ran_alone(struct run_queue_entry *entry, int64_t ns)
{
	uint64_t *service = policy_state(entry->queue);

	ran(entry, ns);
	if (*service < virtual_time(entry))
		*service = virtual_time(entry);
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
				   .ran_alone = ran_alone};
