#include <utlist.h>

#include "sim/sim-model.h"

#include "weir/base.h"

/* Whether the demand words and its hold word let @actor run. */
static bool may_run(const struct sim *sim, const struct actor *actor)
{
	for (unsigned level = actor->entry.level + 1u; level < WEIR_LEVELS; level++)
		if (sim->n_active[level])
			return false;
	return actor->runnable;
}

bool sim_on_gpu(const struct sim *sim, const struct actor *actor)
{
	return actor == sim->current || actor == sim->ending || actor == sim->beside ||
	       actor->on_sms;
}

/* The client to serve next; NULL: none that may run waits. */
static struct actor *first_waiting(const struct sim *sim)
{
	struct actor *actor;

	for (int level = WEIR_LEVELS - 1; level >= 0; level--) {
		DL_FOREACH (sim->runnable[level], actor)
			if (!sim_on_gpu(sim, actor))
				return actor;
		if (sim->n_active[level])
			return NULL;
	}
	return NULL;
}

void sim_put_last(struct sim *sim, struct actor *actor)
{
	struct actor **list = &sim->runnable[actor->entry.level];

	if (!actor->runnable)
		return;
	DL_DELETE(*list, actor);
	DL_APPEND(*list, actor);
}

void sim_launch(struct actor *actor)
{
	uint64_t each = actor->traits->launch;

	actor->launch = each && each < actor->left ? each : actor->left;
}

static bool current_runs(const struct sim *sim)
{
	return sim->phase == GPU_RUNNING || sim->phase == GPU_LEAVING;
}

void sim_spend(struct sim *sim, struct actor *actor, uint64_t work, uint64_t charged)
{
	actor->left -= work;
	actor->launch -= work;
	actor->outstanding -= work;
	actor->unseen += charged;
	actor->window_ran += work;
	actor->stats->ran += work;
	sim_mark_changed(sim, actor);
}

/* No client runs. */
static void stand_still(struct sim *sim, uint64_t ns)
{
	bool busy = false, free_to_run = false;

	for (unsigned level = 0; level < WEIR_LEVELS; level++) {
		busy |= sim->n_active[level] > 0;
		free_to_run |= sim->runnable[level] != NULL;
	}
	sim->result.idle += busy ? 0 : ns;
	sim->result.wasted += busy ? ns : 0;
	sim->result.held_alone += busy && !free_to_run ? ns : 0;
}

static void spend(struct sim *sim, struct actor *actor, uint64_t ns)
{
	sim_spend(sim, actor, ns, ns);
}

/* Returns how many clients ran. */
static unsigned run_for(struct sim *sim, uint64_t passed)
{
	unsigned running = current_runs(sim) + (sim->ending != NULL) + (sim->beside != NULL);

	if (current_runs(sim))
		spend(sim, sim->current, passed);
	if (sim->ending)
		spend(sim, sim->ending, passed);
	if (sim->beside)
		spend(sim, sim->beside, sim_beside_runs(sim, passed));
	return running;
}

void sim_advance(struct sim *sim, uint64_t to)
{
	uint64_t passed = to - sim->now;

	if (passed == 0)
		return;
	unsigned running = sim->workers ? sim_workers_advance(sim, passed) : run_for(sim, passed);
	if (running == 0)
		stand_still(sim, passed);
	sim->result.ran += running > 0 ? passed : 0;
	sim->result.shared += running > 1 ? passed : 0;
	sim->now = to;
}

static void run(struct sim *sim)
{
	sim->phase = GPU_RUNNING;
	if (sim->current->launch == 0)
		sim_launch(sim->current);
	sim->result.switches += sim->current != sim->last;
	sim->last = sim->current;
	sim_note(sim, "run", sim->current);
	sim_begin(sim, sim->current);
}

static void serve(struct sim *sim, struct actor *next)
{
	bool same = next == sim->last || sim->options->mps;
	uint64_t switching = same ? 0 : sim->options->switching;

	sim->current = next;
	sim->phase = GPU_SWITCHING;
	sim->phase_end = sim->now + switching;
	sim->slice_end = sim->phase_end + sim_slice(sim, next);
	if (switching == 0)
		run(sim);
}

static void vacate(struct sim *sim)
{
	if (sim->current && sim->phase != GPU_SWITCHING && sim->current->n > 0)
		sim->current->stood_since = sim->now;
	sim->current = NULL;
	sim->phase = GPU_FREE;
}

/* It has the GPU to itself from now on, in the middle of its launch. */
static void go_on(struct sim *sim, struct actor *actor)
{
	sim->current = sim->last = actor;
	sim->phase = GPU_RUNNING;
	sim->slice_end = sim->now + sim_slice(sim, actor);
}

/* The current launch is off the SMs that those above need. */
static void make_room(struct sim *sim)
{
	struct actor *actor = sim->current;

	if (sim->beside || !sim_may_share(sim, actor)) {
		vacate(sim);
		return;
	}
	sim->current = NULL;
	sim->phase = GPU_FREE;
	sim_share(sim, actor);
}

static bool slice_over(const struct sim *sim)
{
	bool over = sim->options->mps ? sim->current->launch == 0 : sim->now >= sim->slice_end;

	return over && first_waiting(sim) != NULL;
}

uint64_t sim_gone_at(const struct sim *sim, const struct actor *actor)
{
	uint64_t evict = actor->traits->evict ? actor->traits->evict : sim->options->evict;

	return evict == TRACE_NEVER ? POLICY_NEVER : sim->now + evict;
}

/* How long the current launch still fills the GPU. No launch begins beside two. */
static uint64_t filled(const struct sim *sim)
{
	uint64_t launch = sim->current->launch, overlap = sim->current->traits->overlap;

	if (!sim->options->mps || sim->ending)
		return launch;
	return launch > overlap ? launch - overlap : 0;
}

/* The next client's launch begins where the end of the current one leaves room. */
static void follow(struct sim *sim)
{
	struct actor *next = current_runs(sim) && filled(sim) == 0 ? first_waiting(sim) : NULL;

	if (!next)
		return;
	sim->ending = sim->current;
	sim_put_last(sim, sim->ending);
	serve(sim, next);
}

/* The launch beside the current one, if it has ended. */
static int end_beside(struct sim *sim)
{
	if (!sim->ending || sim->ending->launch > 0)
		return 0;
	struct actor *actor = take(sim->ending);
	actor->stood_since = sim->now;
	return actor->left == 0 ? sim_finish(sim, actor) : 0;
}

/* One client's launch fills the GPU at a time. */
static int update(struct sim *sim)
{
	struct actor *current = sim->current, *next;
	int r = end_beside(sim);

	if (r < 0)
		return r;
	if (sim->phase == GPU_SWITCHING && sim->now >= sim->phase_end && may_run(sim, current))
		run(sim);
	if (current_runs(sim) && current->left == 0) {
		r = sim_finish(sim, current);
		if (r < 0)
			return r;
		if (may_run(sim, current))
			sim_begin(sim, current);
	}
	/* The next launch has not begun: a gate keeps it back at once. */
	if (current_runs(sim) && current->launch == 0 && !may_run(sim, current))
		vacate(sim);
	if (sim->phase == GPU_SWITCHING && !may_run(sim, current))
		vacate(sim);
	if (sim->phase == GPU_RUNNING && !may_run(sim, current)) {
		sim->phase = GPU_LEAVING;
		sim->phase_end = sim_gone_at(sim, current);
		sim->result.evictions +=
			sim->phase_end != POLICY_NEVER && !sim_may_share(sim, current);
	}
	if (sim->phase == GPU_LEAVING && may_run(sim, current))
		sim->phase = GPU_RUNNING;
	if (sim->phase == GPU_LEAVING && sim->now >= sim->phase_end)
		make_room(sim);
	if (sim->phase == GPU_RUNNING && slice_over(sim)) {
		sim_put_last(sim, current);
		vacate(sim);
	}
	if (sim->phase == GPU_RUNNING && current->launch == 0)
		sim_launch(current);
	if (sim->phase == GPU_FREE && sim->beside && may_run(sim, sim->beside))
		go_on(sim, take(sim->beside));
	next = sim->phase == GPU_FREE ? first_waiting(sim) : NULL;
	if (next)
		serve(sim, next);
	follow(sim);
	return sim_spatial_update(sim);
}

int sim_gpu_update(struct sim *sim)
{
	return sim->workers ? sim_workers_update(sim) : update(sim);
}

uint64_t sim_gpu_event(const struct sim *sim)
{
	const struct actor *current = sim->current;
	uint64_t full, at;

	if (sim->workers)
		return sim_workers_event(sim);
	if (sim->phase == GPU_FREE)
		return POLICY_NEVER;
	if (sim->phase == GPU_SWITCHING)
		return sim->phase_end;
	full = filled(sim);
	at = sim->now + (full ? full : current->launch);
	if (sim->phase == GPU_LEAVING)
		at = smaller(at, sim->phase_end);
	if (sim->phase == GPU_RUNNING && !sim->options->mps && current->runnable &&
	    sim->runnable[current->entry.level]->next)
		at = smaller(at, sim->slice_end);
	return larger(at, sim->now);
}
