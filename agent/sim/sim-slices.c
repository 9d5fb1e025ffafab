#include "sim/sim-model.h"
#include "hardware/slices.h"

#include "weir/base.h"

static unsigned count(const struct sim *sim, uint8_t level)
{
	unsigned n = 0;

	for (size_t i = 0; i < sim->trace->n_clients; i++)
		n += sim->trace->clients[i].level == level;
	return n;
}

/* Slices do not know objectives. */
static bool has_objective(const struct sim *sim, uint8_t level)
{
	for (size_t i = 0; i < sim->trace->n_clients; i++)
		if (sim->trace->clients[i].level == level && sim->trace->clients[i].slo)
			return true;
	return false;
}

void sim_slices_set(struct sim *sim)
{
	const struct policy *policy = sim->options->policy;
	uint8_t level = WEIR_LEVELS - 1;

	sim->sliced_level = WEIR_LEVELS;
	while (level > 0 && !count(sim, level))
		level--;
	if (!sim->options->hardware || sim->options->mps || count(sim, level) < 2 ||
	    (has_objective(sim, level) && !policy->never_holds))
		return;
	if (policy->never_holds || policy->slices)
		sim->sliced_level = level;
	sim->queues.levels[level].slices = policy->slices_now != NULL;
}

uint64_t sim_slice(const struct sim *sim, const struct actor *actor)
{
	const struct sim_options *options = sim->options;
	const struct policy *policy = options->policy;
	uint8_t level = actor->entry.level;
	bool now = sim->queues.levels[level].sliced;
	struct slice_rank rank = {
		.least = UINT64_MAX,
		.steady = now,
		.mean = policy->slice ? policy->slice(&options->settings) / NS_PER_US : 0,
		.weight = actor->entry.weight,
	};

	if (!now && level != sim->sliced_level)
		return options->slice;
	for (size_t i = 0; i < sim->trace->n_clients; i++) {
		const struct run_queue_entry *other = &sim->actors[i].entry;
		if (other->level == level && (!now || other->active || other == &actor->entry))
			slice_rank_add(&rank, other->weight);
	}
	uint64_t us = slice_for(&rank);
	/* What restoring takes is a part of `switching`. */
	return us == SLICE_DEFAULT ? options->slice : (us - SLICE_RESTORE) * NS_PER_US;
}
