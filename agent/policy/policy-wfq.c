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

static uint64_t rank(const struct turn *turn, const struct policy_client *client, uint64_t now)
{
	(void)turn, (void)now;
	return client->wfq.left ? 0 : client->wfq.virtual_time + 1;
}

static void arrived(struct turn *turn, struct policy_client *client, uint64_t now)
{
	(void)now;
	client->wfq.left = 0;
	if (client->wfq.virtual_time < turn->counter)
		client->wfq.virtual_time = turn->counter;
}

static uint64_t quantum(struct turn *turn, struct policy_client *client, uint64_t now)
{
	const struct policy_settings *settings = turn->settings;
	uint64_t length = client->wfq.left ? client->wfq.left : settings->quantum;

	(void)now;
	client->wfq.left = 0;
	if (turn->counter < client->wfq.virtual_time && !turn->forced)
		turn->counter = client->wfq.virtual_time;
	if (turn->n_slo > 1 && turn->slo / turn->n_active < length)
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

static void ended(struct turn *turn, struct policy_client *client, uint64_t left, uint64_t now)
{
	(void)now;
	client->wfq.left = turn->n_slo && left >= turn->settings->min_quantum ? left : 0;
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
