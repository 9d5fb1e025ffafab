/* Clients of lower levels on the SMs that higher-level ones do not need. */
#include <utlist.h>

#include "sim/sim-model.h"

#include "policy/yield.h"

#include "weir/base.h"

/* SMs that the client's demand asks for; 0: the whole GPU. As libweir counts them. Nobody's work is
 * slower here because others run beside it, so less does for those that find out by themselves. */
static uint32_t need_of(const struct sim *sim, const struct actor *actor)
{
	uint64_t sms = actor->traits->sms, all = sim->options->sms;
	uint32_t yield = actor->traits->yield;

	yield = yield == YIELD_AUTO ? YIELD_NEEDED : yield;
	if (!sim->options->mps || !sms || yield == YIELD_WHOLE || 4 * sms > 3 * all)
		return 0;
	uint64_t most = yield > WEIR_YIELD_NUMBER ? all - 1 : 3 * all / 4;
	sms = yield_sms(yield, sms);
	return sms > most ? 0 : (uint32_t)sms;
}

void sim_count_demand(struct sim *sim, const struct actor *actor, int n)
{
	struct sim_demand *demand = &sim->demand[actor->entry.level];
	uint32_t need = need_of(sim, actor);

	demand->whole += need ? 0u : (unsigned)n;
	demand->sms += need * (unsigned)n;
}

/* SMs that the levels above leave to @level. */
static uint32_t room(const struct sim *sim, unsigned level)
{
	uint32_t left = sim->options->sms;

	for (unsigned above = level + 1; above < WEIR_LEVELS; above++) {
		const struct sim_demand *demand = &sim->demand[above];
		if (demand->whole || demand->sms >= left)
			return 0;
		left -= demand->sms;
	}
	return left;
}

bool sim_may_share(const struct sim *sim, const struct actor *actor)
{
	uint32_t left = room(sim, actor->entry.level);

	return actor->runnable && left && left < sim->options->sms;
}

void sim_share(struct sim *sim, struct actor *actor)
{
	sim->beside = actor;
	sim->beside_room = room(sim, actor->entry.level);
	sim->beside_end = POLICY_NEVER;
}

static void leave(struct sim *sim)
{
	struct actor *actor = take(sim->beside);

	if (actor->n > 0)
		actor->stood_since = sim->now;
}

/* The client whose launch may begin beside the current one. */
static struct actor *first_below(const struct sim *sim)
{
	struct actor *actor;

	for (int level = sim->current->entry.level - 1; level >= 0; level--)
		DL_FOREACH (sim->runnable[level], actor)
			if (!sim_on_gpu(sim, actor) && sim_may_share(sim, actor))
				return actor;
	return NULL;
}

static void begin(struct sim *sim, struct actor *actor)
{
	sim_share(sim, actor);
	sim_launch(actor);
	sim_note(sim, "beside", actor);
	sim_begin(sim, actor);
}

static int end_launch(struct sim *sim)
{
	struct actor *actor = sim->beside;
	int r = actor->left == 0 ? sim_finish(sim, actor) : 0;

	sim_put_last(sim, actor);
	leave(sim);
	return r;
}

int sim_spatial_update(struct sim *sim)
{
	int r = sim->beside && sim->beside->launch == 0 ? end_launch(sim) : 0;

	if (r < 0)
		return r;
	if (sim->beside && sim_may_share(sim, sim->beside)) {
		sim_share(sim, sim->beside); /* the room may have changed */
	} else if (sim->beside && sim->beside_end == POLICY_NEVER) {
		sim->beside_end = sim_gone_at(sim, sim->beside);
	}
	if (sim->beside && sim->now >= sim->beside_end)
		leave(sim);
	struct actor *next = sim->current && !sim->beside ? first_below(sim) : NULL;
	if (next)
		begin(sim, next);
	return 0;
}

uint64_t sim_beside_runs(const struct sim *sim, uint64_t passed)
{
	return sim->beside
		       ? smaller(passed * sim->beside_room / sim->options->sms, sim->beside->launch)
		       : 0;
}

uint64_t sim_spatial_event(const struct sim *sim)
{
	uint64_t sms = sim->options->sms;

	if (!sim->beside)
		return POLICY_NEVER;
	uint64_t took = (sim->beside->launch * sms + sim->beside_room - 1) / sim->beside_room;
	return smaller(sim->now + took, sim->beside_end);
}
