/* What follows from the driver's samples of which processes ran; and the thread that reads them, on
 * a driver without them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "hardware/process-use.h"

#include "weir/base.h"

#define MS   NS_PER_MS
#define WALL UINT64_C(1795690000000000) /* us: a multiple of 200 ms */
#define NOW  (1000 * NS_PER_S)          /* at that time */

static struct process_periods periods;

static int set_up(void **state)
{
	(void)state;
	periods = (struct process_periods){0};
	assert_true(process_periods_begin(&periods, WALL * NS_PER_US, NOW));
	return 0;
}

/* A sample of the period that ended @ms after WALL. */
static struct process_sample sample(int64_t ms, unsigned percent)
{
	return process_periods_take(&periods, 7, (uint64_t)((int64_t)WALL + ms * 1000), percent);
}

static void test_period_is_learnt(void **state)
{
	(void)state;
	assert_int_equal(sample(-600, 50).begin, 0);
	struct process_sample second = sample(-400, 50);
	assert_int_equal(second.pid, 7);
	assert_int_equal(second.begin, NOW - 600 * MS);
	assert_int_equal(second.end, NOW - 400 * MS);
	/* Another process in the same period. */
	assert_int_equal(sample(-400, 50).begin, NOW - 600 * MS);
	/* Nobody ran for a while. */
	assert_int_equal(sample(1000, 50).begin, NOW + 800 * MS);
}

/* Too long a period is no harm: it may only hide something. */
static void test_period_gets_shorter(void **state)
{
	(void)state;
	sample(-1000, 50);
	assert_int_equal(sample(-600, 50).begin, NOW - 1000 * MS);
	assert_int_equal(sample(-400, 50).begin, NOW - 600 * MS);
	/* None is as short as that. */
	assert_int_equal(sample(-390, 50).begin, NOW - 590 * MS);
}

static void test_clock_is_set(void **state)
{
	(void)state;
	sample(-200, 50);
	sample(0, 50);
	assert_true(process_periods_begin(&periods, WALL * NS_PER_US + 20 * MS, NOW + 21 * MS));
	assert_false(process_periods_begin(&periods, WALL * NS_PER_US + 140 * MS, NOW + 40 * MS));
	/* No distance across that is one. */
	assert_int_equal(sample(120, 50).begin, NOW - 180 * MS);
	assert_true(process_periods_begin(&periods, WALL * NS_PER_US + 160 * MS, NOW + 60 * MS));
}

static void test_period_not_known(void **state)
{
	(void)state;
	struct process_sample first = sample(200, 99);
	assert_false(process_use_shows(&first, NOW));
}

static void test_whole_period(void **state)
{
	(void)state;
	sample(0, 99);
	struct process_sample all = sample(200, 99), some = sample(400, 50),
			      hardly = sample(600, 49);
	assert_true(process_use_shows(&all, NOW));
	assert_true(process_use_shows(&some, NOW));
	assert_false(process_use_shows(&hardly, NOW));
	assert_false(process_use_shows(&all, NOW + 200 * MS));
	struct process_sample wrong = sample(800, 4000000000u);
	assert_false(process_use_shows(&wrong, NOW));
}

/* It was stopped amid the period, and may have run until then. */
static void test_part_of_a_period(void **state)
{
	(void)state;
	sample(0, 99);
	struct process_sample all = sample(200, 99);
	assert_false(process_use_shows(&all, NOW + 1 * MS));
	assert_false(process_use_shows(&all, NOW + 190 * MS));
}

static void test_calls_come_when_samples_do(void **state)
{
	(void)state;
	assert_int_equal(process_periods_due(&periods, NOW), NOW + 100 * MS);
	sample(-200, 50);
	sample(0, 50);
	assert_int_equal(process_periods_due(&periods, NOW + 20 * MS), NOW + 120 * MS);
	assert_int_equal(process_periods_due(&periods, NOW + 190 * MS), NOW + 202 * MS);
	/* They are late. */
	assert_int_equal(process_periods_due(&periods, NOW + 204 * MS), NOW + 209 * MS);
	assert_int_equal(process_periods_due(&periods, NOW + 320 * MS), NOW + 402 * MS);
}

/* It says so once, and is never asked again. */
static void test_no_library(void **state)
{
	struct process_use use = {.nvml = "/nowhere/libnvidia-ml.so.1", .id = "GPU-of-the-test"};
	struct process_sample found;

	(void)state;
	for (int i = 0; i < 3; i++) {
		process_use_ask(&use, monotonic_now());
		assert_true(use.began);
		assert_false(process_use_find(&use, 7, &found));
	}
	process_use_deinit(&use);
	assert_false(use.began);
}

static void test_nobody_to_ask(void **state)
{
	struct process_use use = {0};

	(void)state;
	process_use_ask(&use, monotonic_now());
	assert_false(use.began);
	process_use_deinit(&use);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_period_is_learnt, set_up),
		cmocka_unit_test_setup(test_period_gets_shorter, set_up),
		cmocka_unit_test_setup(test_clock_is_set, set_up),
		cmocka_unit_test_setup(test_period_not_known, set_up),
		cmocka_unit_test_setup(test_whole_period, set_up),
		cmocka_unit_test_setup(test_part_of_a_period, set_up),
		cmocka_unit_test_setup(test_calls_come_when_samples_do, set_up),
		cmocka_unit_test(test_no_library),
		cmocka_unit_test(test_nobody_to_ask),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
