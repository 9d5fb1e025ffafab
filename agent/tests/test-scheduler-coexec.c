/* The policy coexec on the scheduler's clients: what they report, and what they are told. */
#include "scheduler-world.h"

#include "scheduler/workers.h"

#include <string.h>

#define FIT 8u

/* Two kernels that get on almost as alone with half of the workers. */
static double rate_of(unsigned i, bool together)
{
	uint32_t workers = world.control[i].workers;

	if (world.control[i].hold)
		return 0;
	if (!together)
		return 1;
	return workers < 3 ? 0.3 : workers <= 5 ? 0.9 : 0.5;
}

static void report_kernel(unsigned i, uint64_t number)
{
	world.status[i].worker_kernel = number;
	for (unsigned r = 0; r < WEIR_SM_RESOURCES; r++)
		world.status[i].worker_parts[r] = WEIR_SM_PARTS / FIT;
	world.status[i].flags = WEIR_STATUS_CONCURRENT;
}

/* Each reports every launch of a millisecond when it is done. */
static void run_for(uint64_t ns)
{
	static double done[WORLD_CLIENTS];

	for (uint64_t passed = 0; passed < ns; passed += MS / 2) {
		bool together = !world.control[0].hold && !world.control[1].hold;
		for (unsigned i = 0; i < 2; i++) {
			done[i] += rate_of(i, together) * (double)MS / 2;
			world.status[i].executed = (uint64_t)done[i] / MS * MS;
			world.status[i].gpu_time = world.status[i].executed + 2 * MS;
			world.status[i].outstanding = 2;
			world.status[i].remaining = 2 * MS;
		}
		look_after(MS / 2);
	}
}

static void begin(void)
{
	scheduler_set_policy(&world.scheduler, policy_find("coexec"));
	for (unsigned i = 0; i < 2; i++) {
		report_kernel(i, 100 + i);
		come(i, 0, 50);
	}
}

static void test_workers_are_told(void **state)
{
	(void)state;
	begin();
	run_for(2000 * MS);
	assert_false(world.control[0].hold || world.control[1].hold);
	for (unsigned i = 0; i < 2; i++)
		assert_in_range(world.control[i].workers, 3, 5);
	/* Short launches have no priority over others: those with bounded workers have. */
	assert_false(world.control[0].flags & WEIR_CONTROL_AHEAD);
	assert_true(world.control[0].flags & WEIR_CONTROL_SLICED);
	assert_true(world.control[0].flags & world.control[1].flags & WEIR_CONTROL_MEASURED);
	/* Alone it is not bounded. */
	go(1);
	assert_int_equal(world.control[0].workers, 0);
	assert_false(world.control[0].flags & WEIR_CONTROL_MEASURED);
}

static void test_another_policy_bounds_nobody(void **state)
{
	(void)state;
	begin();
	run_for(2000 * MS);
	assert_true(world.control[0].workers);
	scheduler_set_policy(&world.scheduler, policy_find("levels"));
	world.now = loop_now();
	look_after(MS);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(world.control[i].workers, 0);
		assert_false(world.control[i].flags & WEIR_CONTROL_MEASURED);
	}
}

/* The speed alone is measured as exactly as that beside others. */
static void test_alone_is_measured(void **state)
{
	(void)state;
	begin();
	run_for(5 * MS);
	assert_int_equal(world.control[0].hold + world.control[1].hold, 1);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(!(world.control[i].flags & WEIR_CONTROL_MEASURED),
				 world.control[i].hold != 0);
}

/* Kernels that run one after the other in time slices. */
static void test_turns_without_mps(void **state)
{
	unsigned held[2] = {0};

	(void)state;
	begin();
	world.status[0].flags = world.status[1].flags = 0;
	for (unsigned i = 0; i < 200; i++) {
		run_for(MS);
		assert_int_equal(world.control[0].hold + world.control[1].hold, 1);
		held[0] += world.control[0].hold;
		held[1] += world.control[1].hold;
		assert_int_equal(world.control[0].workers, 0);
	}
	assert_true(held[0] > 50 && held[1] > 50);
}

static void test_by_hand(void **state)
{
	(void)state;
	begin();
	run_for(500 * MS);
	workers_set(&world.clients[0], 7);
	run_for(100 * MS);
	assert_int_equal(world.control[0].workers, 7);
	workers_set(&world.clients[0], UINT32_MAX);
	assert_int_equal(world.control[0].workers, WORKERS_MOST);
	assert_int_equal(workers_fit(&world.clients[0]), FIT);
	world.status[0].worker_parts[2] = UINT32_MAX;
	assert_int_equal(workers_fit(&world.clients[0]), 1);
	memset((void *)world.status[0].worker_parts, 0, sizeof(world.status[0].worker_parts));
	assert_int_equal(workers_fit(&world.clients[0]), 0);
}

static uint64_t number_of_kernel(unsigned i, uint64_t told)
{
	world.status[i].worker_kernel = told;
	workers_report(&world.clients[i]);
	return world.clients[i].entry.coexec.kernel.number;
}

/* A client cannot name the kernels of another namespace, whatever it reports. */
static void test_kernels_belong_to_a_namespace(void **state)
{
	uint64_t halves[2][2];

	(void)state;
	begin();
	snprintf(world.tenants[0].namespace_, sizeof(world.tenants[0].namespace_), "one");
	snprintf(world.tenants[1].namespace_, sizeof(world.tenants[1].namespace_), "two");
	for (unsigned i = 0; i < 2; i++)
		for (unsigned k = 0; k < 2; k++)
			halves[i][k] = number_of_kernel(i, 1 + k * 0x123456789abcdef0) >> 32;
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(halves[i][0], halves[i][1]);
	assert_int_not_equal(halves[0][0], halves[1][0]);
	assert_int_not_equal(number_of_kernel(0, 1), number_of_kernel(0, 2));
	assert_int_equal(number_of_kernel(0, 7), number_of_kernel(0, 7));
}

/* The level's clock stands while higher levels have work. */
static void test_below_others(void **state)
{
	const uint64_t *blocked = &world.gpu.queues.levels[0].blocked;

	(void)state;
	begin();
	run_for(10 * MS);
	assert_int_equal(*blocked, 0);
	world.demand[0].word = 1;
	run_for(10 * MS);
	world.demand[0].word = 0;
	run_for(10 * MS);
	assert_in_range(*blocked, 8 * MS, 12 * MS);
}

/* A client that says it has done what nobody can do harms itself only. */
static void test_lies(void **state)
{
	(void)state;
	begin();
	run_for(1000 * MS);
	for (unsigned i = 0; i < 1000; i++) {
		uint64_t before = world.status[1].executed;
		unsigned held = 0;
		for (unsigned k = 0; k < 4; k++) {
			run_for(MS);
			world.status[0].executed = i % 2 ? UINT64_MAX - i : i;
			world.status[0].gpu_time = i % 5 ? UINT64_MAX - i % 7 : i % 7;
			world.status[0].worker_kernel = i % 3;
			world.status[0].worker_parts[i % 4] = i * 77777777u;
			held += world.control[1].hold;
		}
		if (i % 100 == 99 && held == 0)
			assert_true(world.status[1].executed > before);
	}
	uint64_t before = world.status[1].executed;
	run_for(5000 * MS);
	assert_true(world.status[1].executed - before > 1000 * MS);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		WORLD_TEST(test_workers_are_told),
		WORLD_TEST(test_another_policy_bounds_nobody),
		WORLD_TEST(test_alone_is_measured),
		WORLD_TEST(test_turns_without_mps),
		WORLD_TEST(test_by_hand),
		WORLD_TEST(test_below_others),
		WORLD_TEST(test_kernels_belong_to_a_namespace),
		WORLD_TEST(test_lies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
