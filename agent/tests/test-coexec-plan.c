/* Clients under the policy coexec, on a made-up GPU: what each gets done depends on its own workers
 * on an SM and the others'. SEED=N repeats a run. */
#include "policy/coexec/memory.h"
#include "policy/run-queue.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "weir/base.h"

#define MS      1000000ull
#define STEP    500000ull
#define CLIENTS 6u
#define THINGS  2u /* that the GPU has one of: arithmetic, memory */
#define PERIOD  (25 * MS)
#define FIT     8u /* workers of a kernel that an SM holds */

static uint64_t state;

static double uniform(void)
{
	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (double)(state >> 11) / (double)(1ull << 53);
}

/* @uses: of each thing, alone. @needs: workers on an SM that get almost all of it. @harm: what
 * others lose by it, beside that. @launch: ns. */
struct program {
	double uses[THINGS], needs, harm;
	uint64_t launch;
	bool unbounded;
	double tax;     /* of its form */
	double gaps;    /* between launches */
	bool silent;    /* it reports nothing as done */
	uint64_t pause; /* ns of each PERIOD in which it has no work */
};

static const struct program arithmetic = {{1, 0.1}, 3, 0, 2 * MS, false};
static const struct program streaming = {{0.1, 1}, 4, 0, 3 * MS, false};
static const struct program poison = {{0.6, 0.6}, 3, 0.6, 2 * MS, false};
static const struct program taxed = {{0.9, 0.9}, 2, 0, 2 * MS, false, 0.15};
static const struct program closed = {{0.4, 0.3}, 6, 0, MS, true};

static struct world {
	struct run_queues queues;
	struct coexec_memory found;
	struct run_queue_entry entries[CLIENTS];
	const struct program *programs[CLIENTS];
	double done[CLIENTS], reported[CLIENTS]; /* ns */
	unsigned launched[CLIENTS];              /* workers of the launch that runs */
	unsigned n;
	uint64_t now, most_held[CLIENTS], held_since[CLIENTS];
	bool blocked; /* higher levels run */
} world;

static void hold(struct run_queues *queues, struct run_queue_entry *entry, bool held)
{
	(void)queues;
	(void)entry;
	(void)held;
}

static void begin(unsigned n, const struct program *const *programs)
{
	world.n = n;
	world.now += MS;
	run_queues_init(&world.queues, &policy_coexec, &policy_defaults, hold);
	world.queues.memory = &world.found;
	world.queues.levels[0].all_concurrent = world.queues.levels[0].bounds = true;
	for (unsigned i = 0; i < n; i++) {
		struct run_queue_entry *entry = &world.entries[i];
		*entry = (struct run_queue_entry){.weight = 100};
		run_queues_add(&world.queues, entry);
		world.programs[i] = programs[i];
		world.done[i] = world.reported[i] = 0;
		world.launched[i] = FIT;
		world.most_held[i] = world.held_since[i] = 0;
		/* Which program it is, for the memory of pairs. */
		entry->coexec.kernel.number = (uintptr_t)programs[i];
		for (unsigned r = 0; r < WEIR_SM_RESOURCES && !programs[i]->unbounded; r++)
			entry->coexec.kernel.parts[r] = WEIR_SM_PARTS / FIT;
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
	for (unsigned i = 0; i < world.n; i++) {
		rates[i] = scale[i];
		for (unsigned r = 0; r < THINGS; r++)
			if (used[r] > 1 && world.programs[i]->uses[r] > 0.3)
				rates[i] = fmin(rates[i], scale[i] / used[r]);
		if (world.entries[i].coexec.workers)
			rates[i] *= 1 - world.programs[i]->tax;
		rates[i] *= (1 - world.programs[i]->gaps) * !world.blocked;
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

static void check_plan(const struct coexec_plan *plan)
{
	struct coexec_kernel kernels[COEXEC_MOST];

	assert_in_range(plan->n, 0, COEXEC_MOST);
	for (unsigned i = 0; i < plan->n; i++)
		kernels[i] = plan->members[i]->coexec.kernel;
	for (unsigned i = 0; plan->n > 1 && i < plan->n; i++)
		assert_true(plan->now.workers[i] <= coexec_room(kernels, plan->n, &plan->now, i));
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

static void pass(uint64_t ns)
{
	for (uint64_t end = world.now + ns; world.now < end; world.now += STEP) {
		double rates[CLIENTS] = {0};
		run_queues_decide(&world.queues, world.now);
		check_plan(&world.queues.levels[0].plan);
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

/* Work of all in a ns, from now on. */
static double throughput(uint64_t ns)
{
	double before = 0, after = 0;

	for (unsigned i = 0; i < world.n; i++)
		before += world.done[i];
	pass(ns);
	for (unsigned i = 0; i < world.n; i++)
		after += world.done[i];
	return (after - before) / (double)ns;
}

/* The best that a pair can reach. */
static double best_of_pair(const struct program *const *programs)
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

static void test_pair_finds_the_best(void **unused)
{
	static const struct program *const programs[] = {&arithmetic, &streaming};
	double best = best_of_pair(programs);

	(void)unused;
	assert_true(best > 1.5);
	begin(2, programs);
	pass(1500 * MS);
	assert_true(throughput(1000 * MS) > 0.98 * best);
	assert_int_equal(world.queues.levels[0].plan.searches, 1);
	assert_int_equal(world.queues.levels[0].plan.n, 2);
}

/* The search itself is no loss against turns. */
static void test_searching_pays(void **unused)
{
	static const struct program *const programs[] = {&arithmetic, &streaming};
	const struct coexec_plan *plan = &world.queues.levels[0].plan;

	(void)unused;
	memset(&world.found, 0, sizeof(world.found));
	begin(2, programs);
	while (!plan->searching)
		pass(MS);
	double before = world.done[0] + world.done[1];
	uint64_t since = world.now;
	while (plan->searching)
		pass(MS);
	assert_true(world.done[0] + world.done[1] - before > 1.09 * (double)(world.now - since));
}

static void test_pair_is_remembered(void **unused)
{
	static const struct program *const programs[] = {&arithmetic, &streaming},
					   *const other[] = {&streaming, &arithmetic};

	(void)unused;
	begin(2, programs);
	pass(1500 * MS);
	struct coexec_configuration found = world.queues.levels[0].plan.now;
	bool swapped = world.queues.levels[0].plan.members[0] != &world.entries[0];
	begin(2, other);
	pass(500 * MS);
	const struct coexec_plan *plan = &world.queues.levels[0].plan;
	assert_int_equal(plan->searches, 0);
	assert_int_equal(plan->n, 2);
	bool swapped_now = plan->members[0] != &world.entries[1];
	assert_int_equal(plan->now.workers[swapped_now], found.workers[swapped]);
}

static void test_losers_take_turns(void **unused)
{
	static const struct program *const programs[] = {&poison, &poison};

	(void)unused;
	begin(2, programs);
	pass(2000 * MS);
	double before[2] = {world.done[0], world.done[1]};
	assert_true(throughput(1000 * MS) > 0.97);
	for (unsigned i = 0; i < 2; i++)
		assert_true(world.done[i] - before[i] > 400.0 * MS);
	assert_int_equal(world.queues.levels[0].plan.n, 1);
}

/* Forms cost more than is gained. */
static void test_forms_that_cost_too_much(void **unused)
{
	static const struct program *const programs[] = {&taxed, &taxed};

	(void)unused;
	begin(2, programs);
	pass(2000 * MS);
	assert_true(throughput(1000 * MS) > 0.97);
	assert_int_equal(world.queues.levels[0].plan.n, 1);
}

/* Launches of seconds: the search ends, and all get on. */
static void test_long_launches(void **unused)
{
	static const struct program slow = {{0.5, 0.5}, 3, 0, 5000 * MS, false, 0};
	static const struct program *const programs[] = {&slow, &slow, &arithmetic};

	(void)unused;
	begin(3, programs);
	pass(60000 * MS);
	for (unsigned i = 0; i < 3; i++) {
		assert_true(world.done[i] > 5000.0 * MS);
		assert_true(world.most_held[i] < 20000 * MS);
	}
}

/* Too long for a whole search: the best of what was tried is kept. */
static void test_search_that_takes_too_long(void **unused)
{
	static const struct program one = {{1, 0.1}, 3, 0, 300 * MS},
				    other = {{0.1, 1}, 4, 0, 300 * MS};
	static const struct program *const programs[] = {&one, &other};

	(void)unused;
	memset(&world.found, 0, sizeof(world.found));
	begin(2, programs);
	pass(20000 * MS);
	assert_int_equal(world.queues.levels[0].plan.searches, 1);
	assert_int_equal(world.queues.levels[0].plan.n, 2);
	assert_true(throughput(3000 * MS) > 1.3);
}

/* Others wait for the search, and for as long again, at most. */
static void test_turn_after_a_long_search(void **unused)
{
	static const struct program one = {{1, 0.1}, 3, 0, 300 * MS},
				    other = {{0.1, 1}, 4, 0, 300 * MS};
	static const struct program *const programs[] = {&one, &other, &poison};

	(void)unused;
	memset(&world.found, 0, sizeof(world.found));
	begin(3, programs);
	pass(60000 * MS);
	assert_true(world.most_held[2] < 13000 * MS);
}

/* However many wait, a look takes no longer. */
static void test_many_wait(void **unused)
{
	static struct run_queue_entry many[300];

	(void)unused;
	memset(&world.found, 0, sizeof(world.found));
	begin(0, NULL);
	for (unsigned i = 0; i < countof(many); i++) {
		many[i] = (struct run_queue_entry){.weight = 100};
		run_queues_add(&world.queues, &many[i]);
		many[i].coexec.kernel.number = 7;
		run_queues_work(&world.queues, &many[i], 1, MS, world.now);
	}
	coexec_memory_put(&world.found, (uint64_t[]){7}, 1, (uint8_t[COEXEC_MOST]){0}, 1);
	coexec_memory_put(&world.found, (uint64_t[]){7, 7}, 2, (uint8_t[COEXEC_MOST]){0}, 1);
	run_queues_decide(&world.queues, world.now);
	uint64_t uses = world.found.uses;
	run_queues_decide(&world.queues, world.now + COEXEC_LOOK);
	assert_in_range(world.found.uses - uses, 1, 50);
	for (unsigned i = 0; i < countof(many); i++)
		run_queues_remove(&world.queues, &many[i], world.now + COEXEC_LOOK);
}

/* What was tried in vain is remembered, too. */
static void test_starving_partner(void **unused)
{
	static const struct program greedy = {{1, 1}, 1, 0.99, 2 * MS},
				    meek = {{1, 1}, 8, 0, 2 * MS};
	static const struct program *const programs[] = {&greedy, &meek};

	(void)unused;
	memset(&world.found, 0, sizeof(world.found));
	begin(2, programs);
	pass(8000 * MS);
	assert_int_equal(world.queues.levels[0].plan.searches, 1);
}

/* A client is charged by the clock: one that reports nothing gains no time by it. */
static void test_silent_client(void **unused)
{
	static const struct program silent = {{0.6, 0.6}, 3, 0.6, 2 * MS, .silent = true};
	static const struct program *const programs[] = {&silent, &poison};

	(void)unused;
	memset(&world.found, 0, sizeof(world.found));
	begin(2, programs);
	pass(12000 * MS);
	double before = world.done[1];
	pass(2000 * MS);
	assert_in_range((uint64_t)(world.done[1] - before), 800 * MS, 1200 * MS);
}

/* What a client did before the policy began is not held against it. */
static void test_history(void **unused)
{
	static const struct program *const programs[] = {&poison, &poison};

	(void)unused;
	begin(2, programs);
	world.reported[0] = world.done[0] = 3600000.0 * MS;
	world.entries[0].coexec.executed = 3600000 * MS;
	pass(4000 * MS);
	double before = world.done[0];
	pass(2000 * MS);
	assert_in_range((uint64_t)(world.done[0] - before), 800 * MS, 1200 * MS);
}

/* Its speed alone is that of the kernel that it has. */
static void test_other_kernel(void **unused)
{
	static const struct program idling = {{1, 0.1}, 3, 0, 2 * MS, .gaps = 0.5};
	static const struct program *const programs[] = {&arithmetic, &streaming};

	(void)unused;
	memset(&world.found, 0, sizeof(world.found));
	begin(2, programs);
	pass(3000 * MS);
	assert_true(fabs(world.entries[0].coexec.alone - 1) < 0.05);
	world.programs[0] = &idling;
	world.entries[0].coexec.kernel.number = (uintptr_t)&idling;
	pass(4000 * MS);
	assert_true(fabs(world.entries[0].coexec.alone - 0.5) < 0.05);
}

/* A client whose kernel changes all the time is never known, and keeps nobody waiting for it. */
static void test_changing_kernels(void **unused)
{
	static const struct program *const programs[] = {&poison, &poison};

	(void)unused;
	begin(2, programs);
	for (unsigned i = 0; i < 4000; i++) {
		world.entries[0].coexec.kernel.number = 1000 + i;
		pass(2 * MS);
	}
	assert_true(world.most_held[1] < 6000 * MS);
	world.most_held[1] = 0;
	double before = world.done[1];
	for (unsigned i = 0; i < 2000; i++) {
		world.entries[0].coexec.kernel.number = 10000 + i;
		pass(2 * MS);
	}
	assert_true(world.most_held[1] < 1000 * MS);
	assert_true(world.done[1] - before > 1500.0 * MS);
}

/* Kernels that are known need not run alone first. */
static void test_known_kernels_join_at_once(void **unused)
{
	static const struct program *const programs[] = {&arithmetic, &streaming, &closed};
	const struct coexec_plan *plan = &world.queues.levels[0].plan;

	(void)unused;
	memset(&world.found, 0, sizeof(world.found));
	begin(3, programs);
	pass(12000 * MS);
	assert_true(coexec_memory_find(&world.found,
				       (uint64_t[]){(uintptr_t)&arithmetic, (uintptr_t)&streaming,
						    (uintptr_t)&closed},
				       3, NULL) > 0);
	begin(3, programs);
	pass(2 * MS);
	assert_true(plan->n >= 2);
	assert_int_equal(plan->searches, 0);
}

/* A member whose work has ended is not bounded when it comes back. */
static void test_one_leaves(void **unused)
{
	static const struct program *const programs[] = {&arithmetic, &streaming};
	const struct coexec_client *other = &world.entries[1].coexec;

	(void)unused;
	begin(2, programs);
	pass(2000 * MS);
	assert_true(other->workers && other->together);
	run_queues_work(&world.queues, &world.entries[1], 0, 0, world.now);
	for (uint64_t end = world.now + 2 * COEXEC_LINGER; world.now < end; world.now += MS)
		run_queues_decide(&world.queues, world.now);
	assert_false(other->workers || other->together);
}

/* Time in which higher levels run is not the clients': speeds are those without. */
static void test_below_others(void **unused)
{
	static const struct program *const programs[] = {&poison, &poison};

	(void)unused;
	memset(&world.found, 0, sizeof(world.found));
	begin(2, programs);
	for (unsigned i = 0; i < 400; i++) {
		world.blocked = i % 2;
		pass(5 * MS);
	}
	world.blocked = false;
	for (unsigned i = 0; i < 2; i++)
		assert_true(world.entries[i].coexec.alone > 0.9);
}

/* Of several waiting clients the one whose kernel goes well with the first joins. */
static void test_unlike_kernels_pair(void **unused)
{
	static const struct program *const programs[] = {&arithmetic, &arithmetic, &streaming,
							 &streaming};

	(void)unused;
	begin(4, programs);
	pass(8000 * MS);
	double best = best_of_pair((const struct program *const[]){&arithmetic, &streaming});
	begin(4, programs); /* all pairs are known */
	pass(500 * MS);
	assert_true(throughput(2000 * MS) > 0.95 * best);
}

/* And nothing else. */
static void know_alone(unsigned n, const struct program *const *programs)
{
	memset(&world.found, 0, sizeof(world.found));
	for (unsigned i = 0; i < n; i++)
		coexec_memory_put(&world.found, (uint64_t[]){(uintptr_t)programs[i]}, 1,
				  (uint8_t[COEXEC_MOST]){0}, 1);
}

static void know_pair(const struct program *a, const struct program *b, double speed_up)
{
	coexec_memory_put(&world.found, (uint64_t[]){(uintptr_t)a, (uintptr_t)b}, 2,
			  (uint8_t[]){FIT / 2, FIT / 2}, speed_up);
}

/* One that gains more, but as much with another that waits, is left to that. */
static void test_partners_are_shared(void **unused)
{
	static const struct program *const programs[] = {&arithmetic, &streaming, &taxed, &poison};
	const struct coexec_plan *plan = &world.queues.levels[0].plan;

	(void)unused;
	know_alone(4, programs);
	know_pair(&arithmetic, &streaming, 1.5);
	know_pair(&arithmetic, &taxed, 1.4);
	know_pair(&poison, &streaming, 1.5);
	know_pair(&poison, &taxed, 1.0);
	know_pair(&arithmetic, &poison, 1.0);
	know_pair(&streaming, &taxed, 1.0);
	begin(4, programs);
	pass(2 * MS);
	assert_int_equal(plan->n, 2);
	assert_ptr_equal(plan->members[0], &world.entries[0]);
	assert_ptr_equal(plan->members[1], &world.entries[2]);
	/* In the next turn it has no better one. */
	pass(COEXEC_TURN + COEXEC_LOOK);
	assert_int_equal(plan->n, 2);
	assert_true(world.entries[1].coexec.together && world.entries[3].coexec.together);
}

/* One that pauses all the time stays a member. */
static void test_one_pauses(void **unused)
{
	static const struct program pausing = {
		{0.1, 1}, 4, .launch = MS, .pause = 2 * COEXEC_LINGER};
	static const struct program *const programs[] = {&arithmetic, &pausing};
	unsigned paused = 0;

	(void)unused;
	know_alone(2, programs);
	know_pair(&arithmetic, &pausing, 1.5);
	begin(2, programs);
	pass(200 * MS);
	for (unsigned i = 0; i < 200; i++) {
		pass(MS);
		assert_int_equal(world.queues.levels[0].plan.n, 2);
		paused += !world.entries[1].active;
	}
	assert_in_range(paused, 20, 60);
}

static void test_several(void **unused)
{
	static const struct program *const programs[] = {&arithmetic, &streaming, &closed,
							 &poison,     &streaming, &arithmetic};

	(void)unused;
	for (unsigned n = 3; n <= CLIENTS; n++) {
		begin(n, programs);
		pass(6000 * MS);
		double before[CLIENTS];
		memcpy(before, world.done, sizeof(before));
		assert_true(throughput(6000 * MS) > 1);
		for (unsigned i = 0; i < n; i++) {
			assert_true(world.done[i] - before[i] > 100.0 * MS);
			assert_true(world.most_held[i] < 5000 * MS);
		}
	}
}

/* Programs, their work and their lies: nobody is held for ever, and nothing overflows. */
static void test_random(void **unused)
{
	static struct program made[CLIENTS];
	const struct program *programs[CLIENTS];

	(void)unused;
	for (unsigned run = 0; run < 30; run++) {
		bool lies = run % 2;
		for (unsigned i = 0; i < CLIENTS; i++) {
			made[i] = (struct program){{uniform(), uniform()},
						   1 + 8 * uniform(),
						   uniform() < 0.2 ? uniform() * 0.5 : 0,
						   (uint64_t)((0.25 + uniform() * 8) * (double)MS),
						   uniform() < 0.2};
			programs[i] = &made[i];
		}
		memset(&world.found, 0, sizeof(world.found));
		begin(2 + run % (CLIENTS - 1), programs);
		for (unsigned step = 0; step < 400; step++) {
			struct run_queue_entry *entry =
				&world.entries[(unsigned)(uniform() * world.n)];
			pass(25 * MS);
			if (uniform() < 0.2) {
				run_queues_work(&world.queues, entry, 0, 0, world.now);
				run_queues_decide(&world.queues, world.now);
			}
			if (lies && uniform() < 0.3) {
				entry = &world.entries[0];
				entry->coexec.executed = (uint64_t)(uniform() * 1e19);
				entry->coexec.launched = (uint64_t)(uniform() * 1e19);
				entry->coexec.kernel.number = (uint64_t)(uniform() * 4);
				for (unsigned r = 0; r < WEIR_SM_RESOURCES; r++)
					entry->coexec.kernel.parts[r] =
						(uint32_t)(uniform() * uniform() * 4e9);
				run_queues_decide(&world.queues, world.now);
			}
		}
		for (unsigned i = 0; i < COEXEC_SETS; i++)
			assert_true(world.found.sets[i].speed_up <= 2 * COEXEC_MOST);
		for (unsigned i = lies; i < world.n; i++)
			assert_true(world.most_held[i] < 8000 * MS);
	}
}

static void test_memory(void **unused)
{
	static struct coexec_memory memory;
	uint8_t workers[COEXEC_MOST] = {3, 4, 5};

	(void)unused;
	for (uint64_t i = 1; i <= 3 * COEXEC_SETS; i++) {
		coexec_memory_put(&memory, (uint64_t[]){i, i + 1000000}, 2, workers, 1.5);
		coexec_memory_put(&memory, (uint64_t[]){i + 1000000, i}, 2, workers, 1.4);
		/* Those that are used always stay. */
		assert_true(coexec_memory_find(&memory, (uint64_t[]){1, 1000001}, 2, workers) > 0);
	}
	assert_true(coexec_memory_find(&memory, (uint64_t[]){2, 1000002}, 2, workers) == 0);
	coexec_memory_put(&memory, (uint64_t[]){9, 5, 7}, 3, (uint8_t[]){1, 2, 3}, 2);
	assert_true(coexec_memory_find(&memory, (uint64_t[]){7, 9, 5}, 3, workers) == 2);
	assert_memory_equal(workers, ((uint8_t[]){3, 1, 2}), 3);
	assert_true(coexec_memory_find(&memory, (uint64_t[]){7, 9}, 2, workers) == 0);
	coexec_memory_put(&memory, (uint64_t[]){21, 22}, 2, workers, 1.3);
	coexec_memory_put(&memory, (uint64_t[]){23, 22}, 2, workers, 1.3);
	coexec_memory_put(&memory, (uint64_t[]){24, 22}, 2, workers, 1.0);
	assert_true(coexec_memory_alike(&memory, 21, 23));
	assert_false(coexec_memory_alike(&memory, 21, 22));
	assert_false(coexec_memory_alike(&memory, 21, 24));
	assert_false(coexec_memory_alike(&memory, 9, 21));
	assert_true(coexec_memory_knows(&memory, 9));
	assert_false(coexec_memory_knows(&memory, 77));
	assert_false(coexec_memory_knows(&memory, 0));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pair_finds_the_best),
		cmocka_unit_test(test_pair_is_remembered),
		cmocka_unit_test(test_losers_take_turns),
		cmocka_unit_test(test_forms_that_cost_too_much),
		cmocka_unit_test(test_long_launches),
		cmocka_unit_test(test_search_that_takes_too_long),
		cmocka_unit_test(test_turn_after_a_long_search),
		cmocka_unit_test(test_many_wait),
		cmocka_unit_test(test_starving_partner),
		cmocka_unit_test(test_silent_client),
		cmocka_unit_test(test_history),
		cmocka_unit_test(test_other_kernel),
		cmocka_unit_test(test_changing_kernels),
		cmocka_unit_test(test_known_kernels_join_at_once),
		cmocka_unit_test(test_one_leaves),
		cmocka_unit_test(test_one_pauses),
		cmocka_unit_test(test_below_others),
		cmocka_unit_test(test_unlike_kernels_pair),
		cmocka_unit_test(test_partners_are_shared),
		cmocka_unit_test(test_several),
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_searching_pays),

		cmocka_unit_test(test_memory),
	};
	const char *seed = getenv("SEED");

	state = seed ? strtoull(seed, NULL, 10) : 20261126;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
