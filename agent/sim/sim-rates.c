/* Minimum rates. A client that is ahead of its own is out while others have work, under MPS, too:
 * the model runs no two of them at the same time there. The others of its level are out while it is
 * behind. */
#include "sim/sim-model.h"

#include "weir/base.h"

#define EVERY NS_PER_MS

static bool lacks(const struct actor *actor)
{
	return actor->traits->min_rate && actor->n > 0 && !actor->rate.ahead;
}

/* Another client that could run: any, or one that does not wait for @actor's demand. */
static bool others_run(const struct sim *sim, const struct actor *actor, bool any)
{
	for (size_t i = 0; i < sim->trace->n_clients; i++) {
		const struct actor *other = &sim->actors[i];
		if (other == actor || other->n == 0)
			continue;
		if (any || (!other->out && other->entry.level >= actor->entry.level))
			return true;
	}
	return false;
}

static void charge(struct sim *sim, struct actor *actor)
{
	const struct sim_client *stats = actor->stats;
	uint64_t busy = stats->busy + (actor->n > 0 ? sim->now - actor->active_since : 0);
	struct min_rate_use use = {
		.time = busy - actor->rate_busy,
		.work = stats->ran - actor->rate_ran,
		.alone = actor->alone && !others_run(sim, actor, !lacks(actor)),
	};

	actor->rate_busy = busy;
	actor->rate_ran = stats->ran;
	min_rate_charge(&actor->rate, &use);
}

/* Of several that lack their rates the first one learns its speed alone first. */
static const struct actor *first_learning(const struct sim *sim)
{
	for (size_t i = 0; i < sim->trace->n_clients; i++)
		if (lacks(&sim->actors[i]) && min_rate_learns(&sim->actors[i].rate))
			return &sim->actors[i];
	return NULL;
}

/* Of several that are ahead none makes room for another one. */
static bool is_awaited(const struct sim *sim)
{
	for (size_t i = 0; i < sim->trace->n_clients; i++)
		if (sim->actors[i].n > 0 && !sim->actors[i].traits->min_rate)
			return true;
	return false;
}

static bool must_wait(const struct sim *sim, const struct actor *actor)
{
	const struct actor *learning = first_learning(sim);

	if (lacks(actor))
		return learning && learning != actor && learning->entry.level >= actor->entry.level;
	for (size_t i = 0; i < sim->trace->n_clients; i++) {
		const struct actor *other = &sim->actors[i];
		if (other != actor && lacks(other) &&
		    (actor->leaves || other->entry.level == actor->entry.level))
			return true;
	}
	return actor->leaves && is_awaited(sim);
}

static void leave(struct sim *sim, struct actor *actor, bool leaves)
{
	if (actor->leaves == leaves)
		return;
	if (actor->n > 0)
		sim_count_active(sim, actor, leaves ? -1 : 1);
	actor->leaves = leaves;
}

void sim_rates_look(struct sim *sim)
{
	size_t n = sim->trace->n_clients;

	for (size_t i = 0; i < n; i++)
		if (sim->actors[i].traits->min_rate)
			charge(sim, &sim->actors[i]);
	for (size_t i = 0; i < n; i++)
		leave(sim, &sim->actors[i], sim->actors[i].rate.ahead);
	for (size_t i = 0; i < n; i++) {
		struct actor *actor = &sim->actors[i];
		bool out = must_wait(sim, actor);
		if (actor->out == out)
			continue;
		actor->out = out;
		sim_set_runnable(sim, actor);
		sim_mark_changed(sim, actor);
		sim->look_at = sim->now;
	}
	for (size_t i = 0; i < n; i++)
		sim->actors[i].alone = !others_run(sim, &sim->actors[i], !lacks(&sim->actors[i]));
	sim->rates_at = sim->now + EVERY;
}
