#include "client/early.h"

#include "client/demand.h"
#include "client/worker.h"

#include <stdlib.h>
#include <string.h>

#define TRUST_ONE 256u
#define TRUST_MIN (TRUST_ONE * 3 / 4)
#define KEPT      8u     /* of about so many copies the mean */
#define SLACK     50000u /* ns */

static bool off;

void early_init(void)
{
	const char *early = getenv("WEIR_EARLY");

	off = early && strcmp(early, "off") == 0;
}

void early_learn(struct early *early, uint64_t lead)
{
	uint64_t mean = atomic_load(&early->lead);
	uint32_t trust = atomic_load(&early->trust);

	if (lead > EARLY_LEAD_MAX) {
		atomic_store(&early->trust, trust - (trust + KEPT - 1) / KEPT);
		return;
	}
	atomic_store(&early->trust, trust + (TRUST_ONE - trust + KEPT - 1) / KEPT);
	atomic_store(&early->lead, mean ? mean - mean / KEPT + lead / KEPT : lead);
}

bool early_pays(const struct early *early)
{
	return atomic_load(&early->trust) >= TRUST_MIN;
}

void early_copy(struct client *client)
{
	const struct level_binding *binding = atomic_load(&client->binding);
	struct early *early = &client->early;
	uint64_t now, none = 0;

	if (off || !binding || !binding->level || atomic_load(&client->demanding))
		return;
	now = client_now();
	if (!atomic_compare_exchange_strong(&early->since, &none, now) || !early_pays(early))
		return;
	atomic_store(&early->until, now + 2 * atomic_load(&early->lead) + SLACK);
	if (!demand_set_early(client, binding)) {
		atomic_store(&early->since, 0);
		return;
	}
	atomic_fetch_add(&status_page(binding)->speculative, 1);
	worker_wake();
}

/* How long those below were away for nothing yet. */
static void count_time(const struct level_binding *binding, uint64_t since, uint64_t now)
{
	if (binding && now > since)
		atomic_fetch_add(&status_page(binding)->speculative_time, now - since);
}

void early_launched(struct client *client, const struct level_binding *binding, uint64_t now)
{
	uint64_t since = atomic_exchange(&client->early.since, 0);

	if (!since)
		return;
	if (atomic_load(&client->demanding) == DEMAND_EARLY)
		count_time(binding, since, now);
	early_learn(&client->early, now > since ? now - since : 0);
}

bool early_stays(const struct client *client, uint64_t now)
{
	return now < atomic_load(&client->early.until);
}

void early_missed(struct client *client, uint64_t now)
{
	const struct level_binding *binding = atomic_load(&client->binding);
	uint64_t since = atomic_exchange(&client->early.since, 0);

	if (!since)
		return;
	early_learn(&client->early, UINT64_MAX);
	count_time(binding, since, now);
	if (binding)
		atomic_fetch_add(&status_page(binding)->speculative_misses, 1);
}
