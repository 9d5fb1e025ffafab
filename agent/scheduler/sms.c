#include "scheduler/sms.h"

#include "policy/yield.h"
#include "scheduler/client.h"
#include "scheduler/gpu/gpu.h"

#include "weir/base.h"

static uint64_t gpu_sms(const struct client *client)
{
	uint32_t sms = atomic_load(&client->pages.status->gpu_sms);

	return sms && client_is_concurrent(client) && !gpu_has_servers(client->gpu) ? sms
										    : SMS_UNKNOWN;
}

uint64_t sms_needed(const struct client *client)
{
	uint64_t all = gpu_sms(client), sms = atomic_load(&client->pages.status->demand_sms);

	if (all == SMS_UNKNOWN)
		return all;
	if (!atomic_load(&client->pages.status->outstanding))
		return 0;
	return sms && client->yield != YIELD_WHOLE ? smaller(sms, all) : all;
}

uint64_t sms_given(const struct client *client)
{
	uint64_t all = gpu_sms(client), given = atomic_load(&client->pages.status->given_sms);

	return all == SMS_UNKNOWN || !given ? all : smaller(given, all);
}

uint64_t sms_left(const struct client *client)
{
	uint64_t all = gpu_sms(client), given = sms_given(client);

	if (all == SMS_UNKNOWN || client->level >= WEIR_DEMAND_LEVELS || !client->gpu->open)
		return given;
	const struct weir_demand_page *page = client->gpu->region.pages[client->level].demand;
	bool spatial = atomic_load(&client->pages.control->flags) & WEIR_CONTROL_SPATIAL;
	if (spatial ? atomic_load(&page->whole) : atomic_load(&page->word))
		return 0;
	return spatial ? smaller(all - smaller(all, atomic_load(&page->sms)), given) : given;
}
