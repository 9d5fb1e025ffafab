/* Durations and latency objectives: their syntax, limits, counts and verdicts. */
#include "weir/units.h"
#include "policy/objective.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define MS 1000000ull

static const struct {
	const char *text;
	uint64_t ns;
} durations[] = {
	{"0ns", 0},           {"250us", 250000},     {"1.5ms", 1500000},
	{"2s", 2000 * MS},    {"0.0000005ms", 0},    {"10m", 600000 * MS},
	{"1h", 3600000 * MS}, {"00001s", 1000 * MS}, {"8784h", DURATION_MAX},
};

static const char *const no_durations[] = {
	"",      "2",      "ms",      ".5ms", "1.ms",
	"-1ms",  "+1ms",   " 1ms",    "1 ms", "1ms ",
	"1Ms",   "0x1ms",  "1e3ms",   "1d",   "99999999999999999999999ns",
	"8785h", "1..5ms", "1.5.5ms", "inf",  "nan",
};

static void test_durations(void **state)
{
	uint64_t ns;

	(void)state;
	for (size_t i = 0; i < sizeof(durations) / sizeof(durations[0]); i++) {
		assert_true(duration_parse(durations[i].text, 0, DURATION_MAX, &ns));
		assert_int_equal(ns, durations[i].ns);
	}
	for (size_t i = 0; i < sizeof(no_durations) / sizeof(no_durations[0]); i++)
		assert_false(duration_parse(no_durations[i], 0, DURATION_MAX, &ns));
}

static void test_limits(void **state)
{
	uint64_t ns;

	(void)state;
	assert_true(objective_parse("100us", &ns));
	assert_true(objective_parse("10s", &ns));
	assert_int_equal(ns, 10000 * MS);
	assert_false(objective_parse("99us", &ns));
	assert_false(objective_parse("11s", &ns));
	assert_false(objective_parse("fast", &ns));
	assert_false(objective_parse("", &ns));
}

/* A libweir that counts starts is believed. Without such counts the upper bound of late starts
 * counts. */
static void test_counting(void **state)
{
	struct objective objective = {0};
	struct account before = {0}, after = {0};

	(void)state;
	after.total[ACCOUNT_LAUNCHES] = 1000;
	after.total[ACCOUNT_WAITS] = 10;
	after.total[ACCOUNT_WAIT_TIME] = 7 * MS;
	objective_count(&objective, 2 * MS, &before, &after);
	assert_int_equal(objective.starts, 1000);
	assert_int_equal(objective.late, 3);
	before = after;
	after.total[ACCOUNT_WAITS] = 12;
	after.total[ACCOUNT_WAIT_TIME] = 700 * MS;
	objective_count(&objective, 2 * MS, &before, &after);
	assert_int_equal(objective.late, 5);
	before = after;
	after.total[ACCOUNT_WAITS] = 1000;
	after.total[ACCOUNT_STARTS] = 40;
	after.total[ACCOUNT_STARTS_LATE] = 1;
	objective_count(&objective, 2 * MS, &before, &after);
	assert_int_equal(objective.starts, 1040);
	assert_int_equal(objective.late, 6);
}

static void test_verdicts(void **state)
{
	struct objective objective = {.starts = 999, .late = 999};

	(void)state;
	assert_false(objective_judge(&objective));
	objective.starts = 1000;
	assert_true(objective_judge(&objective));
	assert_true(objective.missed);
	objective.starts += 2000;
	objective.late += 2;
	assert_true(objective_judge(&objective));
	assert_false(objective.missed);
	objective.starts += 2000;
	objective.late += 1;
	assert_false(objective_judge(&objective));
	objective.starts += 1000;
	objective.late += 2;
	assert_true(objective_judge(&objective));
	assert_true(objective.missed);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_durations),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_counting),
		cmocka_unit_test(test_verdicts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
