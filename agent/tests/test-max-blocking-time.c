/* For how long kernels may keep higher-level clients waiting, on one GPU. */
#include "scheduler/gpu/max-blocking-time.h"

#include "gpu-fixture.h"

#include "weir/base.h"

#define US 1000u
#define MS 1000000ull

static uint64_t now;

/* A client that has had work, and reports how long its work takes. */
static void come(unsigned i, uint8_t level, uint64_t busy_period)
{
	clients[i].level = level;
	statuses[i].launches = 1;
	statuses[i].busy_period = busy_period;
	gpu_add(&gpu, &clients[i], WEIR_BIT_NONE);
	now = loop_now(); /* after the first look, which is by that clock */
}

static uint32_t told(unsigned i)
{
	gpu_tell_blocking(&gpu, now);
	return controls[i].max_blocking_time;
}

static void test_the_shortest_busy_period_above_counts(void **state)
{
	(void)state;
	come(0, 0, 3 * MS);
	assert_int_equal(told(0), 0);
	come(1, 2, 10 * MS);
	assert_int_equal(told(0), 500 * US);
	come(2, 1, 5 * MS);
	come(3, 2, 20 * MS);
	assert_int_equal(told(0), 250 * US);
	assert_int_equal(told(1), 0);
	assert_int_equal(told(2), 500 * US);
	assert_int_equal(told(3), 0);
	gpu_remove(&gpu, &clients[1], false);
	assert_int_equal(controls[2].max_blocking_time, 1000 * US);
	assert_int_equal(controls[0].max_blocking_time, 250 * US);
}

static void test_levels_change(void **state)
{
	(void)state;
	come(0, 0, 40 * MS);
	come(1, 1, 10 * MS);
	assert_int_equal(controls[0].max_blocking_time, 500 * US);
	gpu_set_level(&gpu, &clients[0], 1);
	assert_int_equal(controls[0].max_blocking_time, 0);
	gpu_set_level(&gpu, &clients[0], 2);
	assert_int_equal(controls[0].max_blocking_time, 0);
	assert_int_equal(controls[1].max_blocking_time, 1000 * US);
}

static void test_an_unreported_busy_period_is_short(void **state)
{
	(void)state;
	come(0, 0, 0);
	come(1, 1, 10 * MS);
	come(2, 1, 0);
	assert_int_equal(told(0), 0);
}

static void test_idle_clients_are_ignored(void **state)
{
	(void)state;
	come(0, 0, 0);
	come(1, 1, 10 * MS);
	come(2, 1, 5 * MS);
	come(3, 1, 0);
	statuses[3].launches = 0; /* it never had any */
	clients[3].blocking = (struct max_blocking_client){0};
	assert_int_equal(told(0), 250 * US);
	now += MAX_BLOCKING_TIME_IDLE_NS / 2;
	statuses[1].launches++;
	assert_int_equal(told(0), 250 * US);
	now += MAX_BLOCKING_TIME_IDLE_NS / 2 + MS;
	assert_int_equal(told(0), 500 * US);
	/* A launch that is still running. */
	statuses[1].outstanding = 1;
	now += MAX_BLOCKING_TIME_IDLE_NS;
	assert_int_equal(told(0), 500 * US);
	statuses[2].launches++;
	assert_int_equal(told(0), 250 * US);
	statuses[1].outstanding = 0;
	now += MAX_BLOCKING_TIME_IDLE_NS + MS;
	assert_int_equal(told(0), 0);
}

static void test_garbage(void **state)
{
	(void)state;
	come(0, 0, UINT64_MAX);
	come(1, 3, UINT64_MAX);
	assert_int_equal(told(0), MAX_BLOCKING_TIME_MAX);
	statuses[1].busy_period = 19;
	assert_int_equal(told(0), 0);
	controls[0].max_blocking_time = UINT32_MAX; /* a client can write its control page */
	assert_int_equal(told(0), 0);
}

static void test_objectives_are_kept(void **state)
{
	(void)state;
	come(0, 0, 0);
	come(1, 1, 10 * MS);
	clients[1].entry.slo = 600 * US;
	assert_int_equal(told(0), 300 * US);
	clients[1].entry.slo = 2 * MS;
	assert_int_equal(told(0), 500 * US);
}

/* Under MPS a higher client waits for both. */
static void test_concurrent_clients_share_it(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		come(i, i == 2, 10 * MS);
		statuses[i].flags = WEIR_STATUS_CONCURRENT;
	}
	assert_int_equal(told(0), 250 * US);
	assert_int_equal(told(1), 250 * US);
	statuses[1].flags = 0;
	assert_int_equal(told(0), 500 * US);
	statuses[1].flags = WEIR_STATUS_CONCURRENT;
	now += MAX_BLOCKING_TIME_IDLE_NS + MS;
	statuses[0].launches++;
	statuses[2].launches++;
	assert_int_equal(told(0), 500 * US);
}

static void test_looks_where_there_are_levels(void **state)
{
	(void)state;
	come(0, 0, 0);
	come(1, 0, 10 * MS);
	assert_int_equal(loop_step(&loop, 3 * MAX_BLOCKING_TIME_LOOK_NS / MS), 0);
	clients[1].takes_bit = true;
	gpu_set_level(&gpu, &clients[1], 1);
	statuses[1].busy_period = 5 * MS;
	assert_int_equal(loop_step(&loop, 3000), 1);
	assert_int_equal(controls[0].max_blocking_time, 250 * US);
	statuses[1].busy_period = 10 * MS;
	assert_int_equal(loop_step(&loop, 3000), 1);
	assert_int_equal(controls[0].max_blocking_time, 500 * US);
	gpu_remove(&gpu, &clients[1], true);
	assert_int_equal(controls[0].max_blocking_time, 0);
	assert_int_equal(loop_step(&loop, 3 * MAX_BLOCKING_TIME_LOOK_NS / MS), 0);
}

static void test_clients_may_come_back(void **state)
{
	(void)state;
	come(0, 0, 0);
	come(1, 1, 10 * MS);
	gpu.reserved = 1ull << 40;
	assert_int_equal(told(0), 0);
	gpu_sweep(&gpu, gpu.reserved_until + GPU_GRACE_NS);
	assert_int_equal(controls[0].max_blocking_time, 500 * US);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		GPU_TEST(test_the_shortest_busy_period_above_counts),
		GPU_TEST(test_levels_change),
		GPU_TEST(test_an_unreported_busy_period_is_short),
		GPU_TEST(test_idle_clients_are_ignored),
		GPU_TEST(test_garbage),
		GPU_TEST(test_objectives_are_kept),
		GPU_TEST(test_concurrent_clients_share_it),
		GPU_TEST(test_looks_where_there_are_levels),
		GPU_TEST(test_clients_may_come_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
