#include "scheduler/slice-shares.h"

#include <limits.h>

#include "scheduler/preemption.h"
#include "scheduler/tenants.h"

#include "weir/base.h"

static uint8_t top_level(const struct gpu *gpu)
{
	uint8_t level = WEIR_LEVELS - 1;

	while (level > 0 && !gpu->n_level[level])
		level--;
	return level;
}

static bool can_share(const struct gpu *gpu, uint8_t level)
{
	const struct policy *policy = gpu->queues.policy;
	bool can = policy && (policy->never_holds || policy->slices) && gpu->n_level[level] > 1;

	for (const struct client *client = gpu->clients; client && can; client = client->gpu_next)
		if (client->level == level)
			can = preemption_works(client) &&
			      (policy->never_holds || !client->tenant->slo);
	return can;
}

void slice_shares_refresh(struct gpu *gpu)
{
	uint8_t level = top_level(gpu);
	bool sliced = can_share(gpu, level);

	if (gpu->sliced == sliced && (!sliced || gpu->sliced_level == level))
		return;
	gpu->sliced = sliced;
	gpu->sliced_level = level;
	gpu->share = (struct gpu_share){0};
	for (struct client *client = gpu->clients; client; client = client->gpu_next) {
		client->share.known = client->share.idle = false;
		/* What ran meanwhile was nobody's turn. */
		client->charge = (struct charge_state){0};
	}
}

static struct share_client *list_clients(struct gpu *gpu)
{
	struct share_client *list = NULL;

	for (struct client *client = gpu->clients; client; client = client->gpu_next) {
		const struct weir_status_page *status = client->pages.status;
		if (client->level != gpu->sliced_level)
			continue;
		client->share.weight = client->entry.weight;
		client->share.apart = client->tenant->compute_limit || client->held_until;
		share_read(&client->share, atomic_load(&status->executed),
			   atomic_load(&status->demand_time));
		client->share.next = list;
		list = &client->share;
	}
	return list;
}

/* Whoever has got work since the window began is not idle. */
static void notice_work(struct gpu *gpu)
{
	for (struct client *client = gpu->clients; client; client = client->gpu_next)
		if (atomic_load(&client->pages.status->outstanding))
			client->share.idle = false;
}

uint64_t slice_shares_look(struct gpu *gpu, uint64_t now)
{
	struct gpu_share *share = &gpu->share;

	if (!gpu->sliced || share->sleeps)
		return POLICY_NEVER;
	if (now < share->due)
		return share->due;
	unsigned n = share_control(&share->control, list_clients(gpu), now);
	if (n != UINT_MAX) {
		notice_work(gpu);
		preemption_set_slices(gpu);
	}
	share->sleeps = n < 2 && !share->woken;
	share->woken = false;
	share->due = now + SHARE_WINDOW_NS;
	return share->sleeps ? POLICY_NEVER : share->due;
}

bool slice_shares_listens(const struct client *client)
{
	return gpu_slices(client->gpu, client->level) && client->gpu->share.sleeps;
}

bool slice_shares_hear(const struct client *client)
{
	struct gpu_share *share = &client->gpu->share;

	if (!slice_shares_listens(client))
		return false;
	*share = (struct gpu_share){.control = share->control, .woken = true};
	return true;
}
