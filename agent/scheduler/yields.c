#include "scheduler/yields.h"

#include "policy/policy.h"
#include "policy/yield.h"
#include "scheduler/client.h"
#include "scheduler/gpu/gpu.h"
#include "scheduler/tenants.h"

#include "weir/base.h"
#include "weir/fnv.h"
#include "weir/log.h"

void yields_tell(struct client *client)
{
	_Atomic uint32_t *yield = &client->pages.control->yield;
	uint32_t now = yield_trial_now(&client->yield_trial, client->yield);

	if (atomic_load(yield) != now)
		atomic_store(yield, now);
	client_set_flag(client, WEIR_CONTROL_COMPARES, client->yield_trial.window != 0);
}

/* A client whose kernels run beside those of @client, and that leaves SMs to it. */
static bool has_work_below(const struct gpu *gpu, const struct client *client)
{
	for (const struct client *low = gpu->clients; low; low = low->gpu_next) {
		if (low->level < client->level && client_is_concurrent(low) &&
		    atomic_load(&low->pages.status->outstanding))
			return true;
	}
	return false;
}

static struct yield_look look_at(const struct gpu *gpu, const struct client *client, uint64_t now)
{
	const struct weir_status_page *status = client->pages.status;
	struct yield_look look = {
		.now = now,
		.told.demand_time = atomic_load(&status->demand_time),
		.is_beside = client_is_concurrent(client) && !gpu_has_servers(gpu) &&
			     has_work_below(gpu, client),
	};

	for (size_t i = 0; i < WEIR_YIELD_KINDS; i++) {
		look.told.samples[i] = atomic_load(&status->yield_samples[i]);
		look.told.measured[i] = atomic_load(&status->yield_measured[i]);
		look.told.predicted[i] = atomic_load(&status->yield_predicted[i]);
	}
	return look;
}

static const struct client *comparing(const struct gpu *gpu)
{
	const struct client *client = gpu->clients;

	while (client && !client->yield_trial.window)
		client = client->gpu_next;
	return client;
}

static void say(const struct client *client)
{
	const struct yield_trial *trial = &client->yield_trial;

	if (client->yield != YIELD_MEASURED) /* it does not ask for that any more */
		return;
	log_limited(LOG_INFO, 1,
		    WHOSE "with the SMs that it needs its kernels take %.2f times as long as "
			  "with all: lower levels leave %s to it",
		    WHO(client->tenant), trial->slower,
		    trial->needs_all ? "the whole GPU" : "only these SMs");
}

/* Nobody leaves anything to a client that has nobody below it. */
static bool has_lower(const struct gpu *gpu, uint8_t level)
{
	bool any = false;

	while (level--)
		any |= gpu->n_level[level] != 0;
	return any;
}

/* Whose kernels may run beside those of @client. */
static uint32_t company_of(const struct gpu *gpu, const struct client *client, uint64_t now)
{
	uint64_t sum = 0;

	if (client->yield == YIELD_WHOLE || !client_is_concurrent(client) || gpu_has_servers(gpu))
		return 0;
	for (const struct client *low = gpu->clients; low; low = low->gpu_next) {
		if (low->level < client->level && client_is_concurrent(low) && low->worked_at &&
		    now - low->worked_at < YIELDS_WORKED * YIELDS_BELOW_NS)
			sum += fnv_words(&low->number, sizeof(low->number)) | 1;
	}
	return sum ? (uint32_t)(sum >> 32) | 1 : 0;
}

static uint64_t look_below(struct gpu *gpu, uint64_t now)
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
		any |= client->yield != YIELD_WHOLE && has_lower(gpu, client->level);
	}
	gpu->company_due = any ? now + YIELDS_BELOW_NS : 0;
	return any ? gpu->company_due : POLICY_NEVER;
}

static uint64_t look_at_trials(struct gpu *gpu, uint64_t now)
{
	bool any = false;

	if (now < gpu->yields_due)
		return gpu->yields_due;
	const struct client *compares = comparing(gpu);
	for (struct client *client = gpu->clients; client; client = client->gpu_next) {
		struct yield_look look = look_at(gpu, client, now);
		look.others_compare = compares && compares != client;
		if (yield_trial_look(&client->yield_trial, client->yield, &look))
			say(client);
		compares = client->yield_trial.window ? client : compares;
		yields_tell(client);
		any |= client->yield == YIELD_MEASURED && has_lower(gpu, client->level);
	}
	gpu->yields_due = any ? now + YIELDS_LOOK_NS : 0;
	return any ? gpu->yields_due : POLICY_NEVER;
}

uint64_t yields_look(struct gpu *gpu, uint64_t now)
{
	return smaller(look_below(gpu, now), look_at_trials(gpu, now));
}
