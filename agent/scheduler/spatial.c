#include "scheduler/spatial.h"

#include "policy/yield.h"
#include "scheduler/contention.h"

#include "weir/base.h"

static uint64_t bit_of(const struct client *client)
{
	return 1ull << client->bit;
}

static struct weir_demand_page *page_of(const struct gpu *gpu, unsigned level)
{
	return gpu->region.pages[level].demand;
}

/* Clients of different levels have servers of their own, which share the GPU by time. */
static bool has_servers(const struct gpu *gpu)
{
	for (unsigned level = 0; level < WEIR_LEVELS; level++)
		if (gpu->servers[level])
			return true;
	return false;
}

static bool may_rely(const struct client *client)
{
	bool yields = false;

	if (!client_is_concurrent(client))
		return false;
	for (const struct client *other = client->gpu->clients; other; other = other->gpu_next) {
		if (other->level <= client->level)
			continue;
		if (!other->says_whole || !client_is_concurrent(other))
			return false;
		yields |= other->yield != YIELD_WHOLE;
	}
	return yields;
}

void spatial_tell(struct gpu *gpu)
{
	bool ever = !gpu->reserved && !has_servers(gpu);

	for (struct client *client = gpu->clients; client; client = client->gpu_next)
		contention_set_flag(client, WEIR_CONTROL_SPATIAL, ever && may_rely(client));
}

/* An older libweir sets its bit in `word` alone. */
static void set_for_older(const struct gpu *gpu, const struct client *client)
{
	for (unsigned level = 0; level < client->level; level++) {
		struct weir_demand_page *page = page_of(gpu, level);
		if (atomic_load(&page->word) & bit_of(client))
			atomic_fetch_or(&page->whole, bit_of(client));
		else
			atomic_fetch_and(&page->whole, ~bit_of(client));
	}
}

void spatial_look(struct gpu *gpu)
{
	for (const struct client *client = gpu->clients; client; client = client->gpu_next)
		if (!client->says_whole && client->bit < WEIR_BITS_OWN)
			set_for_older(gpu, client);
	spatial_tell(gpu);
}

static uint64_t gpu_sms(const struct client *client)
{
	uint32_t sms = atomic_load(&client->pages.status->gpu_sms);

	return sms && client_is_concurrent(client) && !has_servers(client->gpu) ? sms
										: SPATIAL_UNKNOWN;
}

uint64_t spatial_needed(const struct client *client)
{
	uint64_t all = gpu_sms(client), sms = atomic_load(&client->pages.status->demand_sms);

	if (all == SPATIAL_UNKNOWN)
		return all;
	if (!atomic_load(&client->pages.status->outstanding))
		return 0;
	return sms && client->yield != YIELD_WHOLE ? smaller(sms, all) : all;
}

uint64_t spatial_left(const struct client *client)
{
	uint64_t all = gpu_sms(client);

	if (all == SPATIAL_UNKNOWN || client->level >= WEIR_DEMAND_LEVELS || !client->gpu->open)
		return all;
	const struct weir_demand_page *page = page_of(client->gpu, client->level);
	bool spatial = atomic_load(&client->pages.control->flags) & WEIR_CONTROL_SPATIAL;
	if (spatial ? atomic_load(&page->whole) : atomic_load(&page->word))
		return 0;
	return spatial ? all - smaller(all, atomic_load(&page->sms)) : all;
}
