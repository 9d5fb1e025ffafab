#include <errno.h>
#include <math.h>
#include <utlist.h>

#include "sim/sim-model.h"

#include "weir/base.h"
#include "weir/error.h"

void sim_note(const struct sim *sim, const char *event, const struct actor *actor)
{
	if (sim->options->log)
		fprintf(sim->options->log, "%12.6f %-8s %s\n", (double)sim->now / 1e6, event,
			actor->traits->name);
}

void sim_mark_changed(struct sim *sim, struct actor *actor)
{
	if (!actor->changed_prev)
		DL_APPEND2(sim->changed, actor, changed_prev, changed_next);
}

static void look_soon(struct sim *sim)
{
	uint64_t look = sim->options->look;

	if (sim->look_at == POLICY_NEVER)
		sim->look_at = look ? (sim->now / look + 1) * look : sim->now;
}

void sim_set_runnable(struct sim *sim, struct actor *actor)
{
	struct actor **list = &sim->runnable[actor->entry.level];
	bool runnable = actor->n > 0 && !actor->entry.held && !actor->out;

	if (runnable == actor->runnable)
		return;
	actor->runnable = runnable;
	if (runnable)
		DL_APPEND(*list, actor);
	else
		DL_DELETE(*list, actor);
}

void sim_count_active(struct sim *sim, const struct actor *actor, int n)
{
	sim->n_active[actor->entry.level] += (unsigned)n;
	sim_count_demand(sim, actor, n);
}

static int push(struct actor *actor, uint64_t now, uint64_t length)
{
	if (actor->n == actor->room) {
		uint32_t room = actor->room ? 2 * actor->room : 4;
		struct request *queue = malloc(room * sizeof(*queue));
		if (!queue)
			return error_origin(-ENOMEM);
		for (uint32_t i = 0; i < actor->n; i++)
			queue[i] = actor->queue[(actor->first + i) % actor->room];
		free(actor->queue);
		actor->queue = queue;
		actor->room = room;
		actor->first = 0;
	}
	actor->queue[(actor->first + actor->n++) % actor->room] =
		(struct request){.arrived = now, .length = length};
	actor->outstanding += length;
	return 0;
}

int sim_arrive(struct sim *sim, struct actor *actor, uint64_t length)
{
	if (actor->n == SIM_QUEUE_MAX) {
		actor->stats->dropped++;
		return 0;
	}
	int r = push(actor, sim->now, length);
	if (r < 0)
		return r;
	sim_note(sim, "work", actor);
	sim_mark_changed(sim, actor);
	look_soon(sim);
	if (actor->n > 1)
		return 0;
	actor->left = length;
	actor->started = false;
	actor->active_since = actor->stood_since = actor->window_busy_since = sim->now;
	if (!actor->leaves)
		sim_count_active(sim, actor, 1);
	sim_set_runnable(sim, actor);
	return 0;
}

static unsigned bucket_of(uint64_t ns)
{
	unsigned bucket = ns < 2 ? 0 : (unsigned)(log2((double)ns) * 8);

	return bucket < SIM_BUCKETS ? bucket : SIM_BUCKETS - 1;
}

uint64_t sim_quantile(const struct sim_client *client, double q)
{
	uint64_t below = 0;

	for (unsigned i = 0; i < SIM_BUCKETS; i++) {
		below += client->turnarounds[i];
		if (below > 0 && (double)below >= q * (double)client->requests)
			return (uint64_t)exp2((i + 0.5) / 8);
	}
	return 0;
}

void sim_stood(struct sim *sim, struct actor *actor)
{
	actor->stats->starved = larger(actor->stats->starved, sim->now - actor->stood_since);
}

void sim_begin(struct sim *sim, struct actor *actor)
{
	uint64_t wait = sim->now - actor->queue[actor->first].arrived;

	sim_stood(sim, actor);
	if (actor->started)
		return;
	actor->started = true;
	actor->stats->wait += wait;
	actor->stats->late += actor->traits->slo && wait > actor->traits->slo;
}

int sim_finish(struct sim *sim, struct actor *actor)
{
	struct sim_client *stats = actor->stats;
	struct request done = actor->queue[actor->first];
	uint64_t turnaround = sim->now - done.arrived;

	stats->requests++;
	stats->work += done.length;
	stats->turnaround += turnaround;
	stats->turnarounds[bucket_of(turnaround)]++;
	actor->first = (actor->first + 1) % actor->room;
	actor->n--;
	if (actor->traits->always) {
		int r = push(actor, sim->now, done.length);
		if (r < 0)
			return r;
	} else {
		sim_note(sim, "done", actor);
		look_soon(sim);
	}
	sim_mark_changed(sim, actor);
	actor->started = false;
	if (actor->n > 0) {
		actor->left = actor->queue[actor->first].length;
		actor->stood_since = sim->now;
		return 0;
	}
	stats->busy += sim->now - actor->active_since;
	actor->window_busy_since = POLICY_NEVER;
	if (!actor->leaves)
		sim_count_active(sim, actor, -1);
	sim_set_runnable(sim, actor);
	return 0;
}
