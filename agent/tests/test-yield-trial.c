/* Whether the SMs that a client needs are enough for it: comparisons by turns, on a virtual clock.
 */
#include "scheduler/yield-trial.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "policy/yield.h"

#define LOOK   250000000ull /* ns between two looks */
#define SECOND 1000000000ull
#define KERNEL 100000u /* ns, predicted */

/* A client above another one. */
struct model {
	uint64_t now;
	struct yield_trial trial;
	struct yield_look look;
	double with[WEIR_YIELD_KINDS]; /* times as long as predicted */
	unsigned samples;              /* of a look */
	bool is_busy;                  /* its work never ends */
	uint32_t wanted;
	uint64_t in_all;  /* ns with the whole GPU */
	unsigned changes; /* of `needs_all` */
};

static struct model model_of(double some, double all)
{
	return (struct model){.now = SECOND,
			      .look.is_beside = true,
			      .with = {some, all},
			      .samples = 4,
			      .wanted = YIELD_MEASURED};
}

static uint32_t yield_now(const struct model *model)
{
	return yield_trial_now(&model->trial, model->wanted);
}

static void step(struct model *model)
{
	size_t kind = yield_now(model) == YIELD_WHOLE ? WEIR_YIELD_ALL : WEIR_YIELD_SOME;
	struct yield_told *told = &model->look.told;

	model->look.now = model->now += LOOK;
	told->samples[kind] += model->samples;
	told->predicted[kind] += (uint64_t)model->samples * KERNEL;
	told->measured[kind] += (uint64_t)(model->samples * KERNEL * model->with[kind]);
	told->demand_time += model->is_busy ? LOOK : LOOK / 2;
	model->in_all += kind == WEIR_YIELD_ALL ? LOOK : 0;
	model->changes += yield_trial_look(&model->trial, model->wanted, &model->look);
}

static void run(struct model *model, uint64_t ns)
{
	for (uint64_t until = model->now + ns; model->now < until;)
		step(model);
}

static void slower_work_gets_the_whole_gpu(void **state)
{
	struct model model = model_of(1.7, 1.0);

	(void)state;
	run(&model, 5 * SECOND);
	assert_true(model.trial.needs_all);
	assert_int_equal(model.changes, 1);
	assert_int_equal(yield_now(&model), YIELD_WHOLE);
	assert_true(model.trial.slower > 1.69 && model.trial.slower < 1.71);
	/* It stays so, and comparisons become rare. */
	model.in_all = 0;
	run(&model, 3600 * SECOND);
	assert_int_equal(model.changes, 1);
	assert_true(model.in_all > 3590 * SECOND);
	assert_int_equal(model.trial.rest, YIELD_TRIAL_REST_MAX);
}

/* The prediction follows what was measured last, so only both together tell. */
static void a_slow_prediction_changes_nothing(void **state)
{
	struct model model = model_of(1.0, 0.6);

	(void)state;
	run(&model, 5 * SECOND);
	assert_true(model.trial.needs_all);
}

static void work_that_is_as_fast_keeps_the_needed_sms(void **state)
{
	struct model model = model_of(1.0, 1.02);

	(void)state;
	run(&model, 3600 * SECOND);
	assert_int_equal(model.changes, 0);
	assert_false(model.trial.window);
	assert_int_equal(yield_now(&model), YIELD_NEEDED);
	/* What others lose by the comparisons. */
	assert_true(model.in_all > 0 && model.in_all < 3600 * SECOND / 25);
}

static void between_the_bounds_it_stays_as_it_is(void **state)
{
	struct model model = model_of(1.06, 1.0);

	(void)state;
	run(&model, 600 * SECOND);
	assert_false(model.trial.needs_all);
	model.with[WEIR_YIELD_SOME] = 1.5;
	run(&model, 120 * SECOND);
	assert_true(model.trial.needs_all);
	model.with[WEIR_YIELD_SOME] = 1.06;
	run(&model, 1800 * SECOND);
	assert_true(model.trial.needs_all);
	assert_int_equal(model.changes, 1);
	model.with[WEIR_YIELD_SOME] = 1.01;
	run(&model, 1800 * SECOND);
	assert_false(model.trial.needs_all);
	assert_int_equal(model.changes, 2);
}

static void nothing_is_compared(struct model *model)
{
	for (unsigned i = 0; i < 400; i++) {
		step(model);
		assert_int_equal(model->trial.window, 0);
		assert_int_equal(yield_now(model), yield_first(model->wanted));
	}
	assert_int_equal(model->changes, 0);
}

static void without_anybody_beside_nothing_is_compared(void **state)
{
	struct model model = model_of(1.7, 1.0);

	(void)state;
	model.look.is_beside = false;
	nothing_is_compared(&model);
}

static void an_older_client_is_not_compared(void **state)
{
	struct model model = model_of(1.7, 1.0);

	(void)state;
	model.samples = 0;
	nothing_is_compared(&model);
}

static void work_that_never_ends_is_not_compared(void **state)
{
	struct model model = model_of(1.7, 1.0);

	(void)state;
	model.is_busy = true;
	nothing_is_compared(&model);
}

static void whoever_says_what_it_wants_is_not_compared(void **state)
{
	static const uint32_t wanted[] = {YIELD_WHOLE, YIELD_NEEDED, YIELD_NEEDED + 25};

	(void)state;
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		struct model model = model_of(1.7, 1.0);

		run(&model, 5 * SECOND);
		assert_true(model.trial.needs_all);
		model.wanted = wanted[i];
		step(&model);
		assert_int_equal(model.changes, 2);
		assert_int_equal(yield_now(&model), wanted[i]);
		model.changes = 0;
		nothing_is_compared(&model);
	}
}

/* Launches stop, or others do, in the middle of a comparison. */
static void a_comparison_without_samples_ends(void **state)
{
	struct model model = model_of(1.7, 1.0);

	(void)state;
	while (model.trial.window != 3)
		step(&model);
	model.look.is_beside = false;
	run(&model, YIELD_TRIAL_PATIENCE + SECOND);
	assert_int_equal(model.trial.window, 0);
	assert_int_equal(yield_now(&model), YIELD_NEEDED);
	assert_true(model.trial.next > model.now + YIELD_TRIAL_REST_MIN);
}

/* Another client's numbers, or made up ones. */
static void counters_that_fall_count_nothing(void **state)
{
	struct model model = model_of(1.7, 1.0);

	(void)state;
	while (model.trial.window != 2)
		step(&model);
	model.look.told = (struct yield_told){.samples = {1, 1}};
	step(&model);
	assert_int_equal(model.trial.window, 2);
	for (size_t i = 0; i < WEIR_YIELD_KINDS; i++)
		model.look.told.measured[i] = model.look.told.predicted[i] = UINT64_MAX / 2;
	run(&model, 60 * SECOND);
	assert_true(model.trial.slower >= 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(slower_work_gets_the_whole_gpu),
		cmocka_unit_test(a_slow_prediction_changes_nothing),
		cmocka_unit_test(work_that_is_as_fast_keeps_the_needed_sms),
		cmocka_unit_test(between_the_bounds_it_stays_as_it_is),
		cmocka_unit_test(without_anybody_beside_nothing_is_compared),
		cmocka_unit_test(an_older_client_is_not_compared),
		cmocka_unit_test(work_that_never_ends_is_not_compared),
		cmocka_unit_test(whoever_says_what_it_wants_is_not_compared),
		cmocka_unit_test(a_comparison_without_samples_ends),
		cmocka_unit_test(counters_that_fall_count_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
