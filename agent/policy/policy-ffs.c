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

static uint64_t round_length(const struct turn *turn)
{
	const struct policy_settings *settings = turn->settings;
	uint64_t floor = turn->n_active * settings->min_quantum;
	uint64_t length = turn->costs * 1000000 / settings->max_overhead;

	if (length < floor)
		length = floor;
	return turn->slo && turn->slo < length ? turn->slo : length;
}

/* T * Wi. */
static int64_t part(const struct turn *turn, const struct policy_client *client)
{
	return (int64_t)((unsigned __int128)round_length(turn) * client->weight / turn->weights) +
	       1;
}

/* Turns that are over before a switch is would be worth nothing. Who has so small a part takes
 * those of several rounds at once, all but the first in advance. With an objective rounds are as
 * short as it says. */
static int64_t least(const struct turn *turn, int64_t whole)
{
	int64_t shortest = (int64_t)turn->settings->min_quantum;

	return turn->slo || whole >= shortest ? 0 : shortest;
}

static uint64_t rank(const struct turn *turn, const struct policy_client *client, uint64_t now)
{
	(void)turn, (void)now;
	return client->ffs.ticket;
}

static void arrived(struct turn *turn, struct policy_client *client, uint64_t now)
{
	(void)now;
	client->ffs.ticket = ++turn->counter;
	client->ffs.fresh = true;
	if (client->ffs.balance > 0)
		client->ffs.balance = 0;
}

static uint64_t quantum(struct turn *turn, struct policy_client *client, uint64_t now)
{
	int64_t whole = part(turn, client), shortest = least(turn, whole);
	int64_t debts = shortest > ROUNDS_MAX * whole ? shortest : ROUNDS_MAX * whole;

	(void)now;
	if (client->ffs.balance < -debts)
		client->ffs.balance = -debts;
	if (client->ffs.fresh && client->ffs.balance > 0)
		client->ffs.balance = 0;
	if (client->ffs.fresh || client->ffs.balance <= 0) {
		int64_t back = client->ffs.back < whole ? client->ffs.back : whole;
		client->ffs.balance += whole + back;
		client->ffs.back -= back;
		if (client->ffs.back > ROUNDS_MAX * whole)
			client->ffs.back = ROUNDS_MAX * whole;
	}
	client->ffs.fresh = false;
	if (client->ffs.balance <= 0)
		return 0;
	return (uint64_t)(client->ffs.balance < shortest ? shortest : client->ffs.balance);
}

static void ran(struct turn *turn, struct policy_client *client, int64_t ns)
{
	(void)turn;
	if (ns < 0)
		client->ffs.back -= ns;
	else
		client->ffs.balance -= ns;
}

static void ended(struct turn *turn, struct policy_client *client, uint64_t left, uint64_t now)
{
	(void)now;
	if (left > 0)
		return;
	client->ffs.ticket = ++turn->counter;
	client->ffs.fresh = true;
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
