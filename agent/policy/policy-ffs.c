/* ffs, fairness first (FLEP, section 5.2.2): weighted round robin. Client i runs T * Wi in each
 * round, with the smallest T for which the switches of a round, sum(Oi), are no more than
 * maxOverhead of its length, sum(T * Wi). A round is also no shorter than a millisecond or so for
 * each client, and no longer than the smallest latency objective among them.
 *
 * What a client ran too long (a late timer, a slow eviction) is taken from its next turns; what it
 * ran too little it may run later: in this round, if its turn was taken away, else, because others
 * had not left yet, in the next ones. */
#include "policy/policy.h"

#define ROUNDS_MAX 8 /* of debt, and of what is owed */

static uint64_t round_length(const struct run_queue *queue)
{
	const struct policy_settings *settings = queue->settings;
	uint64_t floor = queue->n_active * settings->min_quantum;
	uint64_t length = queue->costs * 1000000 / settings->max_overhead;

	if (length < floor)
		length = floor;
	return queue->slo && queue->slo < length ? queue->slo : length;
}

/* T * Wi. */
static int64_t part(const struct run_queue *queue, const struct run_queue_entry *entry)
{
	return (int64_t)((unsigned __int128)round_length(queue) * entry->weight / queue->weights) +
	       1;
}

/* Turns that are over before a switch is would be worth nothing. Who has so small a part takes
 * those of several rounds at once, all but the first in advance. With an objective rounds are as
 * short as it says. */
static int64_t least(const struct run_queue *queue, int64_t whole)
{
	int64_t shortest = (int64_t)queue->settings->min_quantum;

	return queue->slo || whole >= shortest ? 0 : shortest;
}

static uint64_t rank(const struct run_queue *queue, const struct run_queue_entry *entry,
		     uint64_t now)
{
	(void)queue, (void)now;
	return entry->ffs.ticket;
}

static void arrived(struct run_queue *queue, struct run_queue_entry *entry, uint64_t now)
{
	(void)now;
	entry->ffs.ticket = ++queue->counter;
	entry->ffs.fresh = true;
	if (entry->ffs.balance > 0)
		entry->ffs.balance = 0;
}

static uint64_t quantum(struct run_queue *queue, struct run_queue_entry *entry, uint64_t now)
{
	int64_t whole = part(queue, entry), shortest = least(queue, whole);
	int64_t debts = shortest > ROUNDS_MAX * whole ? shortest : ROUNDS_MAX * whole;

	(void)now;
	if (entry->ffs.balance < -debts)
		entry->ffs.balance = -debts;
	if (entry->ffs.fresh && entry->ffs.balance > 0)
		entry->ffs.balance = 0;
	if (entry->ffs.fresh || entry->ffs.balance <= 0) {
		int64_t back = entry->ffs.back < whole ? entry->ffs.back : whole;
		entry->ffs.balance += whole + back;
		entry->ffs.back -= back;
		if (entry->ffs.back > ROUNDS_MAX * whole)
			entry->ffs.back = ROUNDS_MAX * whole;
	}
	entry->ffs.fresh = false;
	if (entry->ffs.balance <= 0)
		return 0;
	return (uint64_t)(entry->ffs.balance < shortest ? shortest : entry->ffs.balance);
}

static void ran(struct run_queue *queue, struct run_queue_entry *entry, int64_t ns)
{
	(void)queue;
	if (ns < 0)
		entry->ffs.back -= ns;
	else
		entry->ffs.balance -= ns;
}

static void ended(struct run_queue *queue, struct run_queue_entry *entry, uint64_t left,
		  uint64_t now)
{
	(void)now;
	if (left > 0)
		return;
	entry->ffs.ticket = ++queue->counter;
	entry->ffs.fresh = true;
}

const struct policy policy_ffs = {
	.name = "ffs",
	.shares = true,
	.rank = rank,
	.quantum = quantum,
	.arrived = arrived,
	.ran = ran,
	.ended = ended,
};
