#include "launch/workers.h"

#include "gates/demand-pages.h"
#include "launch/preempt-slot.h"

#include "weir/tickets.h"

uint64_t workers_bound(const struct level_binding *binding, const struct client *client)
{
	return (uint64_t)binding_workers(binding) * sms_of(client)->of_gpu;
}

uint32_t workers_of(const struct level_binding *binding, const struct client *client,
		    const struct launch_config *config, struct weir_persistent *hidden)
{
	uint64_t bound = workers_bound(binding, client);

	if (!bound || bound >= config->workers || hidden->tickets <= config->workers)
		return config->workers;
	/* A quota needs tickets of consecutive blocks. */
	weir_cut(hidden, hidden->chunk, (uint32_t)bound, !hidden->ahead,
		 hidden->room ? WEIR_TICKETS_IN_ROW : config->order);
	hidden->dealt = (uint32_t)bound;
	return (uint32_t)bound;
}

void workers_tell(const struct client *client, struct weir_status_page *status)
{
	const struct launch_config *config = atomic_load(&preempting_of(client)->latest);

	const struct tuned_kernel *tuned = config ? tuning_of(config) : NULL;

	if (!tuned || atomic_load(&tuned->client) != client)
		return;
	config = autotune_bounded(&tuned->tuner, config);
	atomic_store(&status->worker_kernel, tuned->number);
	for (size_t i = 0; i < WEIR_SM_RESOURCES; i++)
		atomic_store(&status->worker_parts[i], config->parts[i]);
}
