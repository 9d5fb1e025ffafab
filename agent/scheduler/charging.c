#include "scheduler/charging.h"

#include "weir/base.h"

/* Clients of a level that run now: the current one, and those beside it. */
static unsigned n_running(const struct run_queue *queue)
{
	return (queue->current != NULL) + (queue->concurrent ? queue->n_free : 0);
}

static void charge_for_report(struct gpu *gpu, struct client *client, uint64_t now)
{
	const struct weir_status_page *status = client->pages.status;
	const struct run_queue *queue = &gpu->queues.levels[client->level];
	uint64_t outstanding = atomic_load(&status->outstanding);
	struct charge_report report = {.executed = atomic_load(&status->executed),
				       .kernel = atomic_load(&status->remaining) /
						 (outstanding ? outstanding : 1),
				       .measured = atomic_load(&status->loops) > 0,
				       .now = now};
	if (queue->sliced) {
		charge_nothing(&client->charge, &report);
		return;
	}
	struct charge_run run = {.shared = gpu->n_level[client->level] > 1,
				 .current = queue->current == &client->entry && !queue->concurrent,
				 .contended = queue->waiting != NULL,
				 .started = queue->started,
				 .used = queue->used,
				 .allowed = queue->allowed};
	struct charges charges =
		charge_report(&client->charge, &gpu->refunds[client->level], &report, &run);

	if (charges.extra || charges.refund)
		run_queues_correct(&client->entry,
				   (int64_t)charges.extra - (int64_t)charges.refund);
}

/* Below a level with demand no client runs. */
static bool is_blocked(const struct gpu *gpu, uint8_t level)
{
	return level < WEIR_DEMAND_LEVELS && gpu->open &&
	       atomic_load(&gpu->region.pages[level].demand->word);
}

static void charge_client(struct client *client, uint64_t ns)
{
	run_queues_ran(&client->entry, ns);
	charge_by_clock(&client->charge, ns);
}

/* Nobody knows yet what each of several got that ran at the same time. */
static void charge_by_level(struct gpu *gpu, uint8_t level, uint64_t passed)
{
	const struct run_queue *queue = &gpu->queues.levels[level];
	unsigned n = n_running(queue);

	if (!queue->current || queue->sliced || is_blocked(gpu, level))
		return;
	for (struct client *client = gpu->clients; client; client = client->gpu_next)
		if (&client->entry == queue->current ||
		    (queue->concurrent && client->level == level && client->entry.active &&
		     !client->entry.held))
			charge_client(client, passed / n);
}

void charging_look(struct gpu *gpu, uint64_t passed, uint64_t now)
{
	for (struct client *client = gpu->clients; client; client = client->gpu_next)
		charge_for_report(gpu, client, now);
	for (uint8_t level = 0; level < WEIR_LEVELS; level++) {
		gpu->queues.levels[level].blocked += is_blocked(gpu, level) ? passed : 0;
		if (gpu->n_level[level] > 1)
			charge_by_level(gpu, level, passed);
	}
}
