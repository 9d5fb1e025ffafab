#include "scheduler/slice-shares.h"

#include "scheduler/preemption.h"
#include "scheduler/tenants.h"

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
	/* What ran meanwhile was nobody's turn. */
	for (struct client *client = gpu->clients; client; client = client->gpu_next)
		client->charge = (struct charge_state){0};
}
