/* Which way of making room is chosen, by the times of launches. */
#include "gates/need-trial.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static struct need_trial trial;

/* Launches in a way; some wait for others. */
static bool launch_all(enum need_way way, uint64_t ns)
{
	bool over = false;

	assert_int_equal(trial.way, way);
	for (unsigned i = 0; i < NEED_TRIAL_SAMPLES; i++) {
		assert_false(over);
		over = need_trial_learn(&trial, way, ns + (i % 4 ? i : 1000000));
	}
	return over;
}

static enum need_way choice(enum need_way first, const uint64_t ns[NEED_WAYS])
{
	need_trial_begin(&trial, first);
	for (int way = (int)first; way < NEED_WAYS; way++)
		assert_int_equal(launch_all((enum need_way)way, ns[way]), way == NEED_WHOLE);
	return trial.way;
}

static void the_fastest_way_is_chosen(void **state)
{
	(void)state;
	assert_int_equal(choice(NEED_PLACES, (uint64_t[]){22000, 22000, 17000}), NEED_WHOLE);
	assert_int_equal(choice(NEED_PLACES, (uint64_t[]){38000, 32000, 37000}), NEED_APART);
	assert_int_equal(choice(NEED_PLACES, (uint64_t[]){15000, 18000, 17000}), NEED_PLACES);
}

static void the_cheapest_of_ways_that_are_as_fast_is_chosen(void **state)
{
	(void)state;
	assert_int_equal(choice(NEED_PLACES, (uint64_t[]){20500, 20000, 20000}), NEED_PLACES);
	assert_int_equal(choice(NEED_PLACES, (uint64_t[]){22000, 20500, 20000}), NEED_APART);
}

static void a_long_kernel_has_no_places(void **state)
{
	(void)state;
	assert_int_equal(choice(NEED_APART, (uint64_t[]){0, 175000, 174000}), NEED_APART);
	assert_int_equal(choice(NEED_APART, (uint64_t[]){0, 300000, 174000}), NEED_WHOLE);
}

static void a_launch_in_another_way_does_not_count(void **state)
{
	(void)state;
	need_trial_begin(&trial, NEED_PLACES);
	for (unsigned i = 0; i < 1000; i++)
		assert_false(need_trial_learn(&trial, NEED_WHOLE, 1));
	assert_int_equal(trial.way, NEED_PLACES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_fastest_way_is_chosen),
		cmocka_unit_test(the_cheapest_of_ways_that_are_as_fast_is_chosen),
		cmocka_unit_test(a_long_kernel_has_no_places),
		cmocka_unit_test(a_launch_in_another_way_does_not_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
