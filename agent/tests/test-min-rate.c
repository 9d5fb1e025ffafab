/* Minimum rates: their syntax, what is said of them, and hostile numbers. */
#include "policy/min-rate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "weir/base.h"

#define MS     1000000ull
#define SECOND (1000 * MS)

static const struct {
	const char *text;
	uint32_t rate;
	const char *again;
} rates[] = {
	{"1", 1000, "1.0"},   {"1.0", 1000, "1.0"}, {"1.000", 1000, "1.0"}, {"0.8", 800, "0.8"},
	{"0.80", 800, "0.8"}, {"0.05", 50, "0.05"}, {"0.001", 1, "0.001"},  {"0.999", 999, "0.999"},
};

static const char *const no_rates[] = {
	"",     "0",    "0.0",    "0.000",  "1.001", "1.1",  "2",
	"-0.5", "+0.5", " 0.5",   "0.5 ",   "0.5f",  "0,5",  ".5",
	"0.",   "1.",   "00.5",   "0.8000", "80%",   "1e-1", "0x0.8",
	"0.-5", "0..5", "0.0001", "nan",    "inf",   "11",   "0.88888888888888888888...",
};

static void parses(void **state)
{
	char text[MIN_RATE_TEXT_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		uint32_t rate = 7;
		assert_true(min_rate_parse(rates[i].text, &rate));
		assert_int_equal(rate, rates[i].rate);
		assert_string_equal(min_rate_format(rate, text), rates[i].again);
	}
	for (size_t i = 0; i < sizeof(no_rates) / sizeof(no_rates[0]); i++) {
		uint32_t rate = 7;
		assert_false(min_rate_parse(no_rates[i], &rate));
		assert_int_equal(rate, 7);
	}
	assert_string_equal(min_rate_format(UINT64_MAX, text), "9.0");
}

static void survives_hostile_numbers(void **state)
{
	struct min_rate rate = {0};
	struct min_rate_use use = {.time = UINT64_MAX, .work = UINT64_MAX, .alone = true};

	(void)state;
	assert_false(min_rate_charge(&rate, &use)); /* it has none */
	assert_int_equal(rate.time, 0);
	min_rate_set(&rate, 1);
	for (unsigned i = 0; i < 1000; i++) {
		use.alone = i % 3;
		use.work = i % 2 ? UINT64_MAX : 0;
		min_rate_charge(&rate, &use);
		assert_in_range(rate.credit + 20 * (int64_t)SECOND, 0, 40 * SECOND);
	}
	/* A nanosecond of work in hours, and then a lot. */
	rate = (struct min_rate){0};
	min_rate_set(&rate, 999);
	for (unsigned i = 0; i < 1000; i++)
		min_rate_charge(&rate, &(struct min_rate_use){
					       .time = SECOND, .work = i == 900, .alone = true});
	use = (struct min_rate_use){.time = MS, .work = UINT64_MAX, .alone = false};
	for (unsigned i = 0; i < 1000; i++)
		min_rate_charge(&rate, &use);
	assert_in_range(rate.credit + 20 * (int64_t)SECOND, 0, 40 * SECOND);
	assert_true(min_rate_next(&rate) > 0);
}

/* It is missed when others do not leave, and says why. */
static void says_what_hinders(void **state)
{
	struct min_rate rate = {0};
	bool news = false;

	(void)state;
	min_rate_set(&rate, 800);
	for (unsigned i = 0; i < 100; i++) /* alone, until its speed is known */
		news |= min_rate_charge(
			&rate, &(struct min_rate_use){.time = MS, .work = MS, .alone = true});
	for (unsigned i = 0; i < 3000; i++)
		news |= min_rate_charge(
			&rate, &(struct min_rate_use){
				       .time = MS, .work = MS / 2, .hindered = MIN_RATE_CROWDED});
	assert_true(news && rate.missed && !rate.ahead);
	assert_int_equal(rate.hindered, MIN_RATE_CROWDED);
	assert_in_range(rate.attained, 495, 505);
	assert_non_null(strstr(min_rate_why(rate.hindered), "minimum rates"));
	assert_in_range(rate.missed_time / MS, 2000, 3100);
	news = false;
	for (unsigned i = 0; i < 2500; i++)
		news |= min_rate_charge(
			&rate, &(struct min_rate_use){.time = MS, .work = MS, .alone = true});
	assert_true(news && !rate.missed);
	assert_int_equal(rate.hindered, 0);
	assert_null(min_rate_why(0));
	assert_non_null(strstr(min_rate_why(MIN_RATE_ABOVE | MIN_RATE_CROWDED), "higher-level"));
	assert_non_null(strstr(min_rate_why(MIN_RATE_EQUALS), "share"));
}

/* Its speed alone was never seen: nothing is claimed, unless something stood in its way. */
static void unknown_speed(void **state)
{
	struct min_rate rate = {0};

	(void)state;
	min_rate_set(&rate, 800);
	for (unsigned i = 0; i < 1100; i++)
		min_rate_charge(&rate, &(struct min_rate_use){.time = MS, .work = MS / 2});
	assert_true(rate.attained == MIN_RATE_UNKNOWN);
	assert_false(rate.missed);
	for (unsigned i = 0; i < 1000; i++)
		min_rate_charge(&rate,
				&(struct min_rate_use){.time = MS, .hindered = MIN_RATE_ABOVE});
	assert_true(rate.missed && rate.attained == MIN_RATE_UNKNOWN);
	assert_int_equal(rate.hindered, MIN_RATE_ABOVE);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(parses),
		cmocka_unit_test(survives_hostile_numbers),
		cmocka_unit_test(says_what_hinders),
		cmocka_unit_test(unknown_speed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
