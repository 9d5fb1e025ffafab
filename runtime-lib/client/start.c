#include "client/start.h"

#include "launch/gate.h"

uint64_t start_measured(const struct level_binding *binding, uint64_t predicted)
{
	bool wanted = atomic_load_explicit(&control_page(binding)->latency_slo,
					   memory_order_relaxed) != 0;

	return wanted && predicted ? client_now() : 0;
}

void start_begin(struct client *client, bool closed)
{
	uint64_t none = 0;

	/* Launches that wait behind the same closed gates start together: the first counts. */
	if (closed)
		atomic_compare_exchange_strong(&client->start_since, &none, client_now());
	else
		atomic_fetch_add_explicit(&client->starts, 1, memory_order_relaxed);
}

/* What was late is left to the worker, who counts that. */
void start_done(struct client *client, const struct level_binding *binding)
{
	uint64_t since = atomic_load(&client->start_since);
	uint64_t slo = atomic_load(&control_page(binding)->latency_slo);

	if (!since || (slo && client_now() - since > slo))
		return;
	if (atomic_compare_exchange_strong(&client->start_since, &since, 0))
		atomic_fetch_add(&client->starts, 1);
}

void start_look(struct client *client, const struct level_binding *binding, uint64_t now)
{
	uint64_t since = atomic_load(&client->start_since);

	/* In this order: the gate that is seen open was closed before. */
	if (!since || gate_closed(binding))
		return;
	uint64_t slo = atomic_load(&control_page(binding)->latency_slo);
	if (!atomic_compare_exchange_strong(&client->start_since, &since, 0))
		return;
	if (slo && now > since && now - since > slo)
		client->worker.starts_late++;
	atomic_fetch_add(&client->starts, 1);
}

/* With an eighth more than was predicted. */
void start_ended(struct client *client, const struct sample *sample)
{
	const struct level_binding *binding = atomic_load(&client->binding);
	uint64_t slo = binding ? atomic_load(&control_page(binding)->latency_slo) : 0;
	uint64_t since = sample->of.started, allowed = sample->of.predicted / 8 * 9;
	uint64_t seen = sample->open;

	if (!since)
		return;
	if (sample_evicted(sample)) {
		allowed = 0;
		seen = sample->waited;
	}
	if (slo && seen > since && seen - since > allowed && seen - since - allowed > slo)
		client->worker.starts_late++;
	atomic_fetch_add(&client->starts, 1);
}
