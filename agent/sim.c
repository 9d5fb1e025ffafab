#include "sim.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <utlist.h>

#include "turns.h"

#include "weir/base.h"
#include "weir/error.h"

#define US 1000ull
#define MS 1000000ull

const struct sim_options sim_defaults = {
	.look = MS,
	.late = 200 * US,
	.evict = 100 * US,
	.slice = 2 * MS,
	.switching = 190 * US,
	.window = 1000 * MS,
	.seed = 1,
};

struct request {
	uint64_t arrived, length;
};

struct actor {
	struct policy_client policy;
	const struct trace_client *traits;
	struct sim_client *stats;
	struct actor *prev, *next; /* of the runnable of its level */
	struct actor *changed;     /* the next of those that the agent has not looked at */
	bool is_changed, runnable, started;
	/* Its requests: a ring that grows. */
	struct request *queue;
	uint32_t room, first, n;
	uint64_t left, outstanding; /* ns, of the first and of all */
	uint64_t launch;            /* ns left of the one that has begun; 0: none has */
	uint64_t untold;            /* ns that it ran since the agent's last look */
	uint64_t active_since, stood_since;
	uint64_t window_ran, window_busy_since;
};

struct arrival {
	uint64_t at;
	uint32_t client;
};

enum phase { GPU_FREE, GPU_SWITCHING, GPU_RUNNING, GPU_LEAVING };

struct sim {
	const struct sim_options *options;
	const struct trace *trace;
	struct sim_result result;
	struct turns turns;
	struct actor *actors;
	struct actor *runnable[WEIR_LEVELS];
	unsigned n_active[WEIR_LEVELS];
	uint64_t now, random;

	struct arrival *heap; /* of those that come `every` so often */
	size_t n_heap, at_work;

	enum phase phase;
	struct actor *current, *last; /* on the GPU; the last whose context was there */
	struct actor *ending;         /* NULL, or whose launch ends beside the current one's */
	uint64_t phase_end, slice_end;

	struct actor *changed, *last_changed; /* as they changed */
	uint64_t look_at, timer_at;
	uint64_t window_end;
};

static void note(const struct sim *sim, const char *event, const struct actor *actor)
{
	if (sim->options->log)
		fprintf(sim->options->log, "%12.6f %-8s %s\n", (double)sim->now / 1e6, event,
			actor->traits->name);
}

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

/* The agent will see it when it looks. */
static void mark_changed(struct sim *sim, struct actor *actor)
{
	if (actor->is_changed)
		return;
	actor->is_changed = true;
	actor->changed = NULL;
	*(sim->changed ? &sim->last_changed->changed : &sim->changed) = actor;
	sim->last_changed = actor;
}

static void look_soon(struct sim *sim)
{
	uint64_t look = sim->options->look;

	if (sim->look_at == POLICY_NEVER)
		sim->look_at = look ? (sim->now / look + 1) * look : sim->now;
}

/* Whether the demand words and its hold word let @actor run. */
static bool may_run(const struct sim *sim, const struct actor *actor)
{
	for (unsigned level = actor->policy.level + 1u; level < WEIR_LEVELS; level++)
		if (sim->n_active[level])
			return false;
	return actor->runnable;
}

static void set_runnable(struct sim *sim, struct actor *actor)
{
	struct actor **list = &sim->runnable[actor->policy.level];
	bool runnable = actor->n > 0 && !actor->policy.held;

	if (runnable == actor->runnable)
		return;
	actor->runnable = runnable;
	if (runnable)
		DL_APPEND(*list, actor);
	else
		DL_DELETE(*list, actor);
}

static bool on_gpu(const struct sim *sim, const struct actor *actor)
{
	return actor == sim->current || actor == sim->ending;
}

/* Who is served next; NULL: nobody who may run waits. */
static struct actor *first_waiting(const struct sim *sim)
{
	struct actor *actor;

	for (int level = WEIR_LEVELS - 1; level >= 0; level--) {
		DL_FOREACH (sim->runnable[level], actor)
			if (!on_gpu(sim, actor))
				return actor;
		if (sim->n_active[level])
			return NULL;
	}
	return NULL;
}

static void put_last(struct sim *sim, struct actor *actor)
{
	struct actor **list = &sim->runnable[actor->policy.level];

	if (!actor->runnable)
		return;
	DL_DELETE(*list, actor);
	DL_APPEND(*list, actor);
}

static void hold(struct turns *turns, struct policy_client *client, bool held)
{
	struct sim *sim = container_of(turns, struct sim, turns);
	struct actor *actor = container_of(client, struct actor, policy);

	sim->result.holds += held;
	note(sim, held ? "hold" : "release", actor);
	set_runnable(sim, actor);
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

static int arrive(struct sim *sim, struct actor *actor, uint64_t length)
{
	if (actor->n == SIM_QUEUE_MAX) {
		actor->stats->dropped++;
		return 0;
	}
	int r = push(actor, sim->now, length);
	if (r < 0)
		return r;
	note(sim, "work", actor);
	mark_changed(sim, actor);
	look_soon(sim);
	if (actor->n > 1)
		return 0;
	actor->left = length;
	actor->started = false;
	actor->active_since = actor->stood_since = actor->window_busy_since = sim->now;
	sim->n_active[actor->policy.level]++;
	set_runnable(sim, actor);
	return 0;
}

/* The next launch of its first request. */
static void launch(struct actor *actor)
{
	uint64_t each = actor->traits->launch;

	actor->launch = each && each < actor->left ? each : actor->left;
}

static uint64_t launches(const struct actor *actor)
{
	uint64_t each = actor->traits->launch;

	return each ? (actor->outstanding + each - 1) / each : actor->n;
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

static void stood(struct sim *sim, struct actor *actor)
{
	uint64_t stood = sim->now - actor->stood_since;

	if (stood > actor->stats->starved)
		actor->stats->starved = stood;
}

/* The first request begins, or goes on. */
static void begin(struct sim *sim, struct actor *actor)
{
	uint64_t wait = sim->now - actor->queue[actor->first].arrived;

	stood(sim, actor);
	if (actor->started)
		return;
	actor->started = true;
	actor->stats->wait += wait;
	actor->stats->late += actor->traits->slo && wait > actor->traits->slo;
}

/* The current one's first request is done. */
static int finish(struct sim *sim, struct actor *actor)
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
		note(sim, "done", actor);
		look_soon(sim);
	}
	mark_changed(sim, actor);
	actor->started = false;
	if (actor->n > 0) {
		actor->left = actor->queue[actor->first].length;
		actor->stood_since = sim->now;
		return 0;
	}
	stats->busy += sim->now - actor->active_since;
	actor->window_busy_since = POLICY_NEVER;
	sim->n_active[actor->policy.level]--;
	set_runnable(sim, actor);
	return 0;
}

static bool current_runs(const struct sim *sim)
{
	return sim->phase == GPU_RUNNING || sim->phase == GPU_LEAVING;
}

static void spend(struct sim *sim, struct actor *actor, uint64_t ns)
{
	actor->left -= ns;
	actor->launch -= ns;
	actor->outstanding -= ns;
	actor->untold += ns;
	actor->window_ran += ns;
	actor->stats->ran += ns;
	mark_changed(sim, actor);
}

/* Nobody runs. */
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

/* Time goes on to @to. */
static void advance(struct sim *sim, uint64_t to)
{
	uint64_t passed = to - sim->now;
	unsigned running = current_runs(sim) + (sim->ending != NULL);

	if (passed == 0)
		return;
	if (current_runs(sim))
		spend(sim, sim->current, passed);
	if (sim->ending)
		spend(sim, sim->ending, passed);
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
		launch(sim->current);
	sim->result.switches += sim->current != sim->last;
	sim->last = sim->current;
	note(sim, "run", sim->current);
	begin(sim, sim->current);
}

static void serve(struct sim *sim, struct actor *next)
{
	bool same = next == sim->last || sim->options->mps;
	uint64_t switching = same ? 0 : sim->options->switching;

	sim->current = next;
	sim->phase = GPU_SWITCHING;
	sim->phase_end = sim->now + switching;
	sim->slice_end = sim->phase_end + sim->options->slice;
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

static void serve_first(struct sim *sim)
{
	struct actor *first = first_waiting(sim);

	if (first)
		serve(sim, first);
}

static bool slice_over(const struct sim *sim)
{
	bool over = sim->options->mps ? sim->current->launch == 0 : sim->now >= sim->slice_end;

	return over && first_waiting(sim) != NULL;
}

/* When a launch of @actor has left that is told to do so now. */
static uint64_t gone_at(const struct sim *sim, const struct actor *actor)
{
	uint64_t evict = actor->traits->evict ? actor->traits->evict : sim->options->evict;

	return evict == TRACE_NEVER ? POLICY_NEVER : sim->now + evict;
}

/* How long the current launch still fills the GPU. Nothing begins beside two. */
static uint64_t filled(const struct sim *sim)
{
	uint64_t launch = sim->current->launch, overlap = sim->current->traits->overlap;

	if (!sim->options->mps || sim->ending)
		return launch;
	return launch > overlap ? launch - overlap : 0;
}

/* The next one's launch begins where the end of the current one leaves room. */
static void follow(struct sim *sim)
{
	struct actor *next = current_runs(sim) && filled(sim) == 0 ? first_waiting(sim) : NULL;

	if (!next)
		return;
	sim->ending = sim->current;
	put_last(sim, sim->ending);
	serve(sim, next);
}

/* The launch beside the current one, if it has ended. */
static int end_beside(struct sim *sim)
{
	if (!sim->ending || sim->ending->launch > 0)
		return 0;
	struct actor *actor = take(sim->ending);
	actor->stood_since = sim->now;
	return actor->left == 0 ? finish(sim, actor) : 0;
}

/* What the GPU does now. */
static int update_gpu(struct sim *sim)
{
	struct actor *current = sim->current;
	int r = end_beside(sim);

	if (r < 0)
		return r;
	if (sim->phase == GPU_SWITCHING && sim->now >= sim->phase_end && may_run(sim, current))
		run(sim);
	if (current_runs(sim) && current->left == 0) {
		r = finish(sim, current);
		if (r < 0)
			return r;
		if (may_run(sim, current))
			begin(sim, current);
	}
	/* What follows has not begun: a gate keeps it back at once. */
	if (current_runs(sim) && current->launch == 0 && !may_run(sim, current))
		vacate(sim);
	if (sim->phase == GPU_SWITCHING && !may_run(sim, current))
		vacate(sim);
	if (sim->phase == GPU_RUNNING && !may_run(sim, current)) {
		sim->phase = GPU_LEAVING;
		sim->phase_end = gone_at(sim, current);
		sim->result.evictions += sim->phase_end != POLICY_NEVER;
	}
	if (sim->phase == GPU_LEAVING && may_run(sim, current))
		sim->phase = GPU_RUNNING;
	if (sim->phase == GPU_LEAVING && sim->now >= sim->phase_end)
		vacate(sim);
	if (sim->phase == GPU_RUNNING && slice_over(sim)) {
		put_last(sim, current);
		vacate(sim);
	}
	if (sim->phase == GPU_RUNNING && current->launch == 0)
		launch(current);
	if (sim->phase == GPU_FREE)
		serve_first(sim);
	follow(sim);
	return 0;
}

static uint64_t gpu_event(const struct sim *sim)
{
	const struct actor *current = sim->current;
	uint64_t full, at;

	if (sim->phase == GPU_FREE)
		return POLICY_NEVER;
	if (sim->phase == GPU_SWITCHING)
		return sim->phase_end;
	full = filled(sim);
	at = sim->now + (full ? full : current->launch);
	if (sim->phase == GPU_LEAVING && sim->phase_end < at)
		at = sim->phase_end;
	if (sim->phase == GPU_RUNNING && !sim->options->mps && current->runnable &&
	    sim->runnable[current->policy.level]->next && sim->slice_end < at)
		at = sim->slice_end;
	return at > sim->now ? at : sim->now;
}

/* What the agent does when it looks. */
static void look(struct sim *sim)
{
	struct actor *actor, *next;
	struct actor *changed = take(sim->changed);

	for (actor = changed; actor; actor = actor->changed) {
		turns_ran(&sim->turns, &actor->policy, actor->untold);
		actor->untold = 0;
	}
	for (actor = changed; actor; actor = next) {
		next = actor->changed;
		actor->is_changed = false;
		turns_work(&sim->turns, &actor->policy, launches(actor), actor->outstanding,
			   sim->now);
	}
	uint64_t wanted = turns_decide(&sim->turns, sim->now);
	uint64_t late = sim->options->late ? random_next(sim) % (sim->options->late + 1) : 0;
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
		r = arrive(sim, &sim->actors[work->client], work->length);
	}
	while (r == 0 && sim->n_heap && sim->heap[0].at <= sim->now) {
		struct actor *actor = &sim->actors[sim->heap[0].client];
		r = arrive(sim, actor, actor->traits->work);
		sim->heap[0].at += random_gap(sim, actor->traits->every);
		heap_sink(sim, 0);
	}
	return r;
}

static uint64_t earliest(const struct sim *sim)
{
	uint64_t times[] = {
		sim->options->end,
		gpu_event(sim),
		sim->ending ? sim->now + sim->ending->launch : POLICY_NEVER,
		sim->look_at,
		sim->timer_at,
		sim->options->window ? sim->window_end : POLICY_NEVER,
		sim->at_work < sim->trace->n_work ? sim->trace->work[sim->at_work].at
						  : POLICY_NEVER,
		sim->n_heap ? sim->heap[0].at : POLICY_NEVER,
	};
	uint64_t first = times[0];

	for (size_t i = 1; i < countof(times); i++)
		if (times[i] < first)
			first = times[i];
	return first > sim->now ? first : sim->now;
}

static int step(struct sim *sim)
{
	int r = arrivals(sim);

	if (r == 0)
		r = update_gpu(sim);
	if (r < 0)
		return r;
	if (sim->now >= sim->look_at || sim->now >= sim->timer_at) {
		look(sim);
		r = update_gpu(sim);
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
	turns_init(&sim->turns, sim->options->policy, &sim->options->settings, hold);
	for (uint8_t level = 0; level < WEIR_LEVELS; level++)
		turns_set_concurrent(&sim->turns, level, sim->options->mps);
	for (size_t i = 0; i < n; i++) {
		const struct trace_client *traits = &trace->clients[i];
		struct actor *actor = &sim->actors[i];
		*actor = (struct actor){
			.policy = {.level = traits->level,
				   .weight = traits->share * POLICY_WEIGHT_ONE,
				   .slo = traits->slo,
				   .cost = traits->evict == TRACE_NEVER ? 0 : traits->evict},
			.traits = traits,
			.stats = &sim->result.clients[i],
			.window_busy_since = POLICY_NEVER,
		};
		actor->stats->share_min = 2;
		turns_add(&sim->turns, &actor->policy);
		int r = traits->always ? arrive(sim, actor, traits->work) : 0;
		if (r < 0)
			return r;
		if (traits->every)
			sim->heap[sim->n_heap++] = (struct arrival){
				.at = random_gap(sim, traits->every), .client = (uint32_t)i};
	}
	for (size_t i = sim->n_heap; i-- > 0;)
		heap_sink(sim, i);
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
		if (!on_gpu(sim, actor))
			stood(sim, actor);
	}
}

int sim_run(struct sim_result *out, const struct trace *trace, const struct sim_options *options)
{
	struct sim sim = {.options = options,
			  .trace = trace,
			  .random = options->seed,
			  .look_at = POLICY_NEVER,
			  .timer_at = POLICY_NEVER,
			  .window_end = options->window};
	int r = set_up(&sim);

	while (r == 0) {
		r = step(&sim);
		if (r < 0 || sim.now >= options->end)
			break;
		advance(&sim, earliest(&sim));
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
