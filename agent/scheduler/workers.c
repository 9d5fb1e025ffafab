#include "scheduler/workers.h"

#include "weir/base.h"

static void write_bound(const struct client *client)
{
	struct weir_control_page *control = client->pages.control;
	uint32_t workers = client->workers;

	if (atomic_load(&control->workers) == workers)
		return;
	atomic_store(&control->workers, workers);
	atomic_fetch_add(&control->epoch, 1);
}

void workers_set(struct client *client, uint32_t workers)
{
	client->workers = (uint32_t)smaller(workers, WORKERS_MOST);
	write_bound(client);
}

uint32_t workers_fit(const struct client *client)
{
	uint32_t most = 0;

	for (size_t i = 0; i < WEIR_SM_RESOURCES; i++)
		most = (uint32_t)larger(most, atomic_load(&client->pages.status->worker_parts[i]));
	return most ? (uint32_t)smaller(larger(WEIR_SM_PARTS / most, 1), WORKERS_MOST) : 0;
}
