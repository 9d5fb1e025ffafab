/* Kernels of several clients on the same SMs, each with a bounded number of workers there. */
#include <math.h>

#include "sim/sim-model.h"

#include "weir/base.h"

#define LOOK   NS_PER_MS /* the agent looks at speeds so often, if it sees all else at once */
#define THINGS 2u        /* that a GPU has one of: arithmetic, memory */

static bool has_curve(const struct trace_client *traits)
{
	return traits->fit && !traits->slo && !traits->min_rate;
}

static bool is_same_kernel(const struct trace_client *a, const struct trace_client *b)
{
	return a->fit == b->fit && a->needs == b->needs && a->arithmetic == b->arithmetic &&
	       a->memory == b->memory && a->launch == b->launch;
}

static uint64_t number_of(const struct trace *trace, size_t client)
{
	size_t i = 0;

	while (!is_same_kernel(&trace->clients[i], &trace->clients[client]))
		i++;
	return i + 1;
}

static bool all_have_curves(const struct trace *trace)
{
	for (size_t i = 0; i < trace->n_clients; i++)
		if (!has_curve(&trace->clients[i]) ||
		    trace->clients[i].level != trace->clients[0].level)
			return false;
	return trace->n_clients > 0;
}

void sim_workers_set(struct sim *sim)
{
	const struct trace *trace = sim->trace;

	sim->workers =
		sim->options->mps && sim->options->policy->plan != NULL && all_have_curves(trace);
	if (!sim->workers)
		return;
	sim->queues.memory = &sim->memory;
	sim->queues.levels[trace->clients[0].level].bounds = true;
	for (size_t i = 0; i < trace->n_clients; i++) {
		struct coexec_kernel *kernel = &sim->actors[i].entry.coexec.kernel;
		kernel->number = number_of(trace, i);
		for (unsigned r = 0; r < WEIR_SM_RESOURCES; r++)
			kernel->parts[r] = WEIR_SM_PARTS / trace->clients[i].fit;
	}
}

static void leave(struct sim *sim, struct actor *actor)
{
	actor->on_sms = false;
	actor->stood_since = sim->now;
}

/* Its launch is over, or has left. */
static int end(struct sim *sim, struct actor *actor)
{
	if (actor->launch == 0) {
		leave(sim, actor);
		actor->finished = actor->stats->ran;
		return actor->left == 0 ? sim_finish(sim, actor) : 0;
	}
	if (actor->runnable) {
		actor->gone_at = POLICY_NEVER;
	} else if (actor->gone_at == POLICY_NEVER) {
		actor->gone_at = sim_gone_at(sim, actor);
		sim->result.evictions += actor->gone_at != POLICY_NEVER;
	}
	if (sim->now >= actor->gone_at)
		leave(sim, actor);
	return 0;
}

/* Its next launch begins, or the one that has left goes on. */
static void begin(struct sim *sim, struct actor *actor)
{
	uint32_t bound = actor->entry.coexec.workers, fit = actor->traits->fit;

	actor->on_sms = true;
	actor->gone_at = POLICY_NEVER;
	actor->bound = bound ? (uint32_t)smaller(bound, fit) : fit;
	if (actor->launch == 0)
		sim_launch(actor);
	sim_note(sim, "run", actor);
	sim_begin(sim, actor);
}

/* Of its speed alone, if it shares nothing but the SMs' room. */
static double speed_of(const struct trace_client *traits, double workers)
{
	double fit = traits->fit, needs = traits->needs ? traits->needs : fit;

	return (1 - exp(-3 * workers / needs)) / (1 - exp(-3 * fit / needs));
}

static double use_of(const struct trace_client *traits, unsigned thing)
{
	return (thing ? traits->memory : traits->arithmetic) / 1000.0;
}

static void find_rates(struct sim *sim)
{
	const struct actor *all_end = sim->actors + sim->trace->n_clients;
	double parts = 0, used[THINGS] = {0};

	for (const struct actor *actor = sim->actors; actor < all_end; actor++)
		parts += actor->on_sms ? (double)actor->bound / actor->traits->fit : 0;
	for (struct actor *actor = sim->actors; actor < all_end; actor++) {
		if (!actor->on_sms)
			continue;
		actor->speed = speed_of(actor->traits, actor->bound / fmax(parts, 1));
		for (unsigned t = 0; t < THINGS; t++)
			used[t] += actor->speed * use_of(actor->traits, t);
	}
	for (struct actor *actor = sim->actors; actor < all_end; actor++) {
		double slowed = 1;
		for (unsigned t = 0; t < THINGS; t++)
			slowed = use_of(actor->traits, t) > 0 ? fmax(slowed, used[t]) : slowed;
		actor->speed /= slowed;
	}
}

int sim_workers_update(struct sim *sim)
{
	size_t n = sim->trace->n_clients;

	for (size_t i = 0; i < n; i++) {
		int r = sim->actors[i].on_sms ? end(sim, &sim->actors[i]) : 0;
		if (r < 0)
			return r;
	}
	for (size_t i = 0; i < n; i++)
		if (!sim->actors[i].on_sms && sim->actors[i].runnable)
			begin(sim, &sim->actors[i]);
	find_rates(sim);
	return 0;
}

uint64_t sim_workers_event(const struct sim *sim)
{
	uint64_t first = POLICY_NEVER;

	for (size_t i = 0; i < sim->trace->n_clients; i++) {
		const struct actor *actor = &sim->actors[i];
		if (!actor->on_sms)
			continue;
		uint64_t takes = (uint64_t)ceil((double)actor->launch / actor->speed);
		first = smaller(first, smaller(sim->now + takes, actor->gone_at));
	}
	return first;
}

unsigned sim_workers_advance(struct sim *sim, uint64_t passed)
{
	unsigned n = 0;

	for (size_t i = 0; i < sim->trace->n_clients; i++)
		n += sim->actors[i].on_sms;
	for (size_t i = 0; i < sim->trace->n_clients; i++) {
		struct actor *actor = &sim->actors[i];
		uint64_t done = (uint64_t)((double)passed * actor->speed);
		if (actor->on_sms)
			sim_spend(sim, actor, smaller(done, actor->launch), passed / n);
	}
	return n;
}

void sim_workers_report(struct sim *sim)
{
	for (size_t i = 0; sim->workers && i < sim->trace->n_clients; i++) {
		struct actor *actor = &sim->actors[i];
		actor->entry.coexec.executed = actor->finished;
		actor->entry.coexec.launched = actor->stats->ran + actor->outstanding;
	}
}

uint64_t sim_workers_look_at(const struct sim *sim)
{
	uint64_t look = sim->options->look ? sim->options->look : LOOK;

	return sim->workers && sim->n_active[sim->trace->clients[0].level] ? sim->now + look
									   : POLICY_NEVER;
}
