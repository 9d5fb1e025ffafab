/* Which form a kernel runs in, and when it is tuned again: the autotuner inside libweir, on the
 * null driver. */
#include "formed.h"

#include "gates/gate.h"

#include "weir/base.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

static void an_expensive_form_is_not_used(void **state)
{
	unsigned n = welcomed(1);
	struct rewritten rewritten = in_forms(1u << WEIR_PERSISTENT | 1u << WEIR_SLICED);
	CUfunction kernel = kernel_of(1000000, &rewritten);

	(void)state;
	driver->form_elapsed_ns = 1040000;
	assert_true(settles(n, kernel, BLOCKS));
	ops_of(n, kernel, BLOCKS);
	assert_ptr_equal(driver->ops[driver->n_ops - 1].function, kernel);

	/* While somebody waits, the form is used: a native launch would delay them. */
	somebody_waits(n);
	ops_of(n, kernel, BLOCKS);
	assert_ptr_equal(driver->ops[driver->n_ops - 1].function, FORM(WEIR_PERSISTENT));

	/* A kernel shorter than the latency needs no form. */
	kernel = kernel_of(90000, &rewritten);
	for (int i = 0; i < 20; i++) {
		ops_of(n, kernel, BLOCKS);
		assert_ptr_equal(driver->ops[driver->n_ops - 1].function, kernel);
		usleep(2000);
	}
	gone(n);
}

static void a_hopeless_form_is_launched_once(void **state)
{
	unsigned n = welcomed(0);
	struct rewritten rewritten = in_forms(1u << WEIR_RESUMABLE);
	CUfunction kernel = kernel_of(900000, &rewritten);

	(void)state;
	driver->form_elapsed_ns = 1000000000;
	driver->n_ops = 0;
	assert_true(settles(n, kernel, BLOCKS));
	assert_int_equal(in_form(), 1);
	gone(n);
}

static void all_builds_are_compared(void **state)
{
	unsigned n = welcomed(0), wide = 0;
	struct rewritten rewritten = in_forms(1u << WEIR_PERSISTENT);
	CUfunction kernel;

	(void)state;
	rewritten.variants[WEIR_PERSISTENT][1] = (struct variant){(CUfunction)(uintptr_t)NULL_WIDE};
	kernel = kernel_of(900000, &rewritten);
	driver->n_ops = 0;
	assert_true(settles(n, kernel, BLOCKS));
	for (size_t i = 0; i < driver->n_ops; i++)
		wide += driver->ops[i].function == (CUfunction)(uintptr_t)NULL_WIDE;
	assert_true(wide > 1);
	gone(n);
}

static void the_build_with_most_resident_blocks_comes_first(void **state)
{
	unsigned n = welcomed(1);
	struct rewritten rewritten = in_forms(1u << WEIR_PERSISTENT);
	struct variant *builds = rewritten.variants[WEIR_PERSISTENT];
	CUfunction kernel;

	(void)state;
	somebody_waits(n);
	builds[1] = builds[0];
	builds[0] = (struct variant){(CUfunction)(uintptr_t)NULL_WIDE};
	kernel = kernel_of(1000000, &rewritten);
	driver->n_ops = 0;
	assert_true(settles(n, kernel, BLOCKS));
	ops_of(n, kernel, BLOCKS);
	assert_ptr_equal(driver->ops[driver->n_ops - 1].function, FORM(WEIR_PERSISTENT));
	gone(n);
}

/* Its blocks may wait for each other, so all of them must run at a time in the form, too. */
static void a_grid_that_fits_takes_the_resumable_build_that_fits(void **state)
{
	unsigned n = welcomed(1);
	struct rewritten rewritten = in_forms(1u << WEIR_RESUMABLE);
	struct variant *builds = rewritten.variants[WEIR_RESUMABLE];
	const unsigned blocks = AT_ONCE;

	(void)state;
	somebody_waits(n);
	builds[1] = builds[0];
	builds[0] = (struct variant){(CUfunction)(uintptr_t)NULL_WIDE};
	CUfunction kernel = kernel_of(1000000, &rewritten);
	driver->n_ops = 0;
	assert_true(settles(n, kernel, blocks));
	ops_of(n, kernel, blocks);
	assert_ptr_equal(driver->ops[driver->n_ops - 1].function, FORM(WEIR_RESUMABLE));
	gone(n);
}

static void a_form_that_the_driver_refuses_is_given_up(void **state)
{
	unsigned n = welcomed(0);
	struct rewritten rewritten = in_forms(1u << WEIR_PERSISTENT);
	CUfunction kernel = kernel_of(900000, &rewritten);

	(void)state;
	driver->forms_fail = CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
	driver->n_ops = 0;
	assert_true(settles(n, kernel, BLOCKS));
	driver->forms_fail = 0;
	driver->n_ops = 0;
	launch_call(n, kernel, BLOCKS);
	assert_int_equal(in_form(), 0);
	gone(n);
}

static void native_and_form_are_measured_at_the_same_time(void **state)
{
	unsigned n = welcomed(0);
	struct rewritten rewritten = in_forms(1u << WEIR_PERSISTENT);
	CUfunction kernel = kernel_of(200000, &rewritten);

	(void)state;
	/* From now on native and form take ten times as long. */
	launch_call(n, kernel, BLOCKS);
	usleep(30000);
	driver->elapsed_ns = driver->form_elapsed_ns = 2000000;
	assert_true(settles(n, kernel, BLOCKS));
	ops_of(n, kernel, BLOCKS);
	assert_ptr_equal(driver->ops[driver->n_ops - 1].function, FORM(WEIR_PERSISTENT));
	gone(n);
}

static void a_running_launch_is_known_to_be_long(void **state)
{
	struct rewritten rewritten = in_forms(1u << WEIR_PERSISTENT);
	unsigned n = welcomed(0);
	CUfunction kernel = kernel_of(50000, &rewritten);

	(void)state;
	driver->last_busy = 1;
	launch_call(n, kernel, BLOCKS);
	assert_true(eventually(is_tried(kernel)));
	driver->last_busy = 0;

	/* A launch that cannot begin is not. */
	kernel = kernel_of(50000, &rewritten);
	driver->events_busy = 1;
	launch_call(n, kernel, BLOCKS);
	usleep(50000);
	driver->events_busy = 0;
	usleep(50000);
	assert_null(tuned_for(kernel));
	/* Nor is a launch that a higher-level client holds up. */
	agent.demand[0]->word = 1;
	driver->last_busy = 1;
	launch_call(n, kernel, BLOCKS);
	usleep(50000);
	driver->last_busy = 0;
	agent.demand[0]->word = 0;
	usleep(50000);
	assert_null(tuned_for(kernel));
	gone(n);
}

/* Its five samples were too good. */
static void the_best_candidate_is_confirmed(void **state)
{
	unsigned n = welcomed(0);
	struct rewritten rewritten = in_forms(1u << WEIR_PERSISTENT);
	CUfunction kernel = kernel_of(1000000, &rewritten);
	const struct tuned_kernel *tuned = NULL;
	bool again = false;

	(void)state;
	driver->form_elapsed_ns = 1000000;
	for (int i = 0; i < 400 && !again; i++) {
		launch_call(n, kernel, BLOCKS);
		land(0);
		usleep(2000);
		tuned = tuned_for(kernel);
		for (size_t k = 1; tuned && k < tuned->tuner.n; k++)
			again |= tuned->tuner.candidates[k].confirming;
	}
	assert_true(again);
	driver->form_elapsed_ns = 1025000;
	assert_true(settles(n, kernel, BLOCKS));
	assert_int_equal(tuned->tuner.in_use[WAITING_NOBODY], 0);
	gone(n);
}

static void a_kernel_whose_time_changes_is_tuned_again(void **state)
{
	unsigned n = welcomed(0);
	struct rewritten rewritten = in_forms(1u << WEIR_PERSISTENT | 1u << WEIR_RESUMABLE);
	CUfunction kernel = kernel_of(200000, &rewritten);

	(void)state;
	assert_true(settles(n, kernel, BLOCKS));
	const struct tuned_kernel *tuned = tuned_for(kernel);
	assert_int_equal(config_in_use(tuned, WAITING_NOBODY)->form, WEIR_PERSISTENT);

	/* Blocks take 640 us, so it must leave inside them. */
	driver->elapsed_ns = driver->form_elapsed_ns = 20000000;
	for (int i = 0; i < 200 && tuned->tuner.tuned_for != 20000000; i++)
		ops_of(n, kernel, BLOCKS), usleep(6000);
	assert_int_equal(tuned->tuner.tuned_for, 20000000);
	assert_true(settles(n, kernel, BLOCKS));
	assert_int_equal(config_in_use(tuned, WAITING_NOBODY)->form, WEIR_RESUMABLE);
	gone(n);
}

static void a_form_with_more_work_than_before_is_not_hopeless(void **state)
{
	unsigned n = welcomed(0);
	struct rewritten rewritten = in_forms(1u << WEIR_PERSISTENT);
	CUfunction kernel = kernel_of(200000, &rewritten);

	(void)state;
	driver->form_elapsed_ns = 2000000;
	driver->n_ops = 0;
	for (int i = 0; i < 400 && !in_form(); i++) {
		launch_call(n, kernel, BLOCKS);
		land(0);
		usleep(2000);
	}
	assert_int_equal(in_form(), 1);
	driver->elapsed_ns = 2000000; /* native launches, too */
	assert_true(settles(n, kernel, BLOCKS));
	ops_of(n, kernel, BLOCKS);
	assert_ptr_equal(driver->ops[driver->n_ops - 1].function, FORM(WEIR_PERSISTENT));
	gone(n);
}

static void the_top_level_uses_no_forms(void **state)
{
	unsigned n = welcomed(3);
	struct rewritten rewritten = in_forms(1u << WEIR_PERSISTENT);
	CUfunction kernel = kernel_of(1000000, &rewritten);

	(void)state;
	for (int i = 0; i < 20; i++) {
		ops_of(n, kernel, BLOCKS);
		assert_ptr_equal(driver->ops[driver->n_ops - 1].function, kernel);
		usleep(2000);
	}
	gone(n);
}

static void a_client_above_others_tunes_no_kernel_that_gates_stop(void **state)
{
	struct rewritten rewritten = in_forms(1u << WEIR_PERSISTENT);
	unsigned n = welcomed(1);

	(void)state;
	usleep(50000);
	CUfunction kernel = kernel_of(300000, &rewritten);
	assert_int_equal(forms_of(n, kernel, 20), 0);
	assert_int_equal(tuned_for(kernel)->tuner.state, AUTOTUNE_WANTED);
	somebody_waits(n);
	assert_true(eventually(is_tried(kernel)));
	gone(n);
}

static void short_kernels_need_gates_only(void **state)
{
	unsigned n = welcomed(0);
	struct rewritten rewritten = in_forms(1u << WEIR_PERSISTENT);
	CUfunction kernel = kernel_of(300000, &rewritten);

	(void)state;
	/* Gates are 400 us apart while no higher-level client shows demand, */
	assert_true(settles(n, kernel, BLOCKS));
	ops_of(n, kernel, BLOCKS);
	assert_ptr_equal(driver->ops[driver->n_ops - 1].function, kernel);

	/* and 100 us for a while after one did. */
	agent.demand[0]->word = 1;
	launch_call(n, kernel, BLOCKS);
	usleep(50000);
	agent.demand[0]->word = 0;
	ops_of(n, kernel, BLOCKS);
	assert_ptr_equal(driver->ops[driver->n_ops - 1].function, FORM(WEIR_PERSISTENT));
	gone(n);
}

/* For example slices whose data stay in the cache. The prediction falls below what needs a form, or
 * below half the tuned time; neither ends its use. */
static void a_kernel_that_is_faster_in_its_form_keeps_it(void **state)
{
	static const uint64_t in_form_ns[] = {300000, 150000};
	struct rewritten rewritten = in_forms(1u << WEIR_PERSISTENT);

	(void)state;
	for (size_t i = 0; i < countof(in_form_ns); i++) {
		unsigned n = welcomed(0), forms = 0;
		CUfunction kernel = kernel_of(600000, &rewritten);
		driver->form_elapsed_ns = in_form_ns[i];
		assert_true(settles(n, kernel, BLOCKS));
		size_t compared = tuned_for(kernel)->tuner.n;
		for (unsigned k = 0; k < 50; k++) {
			measure_next();
			forms += forms_of(n, kernel, 1);
			usleep(5000);
		}
		assert_int_equal(forms, 50);
		assert_int_equal(tuned_for(kernel)->tuner.n, compared);
		gone(n);
	}
}

/* A launch that is outstanding for @us. */
static void runs_for(unsigned n, CUfunction kernel, useconds_t us)
{
	driver->streams_busy = driver->events_busy = 1;
	launch_call(n, kernel, BLOCKS);
	usleep(us);
	driver->streams_busy = driver->events_busy = 0;
	land(0);
	assert_true(eventually(!sampler_of(client)->armed));
}

/* A program that warms up with little work. Its later times must not look like other clients'
 * influence for long. */
static void short_first_launches_do_not_mislead(void **state)
{
	struct rewritten rewritten = in_forms(1u << WEIR_PERSISTENT);

	(void)state;
	for (unsigned among_others = 0; among_others < 2; among_others++) {
		unsigned n = welcomed(0), launches = 0;
		CUfunction kernel = kernel_of(77000, &rewritten);
		for (unsigned i = 0; i < 4; i++)
			ops_of(n, kernel, BLOCKS);
		assert_true(eventually(!sampler_of(client)->armed));
		if (among_others) {
			agent.control->flags = WEIR_CONTROL_HOLDABLE | WEIR_CONTROL_CONTENDED;
			assert_true(
				eventually(gating_of(client)->interval == GATE_INTERVAL_CONTENDED));
		}
		driver->elapsed_ns = driver->form_elapsed_ns = 40000000;
		for (; !tuned_for(kernel) && launches < 100; launches++)
			runs_for(n, kernel, 40000);
		assert_in_range(launches, 1, among_others ? 16 : 6);
		agent.control->flags = 0;
		gone(n);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_expensive_form_is_not_used),
		cmocka_unit_test(a_hopeless_form_is_launched_once),
		cmocka_unit_test(all_builds_are_compared),
		cmocka_unit_test(the_build_with_most_resident_blocks_comes_first),
		cmocka_unit_test(a_grid_that_fits_takes_the_resumable_build_that_fits),
		cmocka_unit_test(a_form_that_the_driver_refuses_is_given_up),
		cmocka_unit_test(native_and_form_are_measured_at_the_same_time),
		cmocka_unit_test(a_running_launch_is_known_to_be_long),
		cmocka_unit_test(the_best_candidate_is_confirmed),
		cmocka_unit_test(a_kernel_whose_time_changes_is_tuned_again),
		cmocka_unit_test(a_form_with_more_work_than_before_is_not_hopeless),
		cmocka_unit_test(the_top_level_uses_no_forms),
		cmocka_unit_test(a_client_above_others_tunes_no_kernel_that_gates_stop),
		cmocka_unit_test(short_kernels_need_gates_only),
		cmocka_unit_test(a_kernel_that_is_faster_in_its_form_keeps_it),
		cmocka_unit_test(short_first_launches_do_not_mislead),
	};

	driver_load();
	return cmocka_run_group_tests(tests, agent_begin, agent_finish);
}
