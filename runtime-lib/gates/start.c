#include "gates/start.h"

struct start start_table[CLIENTS_MAX];

static uint64_t objective(const struct level_binding *binding)
{
	return binding ? atomic_load(&control_page(binding)->latency_slo) : 0;
}

/* A late start is left to the worker, which counts it. */
void start_done(struct client *client, const struct level_binding *binding)
{
	struct start *start = start_of(client);
	uint64_t since = atomic_load(&start->since), slo = objective(binding);

	if (!since || (slo && client_now() - since > slo))
		return;
	if (atomic_compare_exchange_strong(&start->since, &since, 0))
		atomic_fetch_add(&start->starts, 1);
}

/* With an eighth more than was predicted. */
void start_ended(struct client *client, const struct sample *sample)
{
	struct start *start = start_of(client);
	uint64_t slo = objective(atomic_load(&client->binding));
	uint64_t since = sample->of.started, allowed = sample->of.predicted / 8 * 9;
	uint64_t seen = sample->open;

	if (!since)
		return;
	if (sample_evicted(sample)) {
		allowed = 0;
		seen = sample->waited;
	}
	if (slo && seen > since && seen - since > allowed && seen - since - allowed > slo)
		start->late++;
	atomic_fetch_add(&start->starts, 1);
}

void start_look(struct client *client, struct tick *tick)
{
	(void)client;
	tick->slo = tick->binding && binding_has_slo(tick->binding);
}

void start_work(struct client *client, struct tick *tick)
{
	struct start *start = start_of(client);
	uint64_t since = atomic_load(&start->since);

	/* In this order: if the gate is open now, it was the closed one. */
	if (!since || binding_closed(tick->binding))
		return;
	uint64_t slo = objective(tick->binding);
	if (!atomic_compare_exchange_strong(&start->since, &since, 0))
		return;
	if (slo && tick->now > since && tick->now - since > slo)
		start->late++;
	atomic_fetch_add(&start->starts, 1);
}
