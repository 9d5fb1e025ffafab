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
	bool ever = !gpu->reserved && !gpu_has_servers(gpu);

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
