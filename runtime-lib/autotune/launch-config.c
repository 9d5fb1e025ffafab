#include "autotune/launch-config.h"

#include "preempt/preempt.h"

#include "weir/base.h"
#include "weir/tickets.h"

#include <math.h>

#define POLL_PERIOD   8000u /* ns between two looks of the GPU at demand and hold */
#define POLL_NS       15000u /* from the demand until it is seen, and from the last block to the end */
#define SAFE_POINT_NS 10000u  /* from one to the next, at most (FORMS.md) */
#define WORKERS_MAX   65535u  /* of resumable kernels */
#define TICKET_NS     10000u  /* about the work of a ticket; */
#define MORE_MAX      8u      /* up to so many times as much, if that is faster */
#define COARSE_NS     500000u /* a slice for equals, who have turns of milliseconds */

struct planner {
	struct tuned_kernel *tuned;
	const struct rewritten *rewritten;
	const struct settings *settings;
};

/* 0: not known. */
static uint32_t sm_count(const struct tuned_kernel *tuned)
{
	int sms = 0;

	real(cuDeviceGetAttribute)(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
				   atomic_load(&tuned->client)->device);
	return sms > 0 ? (uint32_t)sms : 0;
}

/* How many blocks the GPU holds at once; 0: not known. */
static uint32_t resident(const struct tuned_kernel *tuned, const void *function)
{
	const unsigned *block = tuned->geometry.block;
	int blocks = 0;

	if (real(cuOccupancyMaxActiveBlocksPerMultiprocessor)(
		    &blocks, (CUfunction)function, (int)(block[0] * block[1] * block[2]),
		    tuned->geometry.shared) != CUDA_SUCCESS)
		return 0;
	return (uint32_t)blocks * sm_count(tuned);
}

/* What all configs of a form have in common. False: the kernel cannot be launched so. */
static bool plan_init(struct launch_config *config, const struct planner *planner,
		      enum weir_form form, uint32_t build)
{
	const struct tuned_kernel *tuned = planner->tuned;
	const struct rewritten *rewritten = planner->rewritten;
	const struct variant *variant = &rewritten->variants[form][build];
	size_t end = 0, hidden = form == WEIR_SLICED ? sizeof(struct weir_slice)
						     : sizeof(struct weir_persistent);
	uint64_t threads = (uint64_t)tuned->geometry.block[0] * tuned->geometry.block[1] *
			   tuned->geometry.block[2];

	if (!variant->function)
		return false;
	for (size_t i = 0; i < rewritten->n_params; i++) {
		size_t behind = (size_t)rewritten->params[i].offset + rewritten->params[i].size;
		end = behind > end ? behind : end;
	}
	end = (end + 7) / 8 * 8;
	hidden += rewritten->n_symbols * sizeof(uint64_t);
	if (end > PACKED_MAX || hidden > PACKED_MAX - end)
		return false;
	*config = (struct launch_config){.form = form,
					 .build = build,
					 .rewritten = rewritten,
					 .hidden_at = (uint32_t)end,
					 .packed_size = (uint32_t)(end + hidden),
					 .workers = resident(tuned, variant->function)};
	if (form == WEIR_RESUMABLE) {
		uint64_t save = variant->save_fixed + variant->save_per_thread * threads +
				tuned->geometry.shared;
		config->hidden.save_stride = (save + 255) / 256 * 256;
		config->workers = config->workers < WORKERS_MAX ? config->workers : WORKERS_MAX;
	}
	return config->workers != 0;
}

/* Of the form's builds the first of those of which most blocks run at once. */
static bool best_build(struct launch_config *config, const struct planner *planner,
		       enum weir_form form)
{
	struct launch_config best = {.workers = 0};

	for (uint32_t build = 0; build < BUILDS_MAX; build++) {
		struct launch_config next;
		if (plan_init(&next, planner, form, build) && next.workers > best.workers)
			best = next;
	}
	*config = best;
	return best.workers != 0;
}

static bool whole_grid_fits(const struct tuned_kernel *tuned)
{
	return !tuned->resident || geometry_blocks(&tuned->geometry) <= tuned->resident;
}

/* How long a block takes, in a grid of which so many run at once. */
static uint64_t block_time(const struct tuned_kernel *tuned, uint32_t at_once)
{
	uint64_t blocks = geometry_blocks(&tuned->geometry);

	return blocks <= at_once ? tuned->native
				 : (uint64_t)((double)tuned->native * at_once / (double)blocks);
}

/* Who draws ahead leaves a block later. */
uint64_t launch_config_leave_time(const struct tuned_kernel *tuned,
				  const struct launch_config *config)
{
	uint64_t blocks = config->hidden.chunk + config->hidden.ahead;

	switch (config->form) {
	case WEIR_SLICED:
		return (uint64_t)((double)tuned->native * config->step /
				  tuned->geometry.grid[config->axis]);
	case WEIR_PERSISTENT:
		return blocks * block_time(tuned, config->workers) + POLL_NS;
	case WEIR_RESUMABLE:
		return POLL_NS + SAFE_POINT_NS;
	default:
		return tuned->native;
	}
}

static void add(struct tuned_kernel *tuned, const struct launch_config *config)
{
	if (tuned->n < CANDIDATES_MAX)
		tuned->candidates[tuned->n++] =
			(struct candidate){.config = *config, .ratio = HUGE_VAL};
}

static void cut(struct launch_config *config, uint32_t chunk, bool ahead)
{
	config->hidden.ahead = ahead;
	weir_cut(&config->hidden, chunk, config->workers, !ahead, config->order);
	if (config->workers > config->hidden.tickets)
		config->workers = config->hidden.tickets;
}

/* A config with tickets of so many blocks. */
static void add_tickets(struct tuned_kernel *tuned, const struct launch_config *config,
			uint32_t chunk, bool ahead)
{
	const unsigned *grid = tuned->geometry.grid;
	struct launch_config added = *config;

	added.hidden.grid[0] = grid[0];
	added.hidden.grid[1] = grid[1];
	added.hidden.grid[2] = grid[2];
	added.hidden.blocks = (uint32_t)geometry_blocks(&tuned->geometry);
	added.hidden.period = POLL_PERIOD;
	cut(&added, chunk, ahead);
	add(tuned, &added);
}

void launch_config_refine(struct tuned_kernel *tuned, uint32_t candidate)
{
	struct launch_config *config = &tuned->candidates[candidate].config;
	const struct candidate *best = NULL;

	if (!config->refines)
		return;
	for (size_t i = tuned->first; i < candidate; i++) {
		const struct candidate *c = &tuned->candidates[i];
		if (c->config.form == config->form && !c->config.refines &&
		    (!best || c->ratio < best->ratio))
			best = c;
	}
	if (best)
		cut(config, best->config.hidden.chunk, best->config.hidden.ahead);
}

/* With a worker less on each SM: blocks that compete for its cache are then faster, all in all. */
static void add_spare(struct tuned_kernel *tuned, const struct launch_config *config,
		      uint32_t chunk, bool ahead)
{
	struct launch_config spare = *config;
	uint32_t sms = sm_count(tuned);

	if (config->workers < 4 * sms)
		return;
	spare.workers -= sms;
	spare.refines = true;
	add_tickets(tuned, &spare, chunk, ahead);
}

/* Those that run at a time lie together, as they do natively: neighbours share what they read. */
static void add_apart(struct tuned_kernel *tuned, const struct launch_config *config,
		      uint32_t chunk, bool ahead)
{
	struct launch_config apart = *config;

	apart.order = WEIR_TICKETS_APART;
	apart.refines = true;
	add_tickets(tuned, &apart, chunk, ahead);
}

/* How many blocks at a time leave soon enough, if each takes @time; the next ticket is drawn ahead.
 */
static uint64_t chunk_max(const struct planner *planner, uint64_t time)
{
	uint64_t latency = planner->settings->latency;
	uint64_t blocks = latency > POLL_NS ? (latency - POLL_NS) / time : 0;

	return blocks > 1 ? blocks - 1 : 0;
}

/* With tickets of more and more blocks, as long as they leave soon enough; then those that go on
 * from the best of them. */
static void add_build(const struct planner *planner, const struct launch_config *config)
{
	struct tuned_kernel *tuned = planner->tuned;
	uint64_t time = block_time(tuned, config->workers) + 1;
	uint64_t most = geometry_blocks(&tuned->geometry) / (4ull * config->workers);
	uint64_t latest = chunk_max(planner, time), chunk = TICKET_NS / time;
	bool ahead = chunk != 0;

	most = most < latest ? most : latest;
	chunk = chunk < most ? chunk : most;
	chunk = chunk ? chunk : 1;
	add_tickets(tuned, config, (uint32_t)chunk, ahead);
	if (is_forced(planner->settings))
		return;
	for (uint64_t more = 2 * chunk; more <= most && more <= MORE_MAX * chunk; more *= 2)
		add_tickets(tuned, config, (uint32_t)more, true);
	if (chunk > 1)
		add_tickets(tuned, config, (uint32_t)(chunk / 2), true);
	if (ahead)
		add_tickets(tuned, config, (uint32_t)chunk, false);
	add_apart(tuned, config, (uint32_t)chunk, ahead);
	add_spare(tuned, config, (uint32_t)chunk, ahead);
}

/* The other builds, with another number of registers: who knows what becomes of them. */
static void add_others(const struct planner *planner, const struct launch_config *best)
{
	struct launch_config config;

	for (uint32_t build = best->build + 1; build < BUILDS_MAX; build++) {
		if (is_forced(planner->settings) ||
		    !plan_init(&config, planner, WEIR_PERSISTENT, build))
			return;
		config.refines = true;
		add_tickets(planner->tuned, &config, 1, false);
	}
}

/* Only for grids that do not fit on the GPU as a whole. In one that does, blocks may wait for each
 * other, and those that were refused a ticket would never come; nor would anybody draw a ticket,
 * and so look whether to leave, once all are running. */
static void add_persistent(const struct planner *planner)
{
	struct tuned_kernel *tuned = planner->tuned;
	uint64_t blocks = geometry_blocks(&tuned->geometry), chunk = planner->settings->chunk;
	struct launch_config config;

	if (!best_build(&config, planner, WEIR_PERSISTENT) || whole_grid_fits(tuned) ||
	    blocks <= config.workers)
		return;
	if (chunk) {
		chunk = chunk < blocks ? chunk : blocks;
		add_tickets(tuned, &config, (uint32_t)chunk, chunk > 1);
		return;
	}
	add_build(planner, &config);
	add_others(planner, &config);
}

/* A grid that fits on the GPU as a whole must do so in this form as well. */
static void add_resumable(const struct planner *planner)
{
	struct tuned_kernel *tuned = planner->tuned;
	uint64_t blocks = geometry_blocks(&tuned->geometry), forced = planner->settings->chunk;
	struct launch_config config;

	if (!plan_init(&config, planner, WEIR_RESUMABLE, 0) ||
	    (whole_grid_fits(tuned) && blocks > config.workers))
		return;
	uint64_t chunk = TICKET_NS / (block_time(tuned, config.workers) + 1);
	uint64_t most = blocks / (4ull * config.workers);
	chunk = chunk < most ? chunk : most;
	if (forced && !whole_grid_fits(tuned))
		chunk = forced < blocks ? forced : blocks;
	add_tickets(tuned, &config, chunk ? (uint32_t)chunk : 1, false);
}

/* Along the longest axis, in slices of about so many ns. */
static void add_slices(const struct planner *planner, uint64_t each)
{
	struct tuned_kernel *tuned = planner->tuned;
	const unsigned *grid = tuned->geometry.grid;
	struct launch_config config;

	if (!plan_init(&config, planner, WEIR_SLICED, 0) || whole_grid_fits(tuned))
		return;
	for (unsigned i = 1; i < 3; i++)
		config.axis = grid[i] > grid[config.axis] ? i : config.axis;
	uint64_t length = grid[config.axis], across = geometry_blocks(&tuned->geometry) / length;
	uint64_t step = (uint64_t)((double)length * (double)each / (double)tuned->native);
	uint64_t full = (config.workers + across - 1) / across, least = length / CHAIN_MAX + 1;
	step = step > full ? step : full;
	step = step > least ? step : least;
	const struct launch_config *before = &tuned->candidates[tuned->n - 1].config;
	bool again = before->form == WEIR_SLICED && before->step == step;
	if (step >= length || again)
		return;
	config.step = (unsigned)step;
	add(tuned, &config);
}

/* As long as the latency, less what slices take longer. */
static void add_sliced(const struct planner *planner)
{
	add_slices(planner, planner->settings->latency * 7 / 8);
}

/* Slices that cost little, for equals, whom a launch as long as this would make wait. */
static void add_coarse(const struct planner *planner)
{
	if (planner->tuned->native >= WAITED_LONG_NS && !is_forced(planner->settings))
		add_slices(planner, COARSE_NS);
}

void launch_configs_add(struct tuned_kernel *tuned, const struct rewritten *rewritten,
			const struct settings *settings, enum waited waited)
{
	static void (*const by_form[WEIR_FORM_COUNT])(const struct planner *planner) = {
		[WEIR_SLICED] = add_sliced,
		[WEIR_PERSISTENT] = add_persistent,
		[WEIR_RESUMABLE] = add_resumable,
	};
	static const enum weir_form short_blocks[] = {WEIR_PERSISTENT, WEIR_RESUMABLE, WEIR_SLICED},
				    long_blocks[] = {WEIR_RESUMABLE, WEIR_PERSISTENT, WEIR_SLICED};
	const struct planner planner = {tuned, rewritten, settings};

	tuned->resident = resident(tuned, tuned->geometry.function);
	bool is_short = block_time(tuned, tuned->resident) <= settings->latency;
	const enum weir_form *order = is_short ? short_blocks : long_blocks;
	atomic_store(&tuned->brief, is_short && tuned->resident);
	if (waited == WAITED_LONG)
		add_coarse(&planner);
	for (size_t i = 0; i < countof(short_blocks); i++) {
		if (!is_forced(settings) || order[i] == settings->forced)
			by_form[order[i]](&planner);
	}
	if (waited != WAITED_LONG)
		add_coarse(&planner);
}
