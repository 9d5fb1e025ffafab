#include "coexec-world.h"

#include <math.h>
#include <string.h>

#include "coexec-begin.h"

#include "weir/base.h"

#define STEP   500000ull
#define PERIOD (25 * MS)

const struct program arithmetic = {{1, 0.1}, 3, 0, 2 * MS, false};
const struct program streaming = {{0.1, 1}, 4, 0, 3 * MS, false};
const struct program poison = {{0.6, 0.6}, 3, 0.6, 2 * MS, false};
const struct program taxed = {{0.9, 0.9}, 2, 0, 2 * MS, false, 0.15};
const struct program closed = {{0.4, 0.3}, 6, 0, MS, true};

struct coexec_world world;

int world_set_up(void **state)
{
	(void)state;
	memset(&world, 0, sizeof(world));
	return 0;
}

const struct coexec_plan *plan(void)
{
	return &world.queues.levels[0].plan;
}

void begin(unsigned n, const struct program *const *programs)
{
	world.n = n;
	world.now += MS;
	coexec_begin(&world.queues, &world.found, world.entries, n);
	for (unsigned i = 0; i < n; i++) {
		struct coexec_kernel *kernel = &world.entries[i].coexec.kernel;
		world.programs[i] = programs[i];
		world.done[i] = world.reported[i] = 0;
		world.launched[i] = FIT;
		world.most_held[i] = world.held_since[i] = 0;
		/* Which program it is, for the memory of pairs. */
		kernel->number = (uintptr_t)programs[i];
		for (unsigned r = 0; r < WEIR_SM_RESOURCES && !programs[i]->unbounded; r++)
			kernel->parts[r] = WEIR_SM_PARTS / FIT;
	}
}

static bool runs(unsigned i)
{
	return world.entries[i].active && !world.entries[i].held;
}

/* How fast each gets on; alone: 1. */
static void find_rates(double rates[CLIENTS])
{
	double scale[CLIENTS], used[THINGS] = {0};
	double others = 0;

	for (unsigned i = 0; i < world.n; i++)
		others += runs(i) ? world.launched[i] : 0;
	for (unsigned i = 0; i < world.n; i++) {
		const struct program *p = world.programs[i];
		double workers = smaller(world.launched[i], FIT);
		/* They do not all fit. */
		if (others > FIT)
			workers = workers * FIT / others;
		scale[i] = runs(i) ? (1 - exp(-3.0 * workers / p->needs)) /
					     (1 - exp(-3.0 * FIT / p->needs))
				   : 0;
		for (unsigned r = 0; r < THINGS; r++)
			used[r] += scale[i] * p->uses[r];
	}
	bool flattered = world.flatters && plan()->searching && world.launched[0] == world.flatters;
	for (unsigned i = 0; i < world.n; i++) {
		rates[i] = scale[i];
		for (unsigned r = 0; r < THINGS; r++)
			if (used[r] > 1 && world.programs[i]->uses[r] > 0.3)
				rates[i] = fmin(rates[i], scale[i] / used[r]);
		if (world.entries[i].coexec.workers)
			rates[i] *= 1 - world.programs[i]->tax;
		rates[i] *= (1 - world.programs[i]->gaps) * !world.blocked;
		rates[i] *= flattered ? 1.4 : 1;
		for (unsigned k = 0; k < world.n; k++)
			if (k != i && runs(k))
				rates[i] *= 1 - world.programs[k]->harm;
	}
}

/* Finished launches are reported; the next one has the workers that are allowed by then. */
static void work(unsigned i, double ns)
{
	struct run_queue_entry *entry = &world.entries[i];
	double launch = (double)world.programs[i]->launch;
	unsigned queued = world.now % PERIOD < PERIOD - world.programs[i]->pause ? 2 : 0;

	world.done[i] += ns;
	while (world.reported[i] + launch <= world.done[i]) {
		world.reported[i] += launch;
		world.launched[i] =
			entry->coexec.workers ? (unsigned)smaller(entry->coexec.workers, FIT) : FIT;
	}
	if (!world.programs[i]->silent)
		entry->coexec.executed = (uint64_t)world.reported[i];
	entry->coexec.launched = entry->coexec.executed + 2 * world.programs[i]->launch;
	run_queues_work(&world.queues, entry, queued, queued * world.programs[i]->launch,
			world.now);
}

static void check_plan(void)
{
	struct coexec_kernel kernels[COEXEC_MOST];

	assert_in_range(plan()->n, 0, COEXEC_MOST);
	for (unsigned i = 0; i < plan()->n; i++)
		kernels[i] = plan()->members[i]->coexec.kernel;
	for (unsigned i = 0; plan()->n > 1 && i < plan()->n; i++)
		assert_true(plan()->now.workers[i] <=
			    coexec_room(kernels, plan()->n, &plan()->now, i));
}

/* The clock charges those that run. */
static void charge(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < world.n; i++)
		n += runs(i);
	for (unsigned i = 0; i < world.n && !world.blocked; i++)
		if (runs(i))
			run_queues_ran(&world.entries[i], STEP / n);
}

void pass(uint64_t ns)
{
	for (uint64_t end = world.now + ns; world.now < end; world.now += STEP) {
		double rates[CLIENTS] = {0};
		run_queues_decide(&world.queues, world.now);
		check_plan();
		find_rates(rates);
		world.queues.levels[0].blocked += world.blocked ? STEP : 0;
		charge();
		for (unsigned i = 0; i < world.n; i++) {
			work(i, rates[i] * (double)STEP);
			world.held_since[i] =
				world.entries[i].held ? world.held_since[i] + STEP : 0;
			world.most_held[i] = larger(world.most_held[i], world.held_since[i]);
		}
	}
}

double throughput(uint64_t ns)
{
	double before = 0, after = 0;

	for (unsigned i = 0; i < world.n; i++)
		before += world.done[i];
	pass(ns);
	for (unsigned i = 0; i < world.n; i++)
		after += world.done[i];
	return (after - before) / (double)ns;
}

double best_of_pair(const struct program *const *programs)
{
	double best = 0, rates[CLIENTS] = {0};

	begin(2, programs);
	for (unsigned i = 0; i < 2; i++)
		run_queues_work(&world.queues, &world.entries[i], 1, MS, world.now);
	for (unsigned n = 1; n < FIT; n++) {
		world.launched[0] = n;
		world.launched[1] = FIT - n;
		find_rates(rates);
		best = fmax(best, rates[0] + rates[1]);
	}
	return best;
}

void know_alone(unsigned n, const struct program *const *programs)
{
	for (unsigned i = 0; i < n; i++)
		coexec_memory_put(&world.found, (uint64_t[]){(uintptr_t)programs[i]}, 1,
				  (uint8_t[COEXEC_MOST]){0}, 1);
}

void know_pair(const struct program *a, const struct program *b, double speed_up)
{
	coexec_memory_put(&world.found, (uint64_t[]){(uintptr_t)a, (uintptr_t)b}, 2,
			  (uint8_t[]){FIT / 2, FIT / 2}, speed_up);
}
