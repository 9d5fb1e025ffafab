#include "scheduler/yields.h"

#include "policy/policy.h"
#include "policy/yield.h"
#include "scheduler/client.h"
#include "scheduler/gpu/gpu.h"

#include "weir/base.h"
#include "weir/fnv.h"

void yields_tell(struct client *client)
{
	_Atomic uint32_t *yield = &client->pages.control->yield;

	if (atomic_load(yield) != client->yield)
		atomic_store(yield, client->yield);
}

/* Nobody leaves anything to a client that has nobody below it. */
static bool has_lower(const struct gpu *gpu, uint8_t level)
{
	bool any = false;

	while (level--)
		any |= gpu->n_level[level] != 0;
	return any;
}

/* Whose kernels may run beside those of @client, if it compares what is the best room beside them.
 */
static uint32_t company_of(const struct gpu *gpu, const struct client *client, uint64_t now)
{
	uint64_t sum = 0;

	if (!yield_is_compared(client->yield) || !client_is_concurrent(client) ||
	    gpu_has_servers(gpu))
		return 0;
	for (const struct client *low = gpu->clients; low; low = low->gpu_next) {
		if (low->level < client->level && client_is_concurrent(low) && low->worked_at &&
		    now - low->worked_at < YIELDS_WORKED * YIELDS_BELOW_NS)
			sum += fnv_words(&low->number, sizeof(low->number)) | 1;
	}
	return sum ? (uint32_t)(sum >> 32) | 1 : 0;
}

/* Whose clients ask for less changes only while they find out whether that does. */
static void follow_asks(struct gpu *gpu)
{
	bool changed = false;

	for (struct client *client = gpu->clients; client; client = client->gpu_next) {
		bool part = client_yields_part(client);
		changed |= part != client->yields_part;
		client->yields_part = part;
	}
	if (changed)
		gpu_tell_spatial(gpu);
}

static bool is_looked_at(const struct gpu *gpu, const struct client *client)
{
	return client->yield != YIELD_WHOLE && client_is_concurrent(client) &&
	       has_lower(gpu, client->level);
}

uint64_t yields_look(struct gpu *gpu, uint64_t now)
{
	bool any = false;

	if (now < gpu->company_due)
		return gpu->company_due;
	for (struct client *client = gpu->clients; client; client = client->gpu_next) {
		if (atomic_load(&client->pages.status->outstanding))
			client->worked_at = now;
	}
	for (struct client *client = gpu->clients; client; client = client->gpu_next) {
		_Atomic uint32_t *company = &client->pages.control->company;
		uint32_t of = company_of(gpu, client, now);
		if (atomic_load(company) != of)
			atomic_store(company, of);
		any |= is_looked_at(gpu, client);
	}
	follow_asks(gpu);
	gpu->company_due = any ? now + YIELDS_BELOW_NS : 0;
	return any ? gpu->company_due : POLICY_NEVER;
}
