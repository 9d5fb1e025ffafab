#include "launch/workers.h"

#include "client/request.h"
#include "gates/demand-pages.h"
#include "launch/preempt-slot.h"

#include "weir/fnv.h"
#include "weir/tickets.h"

uint32_t workers_of(const struct level_binding *binding, const struct client *client,
		    const struct launch_config *config, struct weir_persistent *hidden)
{
	uint64_t bound = (uint64_t)binding_workers(binding) * sms_of(client)->of_gpu;

	if (!bound || bound >= config->workers || hidden->tickets <= config->workers)
		return config->workers;
	/* A quota needs tickets of consecutive blocks. */
	weir_cut(hidden, hidden->chunk, (uint32_t)bound, !hidden->ahead,
		 hidden->room ? WEIR_TICKETS_IN_ROW : config->order);
	hidden->dealt = (uint32_t)bound;
	return (uint32_t)bound;
}

/* The agent's digest of a kernel is the same in all processes. */
static uint64_t number_of(const struct tuned_kernel *tuned)
{
	const struct function *function = atomic_load(&tuned->function);
	const struct kernel_profiles *profiles = function ? atomic_load(&function->profiles) : NULL;
	const struct geometry *geometry = &tuned->geometry;

	if (!profiles)
		return 0;
	uint64_t number = fnv_bytes(FNV_BASIS, profiles->kernel, sizeof(profiles->kernel));
	number = fnv_bytes(number, geometry->grid, sizeof(geometry->grid));
	number = fnv_bytes(number, geometry->block, sizeof(geometry->block));
	number = fnv_bytes(number, &geometry->shared, sizeof(geometry->shared));
	return number ? number : 1;
}

void workers_tell(const struct client *client, struct weir_status_page *status)
{
	const struct preempting *preempting = preempting_of(client);
	const struct launch_config *config = atomic_load(&preempting->latest);
	const struct tuned_kernel *tuned = atomic_load(&preempting->latest_tuned);

	if (!config || !tuned || atomic_load(&tuned->client) != client)
		return;
	atomic_store(&status->worker_kernel, number_of(tuned));
	for (size_t i = 0; i < WEIR_SM_RESOURCES; i++)
		atomic_store(&status->worker_parts[i], config->parts[i]);
}
