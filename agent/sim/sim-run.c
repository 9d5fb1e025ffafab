#include <errno.h>
#include <math.h>

#include "sim/sim-model.h"

#include "weir/base.h"
#include "weir/error.h"

const struct sim_options sim_defaults = {
	.look = NS_PER_MS,
	.late = 200 * NS_PER_US,
	.evict = 100 * NS_PER_US,
	.slice = 2 * NS_PER_MS,
	.switching = 190 * NS_PER_US,
	.window = 1000 * NS_PER_MS,
	.seed = 1,
	.sms = 132,
};

/* splitmix64 */
static uint64_t random_next(struct sim *sim)
{
	uint64_t z = sim->random += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

static uint64_t random_gap(struct sim *sim, uint64_t mean)
{
	double u = ((double)(random_next(sim) >> 11) + 1) / 9007199254740993.0;

	return (uint64_t)(-log(u) * (double)mean) + 1;
}

static void heap_sink(struct sim *sim, size_t i)
{
	struct arrival *heap = sim->heap, moved = heap[i];

	for (;;) {
		size_t child = 2 * i + 1;
		if (child >= sim->n_heap)
			break;
		if (child + 1 < sim->n_heap && heap[child + 1].at < heap[child].at)
			child++;
		if (heap[child].at >= moved.at)
			break;
		heap[i] = heap[child];
		i = child;
	}
	heap[i] = moved;
}

static void hold(struct run_queues *queues, struct run_queue_entry *client, bool held)
{
	struct sim *sim = container_of(queues, struct sim, queues);
	struct actor *actor = container_of(client, struct actor, entry);

	sim->result.holds += held;
	sim_note(sim, held ? "hold" : "release", actor);
	sim_set_runnable(sim, actor);
}

static uint64_t launches(const struct actor *actor)
{
	uint64_t each = actor->traits->launch;

	return each ? (actor->outstanding + each - 1) / each : actor->n;
}

/* The agent looks. */
static void look(struct sim *sim)
{
	struct actor *changed = take(sim->changed), *actor, *next;

	sim_workers_report(sim);
	for (actor = changed; actor; actor = actor->changed_next) {
		run_queues_ran(&actor->entry, actor->unseen);
		actor->unseen = 0;
	}
	for (actor = changed; actor; actor = next) {
		next = actor->changed_next;
		actor->changed_prev = NULL;
		bool in_turns = !actor->out && !actor->traits->min_rate &&
				actor->entry.level != sim->sliced_level;
		run_queues_work(&sim->queues, &actor->entry, in_turns ? launches(actor) : 0,
				actor->outstanding, sim->now);
	}
	uint64_t wanted = run_queues_decide(&sim->queues, sim->now);
	uint64_t late = sim->options->late ? random_next(sim) % (sim->options->late + 1) : 0;
	wanted = smaller(wanted, sim_workers_look_at(sim));
	sim->timer_at = wanted == POLICY_NEVER ? POLICY_NEVER : wanted + late;
	sim->look_at = POLICY_NEVER;
	sim->result.decisions++;
}

static void end_window(struct sim *sim)
{
	uint64_t window = sim->options->window, begun = sim->window_end - window;

	for (size_t i = 0; i < sim->trace->n_clients; i++) {
		struct actor *actor = &sim->actors[i];
		double share = (double)actor->window_ran / (double)window;
		actor->window_ran = 0;
		if (actor->n == 0 || actor->window_busy_since > begun)
			continue;
		if (share < actor->stats->share_min)
			actor->stats->share_min = share;
		if (share > actor->stats->share_max)
			actor->stats->share_max = share;
	}
	sim->window_end += window;
}

static int arrivals(struct sim *sim)
{
	const struct trace *trace = sim->trace;
	int r = 0;

	while (r == 0 && sim->at_work < trace->n_work && trace->work[sim->at_work].at <= sim->now) {
		const struct trace_work *work = &trace->work[sim->at_work++];
		r = sim_arrive(sim, &sim->actors[work->client], work->length);
	}
	while (r == 0 && sim->n_heap && sim->heap[0].at <= sim->now) {
		struct actor *actor = &sim->actors[sim->heap[0].client];
		r = sim_arrive(sim, actor, actor->traits->work);
		sim->heap[0].at += random_gap(sim, actor->traits->every);
		heap_sink(sim, 0);
	}
	return r;
}

static uint64_t earliest(const struct sim *sim)
{
	uint64_t times[] = {
		sim->options->end,
		sim_gpu_event(sim),
		sim_spatial_event(sim),
		sim->ending ? sim->now + sim->ending->launch : POLICY_NEVER,
		sim->look_at,
		sim->timer_at,
		sim->rates_at,
		sim->options->window ? sim->window_end : POLICY_NEVER,
		sim->at_work < sim->trace->n_work ? sim->trace->work[sim->at_work].at
						  : POLICY_NEVER,
		sim->n_heap ? sim->heap[0].at : POLICY_NEVER,
	};
	uint64_t first = times[0];

	for (size_t i = 1; i < countof(times); i++)
		first = smaller(first, times[i]);
	return larger(first, sim->now);
}

static int step(struct sim *sim)
{
	int r = arrivals(sim);

	if (r == 0)
		r = sim_gpu_update(sim);
	if (r < 0)
		return r;
	if (sim->now >= sim->rates_at)
		sim_rates_look(sim);
	if (sim->now >= sim->look_at || sim->now >= sim->timer_at) {
		look(sim);
		r = sim_gpu_update(sim);
	}
	if (sim->options->window && sim->now >= sim->window_end)
		end_window(sim);
	return r;
}

static int set_up(struct sim *sim)
{
	const struct trace *trace = sim->trace;
	size_t n = trace->n_clients;

	sim->actors = calloc(n + 1, sizeof(*sim->actors));
	sim->heap = calloc(n + 1, sizeof(*sim->heap));
	sim->result.clients = calloc(n + 1, sizeof(*sim->result.clients));
	if (!sim->actors || !sim->heap || !sim->result.clients)
		return error_origin(-ENOMEM);
	sim->result.n = n;
	run_queues_init(&sim->queues, sim->options->policy, &sim->options->settings, hold);
	for (uint8_t level = 0; level < WEIR_LEVELS; level++)
		sim->queues.levels[level].all_concurrent = sim->options->mps;
	sim_slices_set(sim);
	for (size_t i = 0; i < n; i++) {
		const struct trace_client *traits = &trace->clients[i];
		struct actor *actor = &sim->actors[i];
		*actor = (struct actor){
			.entry = {.level = traits->level,
				  .weight = traits->share * POLICY_WEIGHT_ONE,
				  .slo = traits->slo,
				  .cost = traits->evict == TRACE_NEVER ? 0 : traits->evict},
			.traits = traits,
			.stats = &sim->result.clients[i],
			.window_busy_since = POLICY_NEVER,
		};
		actor->stats->share_min = 2;
		if (traits->min_rate)
			sim->rates_at = 0;
		min_rate_set(&actor->rate, traits->min_rate);
		run_queues_add(&sim->queues, &actor->entry);
		int r = traits->always ? sim_arrive(sim, actor, traits->work) : 0;
		if (r < 0)
			return r;
		if (traits->every)
			sim->heap[sim->n_heap++] = (struct arrival){
				.at = random_gap(sim, traits->every), .client = (uint32_t)i};
	}
	for (size_t i = sim->n_heap; i-- > 0;)
		heap_sink(sim, i);
	sim_workers_set(sim);
	return 0;
}

static void tear_down(struct sim *sim)
{
	for (size_t i = 0; sim->actors && i < sim->trace->n_clients; i++)
		free(sim->actors[i].queue);
	free(sim->actors);
	free(sim->heap);
}

static void sum_up(struct sim *sim)
{
	sim->result.time = sim->now;
	for (size_t i = 0; i < sim->result.n; i++) {
		struct actor *actor = &sim->actors[i];
		if (actor->n == 0)
			continue;
		actor->stats->busy += sim->now - actor->active_since;
		if (!sim_on_gpu(sim, actor))
			sim_stood(sim, actor);
	}
}

int sim_run(struct sim_result *out, const struct trace *trace, const struct sim_options *options)
{
	struct sim sim = {.options = options,
			  .trace = trace,
			  .random = options->seed,
			  .look_at = POLICY_NEVER,
			  .timer_at = POLICY_NEVER,
			  .rates_at = POLICY_NEVER,
			  .window_end = options->window};
	int r = set_up(&sim);

	while (r == 0) {
		r = step(&sim);
		if (r < 0 || sim.now >= options->end)
			break;
		sim_advance(&sim, earliest(&sim));
	}
	if (r == 0)
		sum_up(&sim);
	tear_down(&sim);
	if (r < 0)
		sim_result_deinit(&sim.result);
	else
		*out = sim.result;
	return r;
}

void sim_result_deinit(struct sim_result *result)
{
	free(result->clients);
	*result = (struct sim_result){0};
}
