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
	bool may = policy && (policy->never_holds || policy->slices || policy->slices_now);
	bool can = may && gpu->n_level[level] > 1;

	for (const struct client *client = gpu->clients; client && can; client = client->gpu_next)
		if (client->level == level)
			can = preemption_works(client) &&
			      (policy->never_holds || !client->tenant->slo);
	return can;
}

void slice_shares_refresh(struct gpu *gpu)
{
	uint8_t level = top_level(gpu);
	bool can = can_share(gpu, level), now_and_then = can && gpu->queues.policy->slices_now;
	bool sliced = can && !now_and_then;

	for (uint8_t other = 0; other < WEIR_LEVELS; other++)
		gpu->queues.levels[other].slices = now_and_then && other == level;

	if (gpu->sliced == sliced && (!sliced || gpu->sliced_level == level))
		return;
	gpu->sliced = sliced;
	gpu->sliced_level = level;
	/* Nobody is charged for what ran in slices. */
	for (struct client *client = gpu->clients; client; client = client->gpu_next)
		client->charge = (struct charge_state){0};
}

void slice_shares_look(struct gpu *gpu, uint64_t now)
{
	for (uint8_t level = 0; level < WEIR_LEVELS; level++) {
		const struct run_queue *queue = &gpu->queues.levels[level];
		bool same = queue->n_active == gpu->sliced_among.n &&
			    queue->weights == gpu->sliced_among.weights;
		if (queue->slices && !queue->sliced)
			gpu->sliced_among.n = 0;
		if (!queue->sliced || same || now - gpu->sliced_among.at < SLICE_SHARES_NS)
			continue;
		gpu->sliced_among.n = queue->n_active;
		gpu->sliced_among.weights = queue->weights;
		gpu->sliced_among.at = now;
		preemption_set_slices(gpu);
	}
}
