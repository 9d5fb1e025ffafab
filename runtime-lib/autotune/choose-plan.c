#include "autotune/choose-plan.h"

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
	struct choice *choice;
	const struct rewritten *rewritten;
	const struct settings *settings;
};

/* 0: not known. */
static uint32_t sm_count(const struct choice *choice)
{
	int sms = 0;

	real(cuDeviceGetAttribute)(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
				   atomic_load(&choice->client)->device);
	return sms > 0 ? (uint32_t)sms : 0;
}

/* How many blocks the GPU holds at once; 0: not known. */
static uint32_t resident(const struct choice *choice, const void *function)
{
	const unsigned *block = choice->geometry.block;
	int blocks = 0;

	if (real(cuOccupancyMaxActiveBlocksPerMultiprocessor)(
		    &blocks, (CUfunction)function, (int)(block[0] * block[1] * block[2]),
		    choice->geometry.shared) != CUDA_SUCCESS)
		return 0;
	return (uint32_t)blocks * sm_count(choice);
}

/* What all plans of a form have in common. False: the kernel cannot be launched so. */
static bool plan_init(struct plan *plan, const struct planner *planner, enum weir_form form,
		      uint32_t build)
{
	const struct choice *choice = planner->choice;
	const struct rewritten *rewritten = planner->rewritten;
	const struct variant *variant = &rewritten->variants[form][build];
	size_t end = 0, hidden = form == WEIR_SLICED ? sizeof(struct weir_slice)
						     : sizeof(struct weir_persistent);
	uint64_t threads = (uint64_t)choice->geometry.block[0] * choice->geometry.block[1] *
			   choice->geometry.block[2];

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
	*plan = (struct plan){.form = form,
			      .build = build,
			      .rewritten = rewritten,
			      .hidden_at = (uint32_t)end,
			      .packed_size = (uint32_t)(end + hidden),
			      .workers = resident(choice, variant->function)};
	if (form == WEIR_RESUMABLE) {
		uint64_t save = variant->save_fixed + variant->save_per_thread * threads +
				choice->geometry.shared;
		plan->hidden.save_stride = (save + 255) / 256 * 256;
		plan->workers = plan->workers < WORKERS_MAX ? plan->workers : WORKERS_MAX;
	}
	return plan->workers != 0;
}

/* Of the form's builds the first of those of which most blocks run at once. */
static bool best_build(struct plan *plan, const struct planner *planner, enum weir_form form)
{
	struct plan best = {.workers = 0};

	for (uint32_t build = 0; build < BUILDS_MAX; build++) {
		struct plan next;
		if (plan_init(&next, planner, form, build) && next.workers > best.workers)
			best = next;
	}
	*plan = best;
	return best.workers != 0;
}

static bool whole_grid_fits(const struct choice *choice)
{
	return !choice->resident || geometry_blocks(&choice->geometry) <= choice->resident;
}

/* How long a block takes, in a grid of which so many run at once. */
static uint64_t block_time(const struct choice *choice, uint32_t at_once)
{
	uint64_t blocks = geometry_blocks(&choice->geometry);

	return blocks <= at_once ? choice->native
				 : (uint64_t)((double)choice->native * at_once / (double)blocks);
}

/* Who draws ahead leaves a block later. */
uint64_t plan_leave_time(const struct choice *choice, const struct plan *plan)
{
	uint64_t blocks = plan->hidden.chunk + plan->hidden.ahead;

	switch (plan->form) {
	case WEIR_SLICED:
		return (uint64_t)((double)choice->native * plan->step /
				  choice->geometry.grid[plan->axis]);
	case WEIR_PERSISTENT:
		return blocks * block_time(choice, plan->workers) + POLL_NS;
	case WEIR_RESUMABLE:
		return POLL_NS + SAFE_POINT_NS;
	default:
		return choice->native;
	}
}

static void add(struct choice *choice, const struct plan *plan)
{
	if (choice->n < CANDIDATES_MAX)
		choice->candidates[choice->n++] =
			(struct candidate){.plan = *plan, .ratio = HUGE_VAL};
}

static void cut(struct plan *plan, uint32_t chunk, bool ahead)
{
	plan->hidden.ahead = ahead;
	weir_cut(&plan->hidden, chunk, plan->workers, !ahead, plan->order);
	if (plan->workers > plan->hidden.tickets)
		plan->workers = plan->hidden.tickets;
}

/* A plan with tickets of so many blocks. */
static void add_tickets(struct choice *choice, const struct plan *plan, uint32_t chunk, bool ahead)
{
	const unsigned *grid = choice->geometry.grid;
	struct plan added = *plan;

	added.hidden.grid[0] = grid[0];
	added.hidden.grid[1] = grid[1];
	added.hidden.grid[2] = grid[2];
	added.hidden.blocks = (uint32_t)geometry_blocks(&choice->geometry);
	added.hidden.period = POLL_PERIOD;
	cut(&added, chunk, ahead);
	add(choice, &added);
}

void plan_refine(struct choice *choice, uint32_t candidate)
{
	struct plan *plan = &choice->candidates[candidate].plan;
	const struct candidate *best = NULL;

	if (!plan->refines)
		return;
	for (size_t i = choice->first; i < candidate; i++) {
		const struct candidate *c = &choice->candidates[i];
		if (c->plan.form == plan->form && !c->plan.refines &&
		    (!best || c->ratio < best->ratio))
			best = c;
	}
	if (best)
		cut(plan, best->plan.hidden.chunk, best->plan.hidden.ahead);
}

/* With a worker less on each SM: blocks that compete for its cache are then faster, all in all. */
static void add_spare(struct choice *choice, const struct plan *plan, uint32_t chunk, bool ahead)
{
	struct plan spare = *plan;
	uint32_t sms = sm_count(choice);

	if (plan->workers < 4 * sms)
		return;
	spare.workers -= sms;
	spare.refines = true;
	add_tickets(choice, &spare, chunk, ahead);
}

/* Those that run at a time lie together, as they do natively: neighbours share what they read. */
static void add_apart(struct choice *choice, const struct plan *plan, uint32_t chunk, bool ahead)
{
	struct plan apart = *plan;

	apart.order = WEIR_TICKETS_APART;
	apart.refines = true;
	add_tickets(choice, &apart, chunk, ahead);
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
static void add_build(const struct planner *planner, const struct plan *plan)
{
	struct choice *choice = planner->choice;
	uint64_t time = block_time(choice, plan->workers) + 1;
	uint64_t most = geometry_blocks(&choice->geometry) / (4ull * plan->workers);
	uint64_t latest = chunk_max(planner, time), chunk = TICKET_NS / time;
	bool ahead = chunk != 0;

	most = most < latest ? most : latest;
	chunk = chunk < most ? chunk : most;
	chunk = chunk ? chunk : 1;
	add_tickets(choice, plan, (uint32_t)chunk, ahead);
	if (is_forced(planner->settings))
		return;
	for (uint64_t more = 2 * chunk; more <= most && more <= MORE_MAX * chunk; more *= 2)
		add_tickets(choice, plan, (uint32_t)more, true);
	if (chunk > 1)
		add_tickets(choice, plan, (uint32_t)(chunk / 2), true);
	if (ahead)
		add_tickets(choice, plan, (uint32_t)chunk, false);
	add_apart(choice, plan, (uint32_t)chunk, ahead);
	add_spare(choice, plan, (uint32_t)chunk, ahead);
}

/* The other builds, with another number of registers: who knows what becomes of them. */
static void add_others(const struct planner *planner, const struct plan *best)
{
	struct plan plan;

	for (uint32_t build = best->build + 1; build < BUILDS_MAX; build++) {
		if (is_forced(planner->settings) ||
		    !plan_init(&plan, planner, WEIR_PERSISTENT, build))
			return;
		plan.refines = true;
		add_tickets(planner->choice, &plan, 1, false);
	}
}

/* Only for grids that do not fit on the GPU as a whole. In one that does, blocks may wait for each
 * other, and those that were refused a ticket would never come; nor would anybody draw a ticket,
 * and so look whether to leave, once all are running. */
static void add_persistent(const struct planner *planner)
{
	struct choice *choice = planner->choice;
	uint64_t blocks = geometry_blocks(&choice->geometry), chunk = planner->settings->chunk;
	struct plan plan;

	if (!best_build(&plan, planner, WEIR_PERSISTENT) || whole_grid_fits(choice) ||
	    blocks <= plan.workers)
		return;
	if (chunk) {
		chunk = chunk < blocks ? chunk : blocks;
		add_tickets(choice, &plan, (uint32_t)chunk, chunk > 1);
		return;
	}
	add_build(planner, &plan);
	add_others(planner, &plan);
}

/* A grid that fits on the GPU as a whole must do so in this form as well. */
static void add_resumable(const struct planner *planner)
{
	struct choice *choice = planner->choice;
	uint64_t blocks = geometry_blocks(&choice->geometry), forced = planner->settings->chunk;
	struct plan plan;

	if (!plan_init(&plan, planner, WEIR_RESUMABLE, 0) ||
	    (whole_grid_fits(choice) && blocks > plan.workers))
		return;
	uint64_t chunk = TICKET_NS / (block_time(choice, plan.workers) + 1);
	uint64_t most = blocks / (4ull * plan.workers);
	chunk = chunk < most ? chunk : most;
	if (forced && !whole_grid_fits(choice))
		chunk = forced < blocks ? forced : blocks;
	add_tickets(choice, &plan, chunk ? (uint32_t)chunk : 1, false);
}

/* Along the longest axis, in slices of about so many ns. */
static void add_slices(const struct planner *planner, uint64_t each)
{
	struct choice *choice = planner->choice;
	const unsigned *grid = choice->geometry.grid;
	struct plan plan;

	if (!plan_init(&plan, planner, WEIR_SLICED, 0) || whole_grid_fits(choice))
		return;
	for (unsigned i = 1; i < 3; i++)
		plan.axis = grid[i] > grid[plan.axis] ? i : plan.axis;
	uint64_t length = grid[plan.axis], across = geometry_blocks(&choice->geometry) / length;
	uint64_t step = (uint64_t)((double)length * (double)each / (double)choice->native);
	uint64_t full = (plan.workers + across - 1) / across, least = length / CHAIN_MAX + 1;
	step = step > full ? step : full;
	step = step > least ? step : least;
	const struct plan *before = &choice->candidates[choice->n - 1].plan;
	bool again = before->form == WEIR_SLICED && before->step == step;
	if (step >= length || again)
		return;
	plan.step = (unsigned)step;
	add(choice, &plan);
}

/* As long as the latency, less what slices take longer. */
static void add_sliced(const struct planner *planner)
{
	add_slices(planner, planner->settings->latency * 7 / 8);
}

/* Slices that cost little, for equals, whom a launch as long as this would make wait. */
static void add_coarse(const struct planner *planner)
{
	if (planner->choice->native >= WAITED_LONG_NS && !is_forced(planner->settings))
		add_slices(planner, COARSE_NS);
}

void plans_add(struct choice *choice, const struct rewritten *rewritten,
	       const struct settings *settings, enum waited waited)
{
	static void (*const by_form[WEIR_FORM_COUNT])(const struct planner *planner) = {
		[WEIR_SLICED] = add_sliced,
		[WEIR_PERSISTENT] = add_persistent,
		[WEIR_RESUMABLE] = add_resumable,
	};
	static const enum weir_form short_blocks[] = {WEIR_PERSISTENT, WEIR_RESUMABLE, WEIR_SLICED},
				    long_blocks[] = {WEIR_RESUMABLE, WEIR_PERSISTENT, WEIR_SLICED};
	const struct planner planner = {choice, rewritten, settings};

	choice->resident = resident(choice, choice->geometry.function);
	bool is_short = block_time(choice, choice->resident) <= settings->latency;
	const enum weir_form *order = is_short ? short_blocks : long_blocks;
	atomic_store(&choice->brief, is_short && choice->resident);
	if (waited == WAITED_LONG)
		add_coarse(&planner);
	for (size_t i = 0; i < countof(short_blocks); i++) {
		if (!is_forced(settings) || order[i] == settings->forced)
			by_form[order[i]](&planner);
	}
	if (waited != WAITED_LONG)
		add_coarse(&planner);
}
