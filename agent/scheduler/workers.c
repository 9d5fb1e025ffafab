#include "scheduler/workers.h"

#include <string.h>

#include "scheduler/gpu/gpu.h"
#include "scheduler/tenants.h"

#include "weir/base.h"
#include "weir/fnv.h"
#include "weir/loop.h"

/* A number that no other client has, of this or another run of the agent. */
static uint64_t number_of_client(const struct client *client)
{
	static uint64_t begun;
	uint64_t number;

	if (!begun)
		begun = loop_now();
	number = fnv_bytes(FNV_BASIS, &begun, sizeof(begun));
	number = fnv_bytes(number, &client->number, sizeof(client->number));
	return number ? number : 1;
}

/* The same for the same kernel of a namespace (outside pods: of a user) on the same model of GPU.
 * Namespace and model make the upper half, which no client can choose, so a client cannot spoil
 * what is known of others' kernels. A kernel without a number has its client's. */
static uint64_t number_of(const struct client *client)
{
	const struct tenant *tenant = client->tenant;
	uint64_t told = atomic_load(&client->pages.status->worker_kernel), whose = FNV_BASIS;

	if (!told)
		return number_of_client(client);
	whose = fnv_bytes(whose, tenant->namespace_, strlen(tenant->namespace_));
	if (!*tenant->namespace_)
		whose = fnv_bytes(whose, &tenant->identity.uid, sizeof(tenant->identity.uid));
	whose = fnv_bytes(whose, client->gpu->name, strlen(client->gpu->name));
	told = fnv_bytes(FNV_BASIS, &told, sizeof(told));
	uint64_t number = (whose & ~(uint64_t)UINT32_MAX) | told >> 32;
	return number ? number : 1;
}

void workers_report(struct client *client)
{
	const struct weir_status_page *status = client->pages.status;
	struct coexec_client *out = &client->entry.coexec;

	out->executed = atomic_load(&status->executed); /* first: it is never more */
	out->launched = atomic_load(&status->gpu_time);
	out->tuning = atomic_load(&status->comparing) != 0;
	out->kernel.number = number_of(client);
	for (size_t i = 0; i < WEIR_SM_RESOURCES; i++)
		out->kernel.parts[i] = atomic_load(&status->worker_parts[i]);
}

void workers_tell(const struct client *client, bool contends)
{
	struct weir_control_page *control = client->pages.control;
	uint32_t decided = contends ? client->entry.coexec.workers : 0;
	uint32_t workers = client->workers ? client->workers : decided;

	client_set_flag(client, WEIR_CONTROL_MEASURED, contends && client->entry.coexec.together);
	if (atomic_load(&control->workers) == workers)
		return;
	atomic_store(&control->workers, workers);
	atomic_fetch_add(&control->epoch, 1);
}

void workers_set(struct client *client, uint32_t workers)
{
	client->workers = (uint32_t)smaller(workers, WORKERS_MOST);
	workers_tell(client, true);
}

uint32_t workers_fit(const struct client *client)
{
	const struct coexec_configuration none = {{0}};
	struct coexec_kernel kernel = {.number = 1};

	for (size_t i = 0; i < WEIR_SM_RESOURCES; i++)
		kernel.parts[i] = atomic_load(&client->pages.status->worker_parts[i]);
	return coexec_room(&kernel, 1, &none, 0);
}
