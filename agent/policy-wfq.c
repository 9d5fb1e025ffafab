/* wfq, weighted fair queueing (GLoop, section 5.3). A client's virtual time elapses while it runs,
 * the slower the more weight it has; the one with the least is next. It is work-conserving: a
 * client that had nothing to do does not save that up, for its virtual time is set to that of the
 * one in service when it comes back. Unlike GLoop's, a client that is ahead stays so: else going
 * idle for a moment would cancel its debts. */
#include "policy.h"

/* Virtual time is ns * SCALE / weight. */
#define SCALE (100ull * POLICY_WEIGHT_ONE)

static uint64_t rank(const struct turn *turn, const struct policy_client *client, uint64_t now)
{
	(void)turn, (void)now;
	return client->wfq.virtual_time;
}

static void arrived(struct turn *turn, struct policy_client *client, uint64_t now)
{
	(void)now;
	if (client->wfq.virtual_time < turn->counter)
		client->wfq.virtual_time = turn->counter;
}

static uint64_t quantum(struct turn *turn, struct policy_client *client, uint64_t now)
{
	const struct policy_settings *settings = turn->settings;
	uint64_t length = settings->quantum;

	(void)now;
	if (turn->counter < client->wfq.virtual_time && !turn->forced)
		turn->counter = client->wfq.virtual_time;
	if (turn->slo && turn->slo / turn->n_active < length)
		length = turn->slo / turn->n_active;
	return length > settings->min_quantum ? length : settings->min_quantum;
}

static void ran(struct turn *turn, struct policy_client *client, int64_t ns)
{
	int64_t step = (int64_t)((__int128)ns * (int64_t)SCALE / client->weight);

	(void)turn;
	if (step < 0 && client->wfq.virtual_time < (uint64_t)-step)
		client->wfq.virtual_time = 0;
	else
		client->wfq.virtual_time += (uint64_t)step;
}

const struct policy policy_wfq = {
	.name = "wfq",
	.shares = true,
	.rank = rank,
	.quantum = quantum,
	.arrived = arrived,
	.ran = ran,
};
