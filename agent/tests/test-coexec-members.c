/* Under the policy coexec: what a member's reports count for, and when it is a member no more. */
#include "coexec-world.h"

#include <math.h>

#include "weir/base.h"

/* A client is charged by the clock: one that reports nothing gains no time by it. */
static void test_silent_client(void **unused)
{
	static const struct program silent = {{0.6, 0.6}, 3, 0.6, 2 * MS, .silent = true};
	static const struct program *const programs[] = {&silent, &poison};

	(void)unused;
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

/* When a client's kernel changes, its speed alone is measured again. */
static void test_other_kernel(void **unused)
{
	static const struct program idling = {{1, 0.1}, 3, 0, 2 * MS, .gaps = 0.5};
	static const struct program *const programs[] = {&arithmetic, &streaming};

	(void)unused;
	begin(2, programs);
	pass(3000 * MS);
	assert_true(fabs(world.entries[0].coexec.alone - 1) < 0.05);
	world.programs[0] = &idling;
	world.entries[0].coexec.kernel.number = (uintptr_t)&idling;
	pass(4000 * MS);
	assert_true(fabs(world.entries[0].coexec.alone - 0.5) < 0.05);
}

/* A client whose kernel changes all the time is never known. The others do not wait for it. */
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
		assert_int_equal(plan()->n, 2);
		paused += !world.entries[1].active;
	}
	assert_in_range(paused, 20, 60);
}

/* Time in which higher levels run does not count: speeds are those without them. */
static void test_below_others(void **unused)
{
	static const struct program *const programs[] = {&poison, &poison};

	(void)unused;
	begin(2, programs);
	for (unsigned i = 0; i < 400; i++) {
		world.blocked = i % 2;
		pass(5 * MS);
	}
	world.blocked = false;
	for (unsigned i = 0; i < 2; i++)
		assert_true(world.entries[i].coexec.alone > 0.9);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		WORLD_TEST(test_silent_client), WORLD_TEST(test_history),
		WORLD_TEST(test_other_kernel),  WORLD_TEST(test_changing_kernels),
		WORLD_TEST(test_one_leaves),    WORLD_TEST(test_one_pauses),
		WORLD_TEST(test_below_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
