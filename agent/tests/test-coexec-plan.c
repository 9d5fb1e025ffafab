/* Under the policy coexec: which clients run at the same time, what their search for workers finds,
 * and what it costs. SEED=N repeats a run. */
#include "coexec-world.h"

#include <stdlib.h>
#include <string.h>

#include "weir/base.h"

static uint64_t state;

static double uniform(void)
{
	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (double)(state >> 11) / (double)(1ull << 53);
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
	assert_int_equal(plan()->searches, 1);
	assert_int_equal(plan()->n, 2);
}

/* A configuration that seems to be the best during the search is left once it is in use. */
static void test_flattered_configuration(void **unused)
{
	static const struct program *const programs[] = {&arithmetic, &streaming};
	double best = best_of_pair(programs);

	(void)unused;
	begin(2, programs);
	world.flatters = 6;
	while (!plan()->corrects)
		pass(MS);
	assert_int_equal(plan()->now.workers[0], 6);
	pass(1000 * MS);
	assert_true(throughput(1000 * MS) > 0.97 * best);
	assert_int_equal(plan()->searches, 1);
	assert_int_equal(plan()->n, 2);
	double remembered = coexec_memory_find(
		&world.found, (uint64_t[]){(uintptr_t)&arithmetic, (uintptr_t)&streaming}, 2, NULL);
	assert_true(remembered < 1.05 * best);
}

/* During the search clients get more done than in turns. */
static void test_searching_pays(void **unused)
{
	static const struct program *const programs[] = {&arithmetic, &streaming};

	(void)unused;
	begin(2, programs);
	while (!plan()->searching)
		pass(MS);
	double before = world.done[0] + world.done[1];
	uint64_t since = world.now;
	while (plan()->searching)
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
	struct coexec_configuration found = plan()->now;
	bool swapped = plan()->members[0] != &world.entries[0];
	begin(2, other);
	pass(500 * MS);
	assert_int_equal(plan()->searches, 0);
	assert_int_equal(plan()->n, 2);
	bool swapped_now = plan()->members[0] != &world.entries[1];
	assert_int_equal(plan()->now.workers[swapped_now], found.workers[swapped]);
}

static unsigned measured(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < plan()->search.n; i++)
		n += plan()->search.measured[i];
	return n;
}

/* A search ends early, as its clients leave. When other clients have the kernels, it goes on. */
static void test_search_goes_on(void **unused)
{
	static const struct program *const programs[] = {&arithmetic, &streaming},
					   *const other[] = {&streaming, &arithmetic};
	double best = best_of_pair(programs);

	(void)unused;
	for (unsigned i = 0; i < 3; i++) {
		begin(2, i % 2 ? other : programs);
		while (!plan()->searching)
			pass(MS);
		assert_int_equal(measured(), i);
		while (plan()->search.tries < 1)
			pass(MS);
	}
	while (plan()->searching)
		pass(MS);
	assert_int_equal(measured(), 2 + plan()->search.tries);
	assert_true(throughput(1000 * MS) > 0.97 * best);
	begin(2, programs);
	pass(500 * MS);
	assert_int_equal(plan()->searches, 0);
}

static bool knows_pair(const struct program *a, const struct program *b)
{
	return coexec_memory_find(&world.found, (uint64_t[]){(uintptr_t)a, (uintptr_t)b}, 2, NULL) >
	       0;
}

/* A partner beside which nothing was gained in some tries leaves its place to one of which nothing
 * is known. */
static void test_poor_partner_makes_room(void **unused)
{
	static const struct program *const programs[] = {&arithmetic, &poison, &streaming};

	(void)unused;
	know_alone(3, programs);
	begin(3, programs);
	while (!plan()->searching)
		pass(MS);
	assert_ptr_equal(plan()->members[1], &world.entries[1]);
	while (!knows_pair(&arithmetic, &streaming)) {
		pass(MS);
		assert_false(knows_pair(&arithmetic, &poison) || knows_pair(&streaming, &poison));
	}
}

/* Two that lose by each other take turns, as long as each other. */
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
	assert_int_equal(plan()->n, 1);
}

/* Clients take turns if their forms cost more than they gain. */
static void test_forms_that_cost_too_much(void **unused)
{
	static const struct program *const programs[] = {&taxed, &taxed};

	(void)unused;
	begin(2, programs);
	pass(2000 * MS);
	assert_true(throughput(1000 * MS) > 0.97);
	assert_int_equal(plan()->n, 1);
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
	begin(2, programs);
	pass(20000 * MS);
	assert_int_equal(plan()->searches, 1);
	assert_int_equal(plan()->n, 2);
	assert_true(throughput(3000 * MS) > 1.3);
}

/* Others wait at most for the search and as long again. */
static void test_turn_after_a_long_search(void **unused)
{
	static const struct program one = {{1, 0.1}, 3, 0, 300 * MS},
				    other = {{0.1, 1}, 4, 0, 300 * MS};
	static const struct program *const programs[] = {&one, &other, &poison};

	(void)unused;
	begin(3, programs);
	pass(60000 * MS);
	assert_true(world.most_held[2] < 13000 * MS);
}

/* However many wait, a look takes no longer. */
static void test_many_wait(void **unused)
{
	static struct run_queue_entry many[300];

	(void)unused;
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

/* A pair that did not gain is remembered, and not tried again. */
static void test_starving_partner(void **unused)
{
	static const struct program greedy = {{1, 1}, 1, 0.99, 2 * MS},
				    meek = {{1, 1}, 8, 0, 2 * MS};
	static const struct program *const programs[] = {&greedy, &meek};

	(void)unused;
	begin(2, programs);
	pass(8000 * MS);
	assert_int_equal(plan()->searches, 1);
}

/* Kernels that are known need not run alone first. */
static void test_known_kernels_join_at_once(void **unused)
{
	static const struct program *const programs[] = {&arithmetic, &streaming, &closed};

	(void)unused;
	begin(3, programs);
	pass(12000 * MS);
	assert_true(coexec_memory_find(&world.found,
				       (uint64_t[]){(uintptr_t)&arithmetic, (uintptr_t)&streaming,
						    (uintptr_t)&closed},
				       3, NULL) > 0);
	begin(3, programs);
	pass(2 * MS);
	assert_true(plan()->n >= 2);
	assert_int_equal(plan()->searches, 0);
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

/* The streaming client promises more, but gains as much beside the poison, which also waits: it is
 * left to that one. */
static void test_partners_are_shared(void **unused)
{
	static const struct program *const programs[] = {&arithmetic, &streaming, &taxed, &poison};

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
	assert_int_equal(plan()->n, 2);
	assert_ptr_equal(plan()->members[0], &world.entries[0]);
	assert_ptr_equal(plan()->members[1], &world.entries[2]);
	/* In the next turn these two run together. */
	pass(COEXEC_TURN + COEXEC_LOOK);
	assert_int_equal(plan()->n, 2);
	assert_true(world.entries[1].coexec.together && world.entries[3].coexec.together);
}

/* Three to six: all get on, and none waits for long. */
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

static void make_program(struct program *out)
{
	*out = (struct program){{uniform(), uniform()},
				1 + 8 * uniform(),
				uniform() < 0.2 ? uniform() * 0.5 : 0,
				(uint64_t)((0.25 + uniform() * 8) * (double)MS),
				uniform() < 0.2};
}

/* A client may report anything. */
static void lie(struct coexec_client *client)
{
	client->executed = (uint64_t)(uniform() * 1e19);
	client->launched = (uint64_t)(uniform() * 1e19);
	client->kernel.number = (uint64_t)(uniform() * 4);
	for (unsigned r = 0; r < WEIR_SM_RESOURCES; r++)
		client->kernel.parts[r] = (uint32_t)(uniform() * uniform() * 4e9);
}

/* Clients with work, of which one may lose its own for a moment. */
static void run_random(bool lies)
{
	for (unsigned step = 0; step < 400; step++) {
		struct run_queue_entry *entry = &world.entries[(unsigned)(uniform() * world.n)];
		pass(25 * MS);
		if (uniform() < 0.2) {
			run_queues_work(&world.queues, entry, 0, 0, world.now);
			run_queues_decide(&world.queues, world.now);
		}
		if (lies && uniform() < 0.3) {
			lie(&world.entries[0].coexec);
			run_queues_decide(&world.queues, world.now);
		}
	}
}

/* No honest client is held for ever, and nothing overflows, whatever client 0 reports. */
static void test_random(void **unused)
{
	static struct program made[CLIENTS];
	const struct program *programs[CLIENTS];

	for (unsigned run = 0; run < 30; run++) {
		bool lies = run % 2;
		for (unsigned i = 0; i < CLIENTS; i++) {
			make_program(&made[i]);
			programs[i] = &made[i];
		}
		world_set_up(unused);
		begin(2 + run % (CLIENTS - 1), programs);
		run_random(lies);
		for (unsigned i = 0; i < COEXEC_SETS; i++)
			assert_true(world.found.sets[i].speed_up <= 2 * COEXEC_MOST);
		for (unsigned i = lies; i < world.n; i++)
			assert_true(world.most_held[i] < 8000 * MS);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		WORLD_TEST(test_pair_finds_the_best),
		WORLD_TEST(test_flattered_configuration),
		WORLD_TEST(test_searching_pays),
		WORLD_TEST(test_pair_is_remembered),
		WORLD_TEST(test_search_goes_on),
		WORLD_TEST(test_poor_partner_makes_room),
		WORLD_TEST(test_losers_take_turns),
		WORLD_TEST(test_forms_that_cost_too_much),
		WORLD_TEST(test_long_launches),
		WORLD_TEST(test_search_that_takes_too_long),
		WORLD_TEST(test_turn_after_a_long_search),
		WORLD_TEST(test_many_wait),
		WORLD_TEST(test_starving_partner),
		WORLD_TEST(test_known_kernels_join_at_once),
		WORLD_TEST(test_unlike_kernels_pair),
		WORLD_TEST(test_partners_are_shared),
		WORLD_TEST(test_several),
		WORLD_TEST(test_random),
	};
	const char *seed = getenv("SEED");

	state = seed ? strtoull(seed, NULL, 10) : 20261126;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
