/* Which way of making room is chosen, by the times of launches. SEED=N repeats a run. */
#include "gates/need-trial.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define EVERY  (400 * NS_PER_US) /* from one launch to the next */
#define RARELY (10 * NS_PER_MS)

static struct need_trial trial;
static uint64_t now;
static uint64_t seed;
static unsigned launches;

/* In 0 .. 1. */
static double chance(void)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (double)(seed >> 11) / (double)(1ull << 53);
}

static uint64_t steady(uint64_t ns)
{
	return ns;
}

/* One launch in 40 waits long. */
static uint64_t disturbed(uint64_t ns)
{
	return ++launches % 40 ? ns : ns + 1000000;
}

/* Each fifth launch waits for a place. */
static uint64_t waits_often(uint64_t ns)
{
	return ++launches % 5 ? ns : ns + ns / 2;
}

static uint64_t noisy(uint64_t ns)
{
	return (uint64_t)((double)ns * (0.88 + 0.24 * chance()));
}

/* Launches in the way that is tried, until another one is, or the choice is made. Returns whether
 * it is. */
static bool launch_all(uint64_t ns, uint64_t time_of(uint64_t ns), uint64_t every)
{
	enum need_way way = trial.way;
	bool over = false;

	for (unsigned n = 0; !over && trial.way == way; n++) {
		assert_true(n < NEED_TRIAL_SAMPLES_MAX);
		now += every;
		over = need_trial_learn(&trial, way, time_of(ns), now);
	}
	return over;
}

static enum need_way choice_at(const struct need_terms *terms, const uint64_t ns[NEED_WAYS],
			       uint64_t time_of(uint64_t ns), uint64_t every)
{
	need_trial_begin(&trial, terms);
	for (int way = 0; way < NEED_WAYS; way++) {
		if (!(terms->ways & 1u << way))
			continue;
		assert_int_equal(trial.way, way);
		assert_int_equal(launch_all(ns[way], time_of, every), way == NEED_WHOLE);
	}
	return trial.way;
}

static enum need_way choice(const uint64_t ns[NEED_WAYS])
{
	return choice_at(&need_terms_short, ns, disturbed, EVERY);
}

static void the_fastest_way_is_chosen(void **state)
{
	(void)state;
	assert_int_equal(choice((uint64_t[]){22000, 25000, 22000, 17000}), NEED_WHOLE);
	assert_int_equal(choice((uint64_t[]){38000, 46000, 32000, 37000}), NEED_APART);
	assert_int_equal(choice((uint64_t[]){56000, 22000, 56000, 55000}), NEED_PACKED);
	assert_int_equal(choice((uint64_t[]){15000, 20000, 18000, 17000}), NEED_PLACES);
	assert_int_equal(choice((uint64_t[]){20700, 24000, 21000, 20000}), NEED_WHOLE);
}

static void the_cheapest_of_ways_that_are_as_fast_is_chosen(void **state)
{
	(void)state;
	assert_int_equal(choice((uint64_t[]){20300, 20100, 20000, 20000}), NEED_PLACES);
	assert_int_equal(choice((uint64_t[]){22000, 20300, 20200, 20000}), NEED_PACKED);
	assert_int_equal(choice((uint64_t[]){22000, 24000, 20300, 20000}), NEED_APART);
}

/* A tenth more on average, of which the median shows nothing. */
static void launches_that_wait_now_and_then_count(void **state)
{
	uint64_t places[NEED_WAYS] = {18000, 30000, 30000, 18500};

	(void)state;
	assert_int_equal(choice_at(&need_terms_short, places, steady, EVERY), NEED_PLACES);
	need_trial_begin(&trial, &need_terms_short);
	launch_all(places[NEED_PLACES], waits_often, EVERY);
	launch_all(places[NEED_PACKED], steady, EVERY);
	launch_all(places[NEED_APART], steady, EVERY);
	assert_true(launch_all(places[NEED_WHOLE], steady, EVERY));
	assert_int_equal(trial.way, NEED_WHOLE);
}

/* What is lost by a choice is little, however close the ways are. */
static void a_choice_costs_little(void **state)
{
	double sum = 0, worst = 1;
	unsigned cases = 2000;

	(void)state;
	for (unsigned i = 0; i < cases; i++) {
		uint64_t ns[NEED_WAYS], best = UINT64_MAX;
		for (int way = 0; way < NEED_WAYS; way++) {
			ns[way] = 20000 + (uint64_t)(3000 * chance());
			best = ns[way] < best ? ns[way] : best;
		}
		double lost =
			(double)ns[choice_at(&need_terms_short, ns, noisy, EVERY)] / (double)best;
		sum += lost;
		worst = lost > worst ? lost : worst;
	}
	printf("lost by a choice: mean %.4f, worst %.4f\n", sum / cases, worst);
	assert_true(sum / cases < 1.004 && worst < 1.06);
}

static void a_long_kernel_has_no_places(void **state)
{
	static const uint64_t as_fast[] = {0, 0, 175000, 174000}, slower[] = {0, 0, 300000, 174000};

	(void)state;
	assert_int_equal(choice_at(&need_terms_long, as_fast, disturbed, RARELY), NEED_APART);
	assert_int_equal(choice_at(&need_terms_long, slower, disturbed, RARELY), NEED_WHOLE);
}

/* Requests of 20 launches, of which the first waits for lower levels. All are read at once. */
static bool launch_requests(uint64_t ns, uint64_t first)
{
	enum need_way way = trial.way;
	bool over = false;

	for (now += 5 * NS_PER_MS; !over && trial.way == way; now += 5 * NS_PER_MS) {
		for (unsigned i = 0; i < 20 && !over; i++)
			over = need_trial_learn(&trial, way, i ? ns : first, now);
	}
	return over;
}

/* A training step has phases: launches within one say the same. */
static void launches_of_long_kernels_are_spread(void **state)
{
	uint64_t begun = now = 1000;

	(void)state;
	need_trial_begin(&trial, &need_terms_long);
	assert_false(launch_requests(180000, 600000));
	assert_int_equal(trial.way, NEED_WHOLE);
	assert_true(now - begun >= need_terms_long.span);
	assert_true(launch_requests(172000, 250000));
	assert_int_equal(trial.way, NEED_APART);
}

/* The host stops for a while: one request in six is late, in one of the ways. */
static void a_host_that_stops_decides_nothing(void **state)
{
	(void)state;
	need_trial_begin(&trial, &need_terms_work);
	for (unsigned round = 0; round < need_terms_work.rounds; round++) {
		for (unsigned i = 0; trial.way == NEED_PLACES; i++)
			need_trial_learn(&trial, NEED_PLACES, i / 4 % 6 ? 20000 : 100000,
					 now += 12 * NS_PER_MS);
		launch_all(20000, steady, 12 * NS_PER_MS);
		launch_all(20000, steady, 12 * NS_PER_MS);
	}
	assert_int_equal(trial.way, NEED_PLACES);
}

/* Requests that are called eagerly took 47 us a launch for half a second, in place of 18 (H100). */
static void a_host_that_is_slow_for_one_way_decides_nothing(void **state)
{
	(void)state;
	need_trial_begin(&trial, &need_terms_work);
	for (unsigned turn = 0; turn < 6; turn++) {
		bool over = launch_all(turn ? 18000 : 47000, steady, 12 * NS_PER_MS);
		assert_int_equal(over, turn == 5);
	}
	assert_int_equal(trial.way, NEED_PLACES);
	assert_int_equal(trial.typical[NEED_PLACES], 18000);
}

/* Launches within one kernel of a lower level say the same; those of a rare kernel do not. */
static void a_way_takes_time_and_launches(void **state)
{
	uint64_t begun = now = 1000, ns = 20000;

	(void)state;
	need_trial_begin(&trial, &need_terms_short);
	launch_all(ns, steady, EVERY);
	assert_in_range(now - begun, need_terms_short.span, need_terms_short.span + 2 * EVERY);
	begun = now;
	assert_false(launch_all(ns, steady, 10 * NS_PER_MS));
	assert_int_equal(now - begun, NEED_TRIAL_SAMPLES * 10 * NS_PER_MS);
	begun = now;
	assert_false(launch_all(ns, steady, NS_PER_US));
	assert_int_equal(now - begun, NEED_TRIAL_SAMPLES_MAX * NS_PER_US);
	assert_true(launch_all(ns, steady, EVERY));
}

static void a_launch_in_another_way_does_not_count(void **state)
{
	(void)state;
	need_trial_begin(&trial, &need_terms_short);
	for (unsigned i = 0; i < 1000; i++)
		assert_false(need_trial_learn(&trial, NEED_WHOLE, 1, now += EVERY));
	assert_int_equal(trial.way, NEED_PLACES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_fastest_way_is_chosen),
		cmocka_unit_test(the_cheapest_of_ways_that_are_as_fast_is_chosen),
		cmocka_unit_test(launches_that_wait_now_and_then_count),
		cmocka_unit_test(a_choice_costs_little),
		cmocka_unit_test(a_long_kernel_has_no_places),
		cmocka_unit_test(launches_of_long_kernels_are_spread),
		cmocka_unit_test(a_host_that_stops_decides_nothing),
		cmocka_unit_test(a_host_that_is_slow_for_one_way_decides_nothing),
		cmocka_unit_test(a_way_takes_time_and_launches),
		cmocka_unit_test(a_launch_in_another_way_does_not_count),
	};
	const char *chosen = getenv("SEED");

	seed = chosen ? strtoull(chosen, NULL, 10) : 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
