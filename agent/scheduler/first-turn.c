#include "scheduler/first-turn.h"

#include "scheduler/contention.h"
#include "scheduler/preemption.h"
#include "scheduler/tenants.h"

#include "weir/base.h"

/* Clients then report new work at once. */
static bool beside_tight_objective(const struct client *client)
{
	const struct gpu *gpu = client->gpu;

	return gpu->contention[client->level].tight_slo && !client->tenant->slo &&
	       gpu->n_level[client->level] >= FIRST_TURN_CLIENTS &&
	       contention_polls_fast(gpu, client->level);
}

bool first_turn_waits(const struct client *client, uint64_t now)
{
	const struct run_queue_entry *entry = &client->entry;

	return !entry->active && now - entry->left >= FIRST_TURN_PAUSE_NS &&
	       preemption_works(client) && beside_tight_objective(client);
}
