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

/* A sample of the period that ended @ms after WALL, asked for @before ms earlier. */
static struct process_sample sample_after(int64_t before, int64_t ms, unsigned percent)
{
	uint64_t end = (uint64_t)((int64_t)WALL + ms * 1000);

	return process_periods_take(&periods, 7, end - (uint64_t)(before * 1000), end, percent);
}

static struct process_sample sample(int64_t ms, unsigned percent)
{
	return sample_after(20, ms, percent);
}

/* The same when periods of 200 ms are known. */
static struct process_sample known(int64_t ms, unsigned percent)
{
	sample(0, 1);
	sample(200, 1);
	return sample(ms, percent);
}

static bool shows(struct process_sample taken, int64_t since_ms)
{
	return process_use_shows(&taken, NOW + (uint64_t)since_ms * MS);
}

static void test_period_is_learnt(void **state)
{
	(void)state;
	/* The longest that there is, after what was asked for. */
	assert_int_equal(sample(-600, 50).begin, NOW - 600 * MS - 1020 * MS);
	struct process_sample second = sample(-400, 50);
	assert_int_equal(second.pid, 7);
	assert_int_equal(second.begin, NOW - 600 * MS);
	assert_int_equal(second.end, NOW - 400 * MS);
	/* Another process in the same period. */
	assert_int_equal(sample(-400, 50).begin, NOW - 600 * MS);
	/* Nobody ran for a while. */
	assert_int_equal(sample(1000, 50).begin, NOW + 800 * MS);
}

/* Nobody ran for long in between. */
static void test_no_period_is_that_long(void **state)
{
	(void)state;
	sample(0, 50);
	assert_int_equal(sample(10400, 50).begin, NOW + 10400 * MS - 1020 * MS);
	assert_true(shows(sample(20800, 99), 20800 - 66));
}

/* Two ends are not exactly a period apart. */
static void test_several_periods(void **state)
{
	(void)state;
	known(400, 50);
	assert_int_equal(sample_after(200, 600, 50).begin, NOW + 400 * MS);
	assert_int_equal(sample_after(205, 600, 50).begin, NOW + 400 * MS);
	assert_int_equal(sample_after(220, 600, 50).begin, NOW + 200 * MS);
	assert_int_equal(sample_after(390, 600, 50).begin, NOW + 200 * MS);
	assert_int_equal(sample_after(900, 1200, 50).begin, NOW + 200 * MS);
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

static void test_whole_period(void **state)
{
	(void)state;
	assert_true(shows(known(400, 99), 200));
	assert_true(shows(known(400, 50), 200));
	assert_false(shows(known(400, 49), 200));
	assert_false(shows(known(400, 99), 400));
	assert_false(shows(known(400, 4000000000u), 200));
}

/* Seen on an H100: a client that was stopped 64 ms before the end of a period ended its stop. Its
 * first sample is told from one that obeys whether the period is known or not. */
static void test_stopped_amid_a_period(void **state)
{
	(void)state;
	assert_true(shows(sample(64, 100), 0));
	known(264, 1);
	assert_true(shows(sample(464, 100), 400));
	assert_true(shows(sample(464, 96), 400));
	/* It ran for half of the time behind the stop, and for less. */
	assert_true(shows(sample(464, 84), 400));
	assert_false(shows(sample(464, 83), 400));
}

/* An obedient one may have run all the time until its stop. */
static void test_obedient(void **state)
{
	(void)state;
	for (int64_t after = 1; after <= 200; after++) {
		/* Rounded up; and as if it had run for 5 ms until the stop had an effect. */
		unsigned exact = (unsigned)((200 - after + 1) / 2);
		unsigned late = (unsigned)smaller(100, (unsigned)((200 - after + 5 + 1) / 2));
		known(400, 1);
		assert_false(shows(sample(600, exact), 600 - after));
		assert_false(shows(sample(600, late), 600 - after));
		/* The driver gives the mean of several periods, which it ran through. */
		unsigned mean = (200 + exact + 1) / 3;
		assert_false(shows(sample_after(500, 600, mean), 600 - after));
	}
}

/* The same while nobody knows how long a period is. */
static void test_obedient_in_the_dark(void **state)
{
	(void)state;
	for (int64_t period = 167; period <= 1000; period += 49) {
		for (int64_t after = 1; after <= period; after++) {
			int64_t ran = smaller((uint64_t)(period - after + 5), (uint64_t)period);
			unsigned percent = (unsigned)((100 * ran + period - 1) / period);
			set_up(NULL);
			assert_false(shows(sample(period, percent), period - after));
		}
	}
}

/* One that runs through is seen if its period ends 12 ms after the stop, else with the next. */
static void test_soonest(void **state)
{
	(void)state;
	known(400, 1);
	assert_false(shows(sample(600, 100), 600 - 11));
	assert_true(shows(sample(600, 100), 600 - 12));
	assert_true(shows(sample(800, 100), 600 - 11));
}

static void test_calls_come_when_samples_do(void **state)
{
	(void)state;
	assert_int_equal(process_periods_due(&periods, NOW), NOW + 20 * MS);
	known(400, 1);
	assert_int_equal(process_periods_due(&periods, NOW + 420 * MS), NOW + 602 * MS);
	/* They are late. */
	assert_int_equal(process_periods_due(&periods, NOW + 604 * MS), NOW + 609 * MS);
	assert_int_equal(process_periods_due(&periods, NOW + 614 * MS), NOW + 619 * MS);
	assert_int_equal(process_periods_due(&periods, NOW + 615 * MS), NOW + 635 * MS);
	assert_int_equal(process_periods_due(&periods, NOW + 790 * MS), NOW + 802 * MS);
	/* Nobody has run for long: it is not known well enough any more. */
	assert_int_equal(process_periods_due(&periods, NOW + 1401 * MS), NOW + 1421 * MS);
}

/* Somebody runs in each second period only: one may end at any time between. */
static void test_distance_of_two_periods(void **state)
{
	(void)state;
	sample(0, 1);
	sample(400, 1);
	assert_int_equal(process_periods_due(&periods, NOW + 420 * MS), NOW + 440 * MS);
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
		cmocka_unit_test_setup(test_no_period_is_that_long, set_up),
		cmocka_unit_test_setup(test_several_periods, set_up),
		cmocka_unit_test_setup(test_whole_period, set_up),
		cmocka_unit_test_setup(test_stopped_amid_a_period, set_up),
		cmocka_unit_test_setup(test_obedient, set_up),
		cmocka_unit_test_setup(test_obedient_in_the_dark, set_up),
		cmocka_unit_test_setup(test_soonest, set_up),
		cmocka_unit_test_setup(test_calls_come_when_samples_do, set_up),
		cmocka_unit_test_setup(test_distance_of_two_periods, set_up),
		cmocka_unit_test(test_no_library),
		cmocka_unit_test(test_nobody_to_ask),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
