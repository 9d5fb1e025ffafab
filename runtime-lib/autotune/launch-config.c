#include "autotune/launch-config.h"

#include "weir/base.h"

#include <math.h>
#include <string.h>

const char *form_name(enum weir_form form)
{
	static const char *const names[WEIR_FORM_COUNT] = {
		[WEIR_NATIVE] = "native",
		[WEIR_SLICED] = "sliced",
		[WEIR_PERSISTENT] = "persistent",
		[WEIR_RESUMABLE] = "resumable",
	};

	return names[form];
}

/* What all configurations of a build have in common. False: the kernel has no such build. */
static bool config_init(struct launch_config *config, const struct kernel_facts *facts,
			enum weir_form form, uint32_t build)
{
	const struct build_facts *of = &facts->builds[form][build];
	uint32_t hidden =
		form == WEIR_SLICED ? sizeof(struct weir_slice) : sizeof(struct weir_persistent);

	*config = (struct launch_config){.form = form,
					 .build = build,
					 .rewritten = facts->rewritten,
					 .hidden_at = facts->hidden_at,
					 .packed_size =
						 facts->hidden_at + hidden + facts->symbols_size,
					 .hidden.save_stride = of->save_stride,
					 .hidden.drain = of->drain,
					 .hidden.kind = facts->kind,
					 .hidden.calls = CALLS_MAX,
					 .hidden.prints = PRINTS_MAX,
					 .hidden.allocating = ALLOCATING_MAX,
					 .hidden.patience = ALLOCATING_PATIENCE,
					 .hidden.look = WEIR_LOOK,
					 .hidden.lead = WEIR_LEAD,
					 .workers = of->resident};
	memcpy(config->parts, of->parts, sizeof(config->parts));
	if (form == WEIR_RESUMABLE)
		config->workers = smaller(config->workers, WORKERS_MAX);
	return config->workers != 0;
}

/* The first build with the most blocks on the GPU at once. */
static bool best_build(struct launch_config *config, const struct kernel_facts *facts,
		       enum weir_form form)
{
	struct launch_config next;

	*config = (struct launch_config){.workers = 0};
	for (uint32_t build = 0; build < BUILDS_MAX; build++) {
		if (config_init(&next, facts, form, build) && next.workers > config->workers)
			*config = next;
	}
	return config->workers != 0;
}

static bool whole_grid_fits(const struct autotuner *tuner)
{
	return !tuner->resident || launch_blocks(tuner) <= tuner->resident;
}

/* A grid that fits on the GPU as a whole, and can be cut all the same, because its blocks do not
 * wait for each other. It has safe points only where it calls functions of the driver (printf), and
 * these are what makes it long: where they take turns. */
static bool can_be_cut(const struct autotuner *tuner, const struct kernel_facts *facts)
{
	return facts->is_straight && tuner->resident && whole_grid_fits(tuner);
}

/* Slices need to know how long it takes. */
static bool is_cut(const struct autotuner *tuner, const struct kernel_facts *facts)
{
	return can_be_cut(tuner, facts) && !atomic_load(&tuner->assumed);
}

/* ns of a block, if @at_once of the grid's blocks run at a time. */
static uint64_t block_time(const struct autotuner *tuner, uint32_t at_once)
{
	uint64_t blocks = launch_blocks(tuner);

	return blocks <= at_once ? tuner->native
				 : (uint64_t)((double)tuner->native * at_once / (double)blocks);
}

uint64_t launch_config_chunk(const struct autotuner *tuner, const struct launch_config *config)
{
	return config->form == WEIR_SLICED
		       ? launch_blocks(tuner) / tuner->grid[config->axis] * config->step
		       : config->hidden.chunk;
}

uint64_t launch_config_leave_time(const struct autotuner *tuner, const struct launch_config *config)
{
	/* A worker that draws tickets ahead runs one block more. */
	uint64_t blocks = config->hidden.chunk + config->hidden.ahead;

	switch (config->form) {
	case WEIR_SLICED:
		return (uint64_t)((double)tuner->native * config->step / tuner->grid[config->axis]);
	case WEIR_PERSISTENT:
		return blocks * block_time(tuner, config->workers) + POLL_NS;
	case WEIR_RESUMABLE:
		return POLL_NS + SAFE_POINT_NS;
	default:
		return tuner->native;
	}
}

void launch_config_add(struct autotuner *tuner, const struct launch_config *config)
{
	if (tuner->n < CANDIDATES_MAX)
		tuner->candidates[tuner->n++] =
			(struct candidate){.config = *config, .ratio = HUGE_VAL};
}

/* Can a launch go on on a part of the SMs? Blocks may wait for earlier ones, so workers must take
 * them in order, and each worker needs a next ticket. It must come soon: there are no safe points
 * on the way. With an unknown block time it does in persistent, which is only for short blocks. */
static bool is_spatial(const struct autotuner *tuner, const struct launch_config *config)
{
	const struct weir_persistent *hidden = &config->hidden;
	uint64_t ticket = (hidden->chunk + hidden->ahead) * block_time(tuner, config->workers);

	return hidden->across == 1 && hidden->tickets > config->workers &&
	       hidden->tickets <= WEIR_TICKET_ASKED / 2 && config->workers <= WORKERS_MAX &&
	       ticket + POLL_NS <= tuner->settings->latency &&
	       (tuner->native || config->form == WEIR_PERSISTENT);
}

static void cut(const struct autotuner *tuner, struct launch_config *config, uint32_t chunk,
		bool ahead)
{
	config->hidden.ahead = ahead;
	weir_cut(&config->hidden, chunk, config->workers, !ahead, config->order);
	config->workers = smaller(config->workers, config->hidden.tickets);
	config->hidden.dealt = config->workers;
	config->spatial = is_spatial(tuner, config);
}

/* Gives it tickets of @chunk blocks. @ahead: the next ticket is drawn early. */
static void set_tickets(const struct autotuner *tuner, struct launch_config *config, uint64_t chunk,
			bool ahead)
{
	for (size_t i = 0; i < 3; i++)
		config->hidden.grid[i] = tuner->grid[i];
	config->hidden.blocks = (uint32_t)launch_blocks(tuner);
	config->hidden.period = POLL_PERIOD_NS;
	cut(tuner, config, (uint32_t)chunk, ahead);
}

static void add_tickets(struct autotuner *tuner, const struct launch_config *config, uint64_t chunk,
			bool ahead)
{
	struct launch_config added = *config;

	set_tickets(tuner, &added, chunk, ahead);
	launch_config_add(tuner, &added);
}

void launch_config_refine(struct autotuner *tuner, uint32_t candidate)
{
	struct launch_config *config = &tuner->candidates[candidate].config;
	const struct candidate *best = NULL;

	if (!config->refines)
		return;
	for (size_t i = tuner->first; i < candidate; i++) {
		const struct candidate *c = &tuner->candidates[i];
		if (c->config.form == config->form && !c->config.refines &&
		    (!best || c->ratio < best->ratio))
			best = c;
	}
	if (best)
		cut(tuner, config, best->config.hidden.chunk, best->config.hidden.ahead);
}

/* Two variations: blocks that run at a time lie together, as natively, so neighbours share what
 * they read; and one worker less on each SM, so fewer blocks compete for its cache. */
static void add_variations(struct autotuner *tuner, const struct launch_config *config,
			   uint32_t sms, uint64_t chunk, bool ahead)
{
	struct launch_config apart = *config, spare = *config;

	apart.refines = spare.refines = true;
	apart.order = WEIR_TICKETS_APART;
	add_tickets(tuner, &apart, chunk, ahead);
	if (config->workers < 4 * sms)
		return;
	spare.workers -= sms;
	add_tickets(tuner, &spare, chunk, ahead);
}

/* Largest ticket that leaves within the latency, if a block takes @time and one block more runs. */
static uint64_t chunk_max(const struct autotuner *tuner, uint64_t time)
{
	uint64_t latency = tuner->settings->latency;
	uint64_t blocks = latency > POLL_NS ? (latency - POLL_NS) / time : 0;

	return blocks > 1 ? blocks - 1 : 0;
}

/* Tickets of about TICKET_NS, then larger ones as the latency allows, a smaller one, and variations
 * of the best of them. */
static void add_build(struct autotuner *tuner, const struct launch_config *config, uint32_t sms)
{
	uint64_t time = block_time(tuner, config->workers) + 1;
	uint64_t latest = chunk_max(tuner, time), chunk = TICKET_NS / time;
	uint64_t most = smaller(launch_blocks(tuner) / (4ull * config->workers), latest);
	bool ahead = chunk != 0;

	chunk = larger(smaller(chunk, most), 1);
	add_tickets(tuner, config, chunk, ahead);
	if (autotune_forces(tuner->settings))
		return;
	for (uint64_t more = 2 * chunk; more <= most && more <= TICKET_GROWTH_MAX * chunk;
	     more *= 2)
		add_tickets(tuner, config, more, true);
	if (chunk > 1)
		add_tickets(tuner, config, chunk / 2, true);
	if (ahead)
		add_tickets(tuner, config, chunk, false);
	add_variations(tuner, config, sms, chunk, ahead);
}

/* The other builds have other numbers of registers; only a measurement tells whether that helps. */
static void add_other_builds(struct autotuner *tuner, const struct kernel_facts *facts,
			     const struct launch_config *best)
{
	struct launch_config config;

	for (uint32_t build = best->build + 1; build < BUILDS_MAX; build++) {
		if (autotune_forces(tuner->settings) ||
		    !config_init(&config, facts, WEIR_PERSISTENT, build))
			return;
		config.refines = true;
		add_tickets(tuner, &config, 1, false);
	}
}

/* Only for grids that do not fit on the GPU as a whole. In one that fits, blocks may wait for each
 * other, and a block whose ticket was refused would never come. Also nobody would draw a ticket,
 * and so look at the demand, once all blocks run. */
static bool may_be_persistent(const struct autotuner *tuner, const struct launch_config *config)
{
	return !whole_grid_fits(tuner) && launch_blocks(tuner) > config->workers;
}

static void add_persistent(struct autotuner *tuner, const struct kernel_facts *facts)
{
	uint64_t blocks = launch_blocks(tuner), chunk = tuner->settings->chunk;
	struct launch_config config;

	if (!best_build(&config, facts, WEIR_PERSISTENT) || !may_be_persistent(tuner, &config))
		return;
	if (chunk) {
		add_tickets(tuner, &config, smaller(chunk, blocks), chunk > 1 && blocks > 1);
		return;
	}
	add_build(tuner, &config, facts->sms);
	add_other_builds(tuner, facts, &config);
}

/* A grid that fits on the GPU as a whole must fit in this form as well. */
static bool may_be_resumable(const struct autotuner *tuner, const struct launch_config *config)
{
	return !whole_grid_fits(tuner) || launch_blocks(tuner) <= config->workers;
}

/* The first build that can be launched and has at least half of the most blocks on the GPU: the
 * others have fewer registers than their code wants. */
static bool resumable_build(const struct autotuner *tuner, struct launch_config *config,
			    const struct kernel_facts *facts)
{
	struct launch_config most;

	if (!best_build(&most, facts, WEIR_RESUMABLE))
		return false;
	for (uint32_t build = 0; build < BUILDS_MAX; build++) {
		if (config_init(config, facts, WEIR_RESUMABLE, build) &&
		    2 * config->workers >= most.workers && may_be_resumable(tuner, config))
			return true;
	}
	return false;
}

static void add_resumable(struct autotuner *tuner, const struct kernel_facts *facts)
{
	uint64_t blocks = launch_blocks(tuner), forced = tuner->settings->chunk;
	struct launch_config config;

	if (!resumable_build(tuner, &config, facts) ||
	    (is_cut(tuner, facts) && !config.hidden.save_stride))
		return;
	uint64_t chunk = smaller(TICKET_NS / (block_time(tuner, config.workers) + 1),
				 blocks / (4ull * config.workers));
	if (forced && !whole_grid_fits(tuner))
		chunk = smaller(forced, blocks);
	add_tickets(tuner, &config, larger(chunk, 1), false);
}

static unsigned longest_axis(const unsigned grid[3])
{
	unsigned axis = 0;

	for (unsigned i = 1; i < 3; i++)
		axis = grid[i] > grid[axis] ? i : axis;
	return axis;
}

/* The chain has a link for each slice. */
static uint64_t least_step(uint64_t length)
{
	return length / CHAIN_MAX + 1;
}

/* Slices of about @ns along the longest axis. */
static void add_slices(struct autotuner *tuner, const struct kernel_facts *facts, uint64_t ns)
{
	const unsigned *grid = tuner->grid;
	struct launch_config config;

	if (!config_init(&config, facts, WEIR_SLICED, 0) ||
	    (whole_grid_fits(tuner) && !is_cut(tuner, facts)))
		return;
	/* As many blocks run at a time as natively, or so many that the slice is short. */
	uint64_t least = whole_grid_fits(tuner) ? 1 : config.workers;
	config.axis = longest_axis(grid);
	uint64_t length = grid[config.axis], across = launch_blocks(tuner) / length;
	uint64_t step = (uint64_t)((double)length * (double)ns / (double)tuner->native);
	step = larger(larger(step, (least + across - 1) / across), least_step(length));
	const struct launch_config *before = &tuner->candidates[tuner->n - 1].config;
	bool again = before->form == WEIR_SLICED && before->step == step;
	if (step >= length || again)
		return;
	config.step = (unsigned)step;
	launch_config_add(tuner, &config);
}

static void add_short_slices(struct autotuner *tuner, const struct kernel_facts *facts)
{
	add_slices(tuner, facts, tuner->settings->latency * SHORT_SLICE_PARTS / 8);
	/* With fewer threads at a time such a kernel is slower. */
	for (unsigned times = 2; is_cut(tuner, facts) && times <= CUT_TIMES_MAX; times++)
		add_slices(tuner, facts, times * tuner->settings->latency);
}

/* For same-level clients: a launch this long delays them. */
static void add_long_slices(struct autotuner *tuner, const struct kernel_facts *facts)
{
	if (tuner->native >= LONG_KERNEL_NS && !autotune_forces(tuner->settings))
		add_slices(tuner, facts, LONG_SLICE_NS);
}

/* The profile may be of a process with another configuration, or made up: what may hang is checked
 * as for our own candidates. */
bool launch_config_restore(const struct autotuner *tuner, const struct kernel_facts *facts,
			   const struct weir_profile_choice *choice, struct launch_config *out)
{
	bool ahead = choice->flags & WEIR_PROFILE_AHEAD, fits = whole_grid_fits(tuner);
	enum weir_form form = (enum weir_form)choice->form;

	if (form <= WEIR_NATIVE || form >= WEIR_FORM_COUNT || choice->build >= BUILDS_MAX ||
	    !config_init(out, facts, form, choice->build))
		return false;
	if (form == WEIR_SLICED) {
		out->axis = longest_axis(tuner->grid);
		out->step = choice->chunk;
		return (!fits || can_be_cut(tuner, facts)) && out->step < tuner->grid[out->axis] &&
		       out->step >= least_step(tuner->grid[out->axis]);
	}
	if (form == WEIR_PERSISTENT ? !may_be_persistent(tuner, out)
				    : !may_be_resumable(tuner, out))
		return false;
	/* Blocks that may wait for each other must all run at a time. */
	if (fits && (choice->chunk != 1 || ahead))
		return false;
	if (!fits)
		out->workers = (uint32_t)smaller(out->workers, choice->workers);
	out->order = choice->flags & WEIR_PROFILE_APART ? WEIR_TICKETS_APART : WEIR_TICKETS_IN_ROW;
	set_tickets(tuner, out, choice->chunk, ahead);
	return true;
}

void launch_config_describe(const struct launch_config *config, struct weir_profile_choice *out)
{
	bool sliced = config->form == WEIR_SLICED;

	*out = (struct weir_profile_choice){
		.form = (uint8_t)config->form,
		.build = (uint8_t)config->build,
		.chunk = sliced ? config->step : config->hidden.chunk,
		.workers = config->workers,
	};
	if (!sliced && config->hidden.ahead)
		out->flags |= WEIR_PROFILE_AHEAD;
	if (!sliced && config->order == WEIR_TICKETS_APART)
		out->flags |= WEIR_PROFILE_APART;
}

static bool is_short(const struct autotuner *tuner)
{
	return block_time(tuner, tuner->resident) <= tuner->settings->latency;
}

static bool gives_places(const struct autotuner *tuner)
{
	return tuner->resident && !whole_grid_fits(tuner) &&
	       block_time(tuner, tuner->resident) <= PLACE_NS;
}

void launch_configs_prepare(struct autotuner *tuner, const struct kernel_facts *facts)
{
	tuner->resident = facts->resident;
	atomic_store(&tuner->short_blocks, is_short(tuner) && tuner->resident);
	atomic_store(&tuner->gives_places, gives_places(tuner));
}

void launch_configs_add(struct autotuner *tuner, const struct kernel_facts *facts,
			enum waiting waiting)
{
	static void (*const by_form[WEIR_FORM_COUNT])(struct autotuner * tuner,
						      const struct kernel_facts *facts) = {
		[WEIR_SLICED] = add_short_slices,
		[WEIR_PERSISTENT] = add_persistent,
		[WEIR_RESUMABLE] = add_resumable,
	};
	static const enum weir_form short_blocks[] = {WEIR_PERSISTENT, WEIR_RESUMABLE, WEIR_SLICED},
				    long_blocks[] = {WEIR_RESUMABLE, WEIR_PERSISTENT, WEIR_SLICED};
	const struct autotune_settings *settings = tuner->settings;

	launch_configs_prepare(tuner, facts);
	const enum weir_form *order = is_short(tuner) ? short_blocks : long_blocks;
	if (waiting == WAITING_SAME_LEVEL)
		add_long_slices(tuner, facts);
	for (size_t i = 0; i < countof(short_blocks); i++) {
		if (!autotune_forces(settings) || order[i] == settings->forced)
			by_form[order[i]](tuner, facts);
	}
	if (waiting != WAITING_SAME_LEVEL)
		add_long_slices(tuner, facts);
}
