/* dynamic priorities (EffiSha, section 7), as in schedulers for CPUs with two queues. Who waits in
 * the active queue gains 1 of priority a millisecond, 20 at most; the highest is next and gets a
 * quota of (p + 1) / 2 ms by its own priority p. Who has used it up waits in the inactive queue, at
 * its own priority; when the active one is empty, the two change places. A client that comes enters
 * the active queue, and evicts a running one of less priority than its own; that one keeps the
 * priority that it has by now, and the rest of its quota. */
#include "policy/policy.h"

#define MS      1000000ull
#define AGE_MAX 20

/* By waiting, before it was evicted. */
static uint64_t gained(const struct policy_client *client)
{
	uint64_t own = policy_priority(client);

	return client->dynamic.rest && client->dynamic.priority > own
		       ? client->dynamic.priority - own
		       : 0;
}

static uint64_t priority(const struct turn *turn, const struct policy_client *client, uint64_t now)
{
	uint64_t since = client->since > turn->swapped ? client->since : turn->swapped;
	uint64_t age = gained(client);

	if (client->dynamic.queue == turn->counter && now > since)
		age += (now - since) / MS;
	return policy_priority(client) + (age < AGE_MAX ? age : AGE_MAX);
}

static uint64_t rank(const struct turn *turn, const struct policy_client *client, uint64_t now)
{
	return client->dynamic.queue << 6 | (63 - priority(turn, client, now));
}

static void arrived(struct turn *turn, struct policy_client *client, uint64_t now)
{
	(void)now;
	client->dynamic.queue = turn->counter;
	client->dynamic.rest = 0;
}

static uint64_t quantum(struct turn *turn, struct policy_client *client, uint64_t now)
{
	/* The first of all waits in the inactive queue: the active one is empty. */
	if (client->dynamic.queue > turn->counter && !turn->forced) {
		turn->counter = client->dynamic.queue;
		turn->swapped = now;
	}
	client->dynamic.priority = priority(turn, client, now);
	return client->dynamic.rest ? client->dynamic.rest : (policy_priority(client) + 1) * MS / 2;
}

static bool preempts(const struct turn *turn, const struct policy_client *waiting,
		     const struct policy_client *running, uint64_t now)
{
	(void)now;
	return !waiting->waited && waiting->arrived >= turn->started &&
	       waiting->dynamic.queue == turn->counter &&
	       policy_priority(waiting) > running->dynamic.priority;
}

static void ended(struct turn *turn, struct policy_client *client, uint64_t left, uint64_t now)
{
	(void)now;
	client->dynamic.rest = left;
	if (left == 0)
		client->dynamic.queue = turn->counter + 1;
}

const struct policy policy_dynamic = {
	.name = "dynamic",
	.shares = true,
	.rank = rank,
	.quantum = quantum,
	.preempts = preempts,
	.arrived = arrived,
	.ended = ended,
};
