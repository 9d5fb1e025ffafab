/* Which kernels run in which form, and when that is decided anew. libweir's own sources, on a
 * driver that does nothing but be observable. */
#include "formed.h"

#include "gates/gate.h"

#include "weir/base.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

static void what_costs_too_much_stays_native(void **state)
{
	unsigned n = welcomed(1);
	struct rewritten rewritten = in_forms(1u << WEIR_PERSISTENT | 1u << WEIR_SLICED);
	CUfunction kernel = kernel_of(1000000, &rewritten);

	(void)state;
	driver->form_elapsed_ns = 1040000;
	assert_true(settles(n, kernel, BLOCKS));
	ops_of(n, kernel, BLOCKS);
	assert_ptr_equal(driver->ops[driver->n_ops - 1].function, kernel);

	/* But while somebody waits, it does not: he would wait for it. */
	somebody_waits(n);
	ops_of(n, kernel, BLOCKS);
	assert_ptr_equal(driver->ops[driver->n_ops - 1].function, FORM(WEIR_PERSISTENT));

	/* And a kernel that is no longer than others may have to wait needs no form. */
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

static void further_builds_are_tried(void **state)
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

/* As with fewer registers, if ptxas took too many. */
static void the_build_with_most_blocks_is_first(void **state)
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

static void what_the_driver_refuses_is_not_tried_for_ever(void **state)
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

static void work_that_changes_is_compared_at_the_same_time(void **state)
{
	unsigned n = welcomed(0);
	struct rewritten rewritten = in_forms(1u << WEIR_PERSISTENT);
	CUfunction kernel = kernel_of(200000, &rewritten);

	(void)state;
	/* It had little to do before; now native and form take ten times as long. */
	launch_call(n, kernel, BLOCKS);
	usleep(30000);
	driver->elapsed_ns = driver->form_elapsed_ns = 2000000;
	assert_true(settles(n, kernel, BLOCKS));
	ops_of(n, kernel, BLOCKS);
	assert_ptr_equal(driver->ops[driver->n_ops - 1].function, FORM(WEIR_PERSISTENT));
	gone(n);
}

static struct preempt_slot *first_lane(void)
{
	struct preempt_slots *slots = atomic_load(&preempting_of(client)->slots);

	return slots && slots->state == SLOTS_READY && atomic_load(&slots->slot[0].taken)
		       ? &slots->slot[0]
		       : NULL;
}

static void a_form_is_in_use_at_once_if_somebody_waits(void **state)
{
	struct rewritten rewritten = in_forms(1u << WEIR_PERSISTENT);
	unsigned n = welcomed(1);

	(void)state;
	somebody_waits(n);
	CUfunction kernel = kernel_of(2000000, &rewritten);
	launch_call(n, kernel, BLOCKS);
	assert_true(eventually(is_tried(kernel)));
	launch_call(n, kernel, BLOCKS); /* has the slot made, if need be */
	assert_true(eventually(first_lane() != NULL));
	land(0);
	assert_true(eventually(agent.status->comparing == 1));
	assert_in_range(forms_of(n, kernel, 50), 45, 50); /* three to compare */

	/* And stays so when there were enough to compare, if it is no slower. */
	assert_true(settles(n, kernel, BLOCKS));
	assert_true(eventually(agent.status->comparing == 0));
	assert_int_equal(forms_of(n, kernel, 5), 5);
	gone(n);
}

/* Which build of persistent is in use while somebody waits, if they take so long, and 1 ms as it
 * is. */
static void *in_use_if_somebody_waits(uint64_t best_ns, uint64_t wide_ns)
{
	struct rewritten rewritten = in_forms(1u << WEIR_PERSISTENT);
	unsigned n = welcomed(1);

	somebody_waits(n);
	rewritten.variants[WEIR_PERSISTENT][1] = (struct variant){(CUfunction)(uintptr_t)NULL_WIDE};
	CUfunction kernel = kernel_of(1000000, &rewritten);
	driver->form_elapsed_ns = best_ns;
	driver->wide_elapsed_ns = wide_ns;
	assert_true(settles(n, kernel, BLOCKS));
	ops_of(n, kernel, BLOCKS);
	void *used = driver->ops[driver->n_ops - 1].function;
	driver->wide_elapsed_ns = 0;
	gone(n);
	return used;
}

static void who_waits_finds_what_leaves_soonest_or_else_is_fastest(void **state)
{
	(void)state;
	assert_ptr_equal(in_use_if_somebody_waits(1080000, 1020000), FORM(WEIR_PERSISTENT));
	assert_ptr_equal(in_use_if_somebody_waits(1200000, 1120000), NULL_WIDE);
	assert_false((uintptr_t)in_use_if_somebody_waits(1300000, 1300000) >= NULL_FORM);
}

/* Blocks of 2.5 ms: good enough while nobody waits, but what is left between them is left too late.
 */
static void who_waits_is_not_kept_by_long_blocks(void **state)
{
	struct rewritten rewritten = in_forms(1u << WEIR_PERSISTENT);
	unsigned n = welcomed(1);

	(void)state;
	usleep(50000);
	rewritten.variants[WEIR_RESUMABLE][0] = (struct variant){(CUfunction)(uintptr_t)NULL_WIDE};
	CUfunction kernel = kernel_of(5000000, &rewritten);
	driver->form_elapsed_ns = 5100000;
	driver->wide_elapsed_ns = 5700000;
	assert_true(settles(n, kernel, 2 * AT_ONCE));
	const struct tuned_kernel *tuned = tuned_for(kernel);
	assert_int_equal(tuned->tuner.candidates[tuned->tuner.in_use[WAITING_NOBODY]].config.form,
			 WEIR_PERSISTENT);
	assert_int_equal(tuned->tuner.candidates[tuned->tuner.in_use[WAITING_URGENT]].config.form,
			 WEIR_RESUMABLE);
	driver->wide_elapsed_ns = 0;
	gone(n);
}

/* Another build with tickets of as many blocks. */
static void of_those_that_leave_as_soon_the_fastest_is_used(void **state)
{
	struct rewritten rewritten = in_forms(1u << WEIR_PERSISTENT);
	unsigned n = welcomed(1);

	(void)state;
	usleep(50000);
	rewritten.variants[WEIR_PERSISTENT][1] = (struct variant){(CUfunction)(uintptr_t)NULL_WIDE};
	CUfunction kernel = kernel_of(3000000, &rewritten);
	driver->form_elapsed_ns = 3240000;
	driver->wide_elapsed_ns = 3150000;
	assert_true(settles(n, kernel, 100 * AT_ONCE));
	const struct tuned_kernel *tuned = tuned_for(kernel);
	assert_int_equal(tuned->tuner.candidates[tuned->tuner.in_use[WAITING_URGENT]].config.build,
			 1);
	driver->wide_elapsed_ns = 0;
	gone(n);
}

static void launches_take_turns_if_nobody_waits(void **state)
{
	struct rewritten rewritten = in_forms(1u << WEIR_PERSISTENT);
	unsigned n = welcomed(1);

	(void)state;
	usleep(50000);
	CUfunction kernel = kernel_of(2000000, &rewritten);
	launch_call(n, kernel, BLOCKS);
	assert_true(eventually(is_tried(kernel)));
	launch_call(n, kernel, BLOCKS);
	assert_true(eventually(first_lane() != NULL));
	land(0);
	assert_in_range(forms_of(n, kernel, 8), 1, 6);
	gone(n);
}

static void a_launch_that_goes_on_is_known_to_be_long(void **state)
{
	struct rewritten rewritten = in_forms(1u << WEIR_PERSISTENT);
	unsigned n = welcomed(0);
	CUfunction kernel = kernel_of(50000, &rewritten);

	(void)state;
	driver->last_busy = 1;
	launch_call(n, kernel, BLOCKS);
	assert_true(eventually(is_tried(kernel)));
	driver->last_busy = 0;

	/* Not one that cannot begin. */
	kernel = kernel_of(50000, &rewritten);
	driver->events_busy = 1;
	launch_call(n, kernel, BLOCKS);
	usleep(50000);
	driver->events_busy = 0;
	usleep(50000);
	assert_null(tuned_for(kernel));
	/* Nor one that is held up by somebody above. */
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

/* Five samples made it better than it is. */
static void the_best_is_compared_once_more(void **state)
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

static void a_kernel_that_takes_longer_now_is_chosen_anew(void **state)
{
	unsigned n = welcomed(0);
	struct rewritten rewritten = in_forms(1u << WEIR_PERSISTENT | 1u << WEIR_RESUMABLE);
	CUfunction kernel = kernel_of(200000, &rewritten);

	(void)state;
	assert_true(settles(n, kernel, BLOCKS));
	const struct tuned_kernel *tuned = tuned_for(kernel);
	assert_int_equal(tuned->tuner.candidates[tuned->tuner.in_use[WAITING_NOBODY]].config.form,
			 WEIR_PERSISTENT);

	/* Blocks of 640 us are to leave inside. */
	driver->elapsed_ns = driver->form_elapsed_ns = 20000000;
	for (int i = 0; i < 200 && tuned->tuner.tuned_for != 20000000; i++)
		ops_of(n, kernel, BLOCKS), usleep(6000);
	assert_int_equal(tuned->tuner.tuned_for, 20000000);
	assert_true(settles(n, kernel, BLOCKS));
	assert_int_equal(tuned->tuner.candidates[tuned->tuner.in_use[WAITING_NOBODY]].config.form,
			 WEIR_RESUMABLE);
	gone(n);
}

static void a_form_that_had_more_to_do_is_not_hopeless(void **state)
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
	driver->elapsed_ns = 2000000; /* and so have native launches from now on */
	assert_true(settles(n, kernel, BLOCKS));
	ops_of(n, kernel, BLOCKS);
	assert_ptr_equal(driver->ops[driver->n_ops - 1].function, FORM(WEIR_PERSISTENT));
	gone(n);
}

static void nobody_above(void **state)
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

static void those_above_try_nothing_of_no_use(void **state)
{
	struct rewritten rewritten = in_forms(1u << WEIR_PERSISTENT);
	unsigned n = welcomed(1);

	(void)state;
	usleep(50000);
	CUfunction kernel = kernel_of(300000, &rewritten);
	assert_int_equal(forms_of(n, kernel, 20), 0);
	assert_int_equal(tuned_for(kernel)->tuner.state, AUTOTUNE_WANTED);
	somebody_waits(n); /* now it is */
	assert_true(eventually(is_tried(kernel)));
	gone(n);
}

static void gates_are_enough_for_short_kernels(void **state)
{
	unsigned n = welcomed(0);
	struct rewritten rewritten = in_forms(1u << WEIR_PERSISTENT);
	CUfunction kernel = kernel_of(300000, &rewritten);

	(void)state;
	/* Gates are 400 us apart while nobody above shows demand. */
	assert_true(settles(n, kernel, BLOCKS));
	ops_of(n, kernel, BLOCKS);
	assert_ptr_equal(driver->ops[driver->n_ops - 1].function, kernel);

	/* And 100 us for a while after somebody did. */
	agent.demand[0]->word = 1;
	launch_call(n, kernel, BLOCKS);
	usleep(50000);
	agent.demand[0]->word = 0;
	ops_of(n, kernel, BLOCKS);
	assert_ptr_equal(driver->ops[driver->n_ops - 1].function, FORM(WEIR_PERSISTENT));
	gone(n);
}

/* Slices whose data stay in the cache: what is predicted by them is less than what needs a form, or
 * than half of what the tuned was made for, and neither is news. */
static void what_is_shorter_in_its_form_keeps_it(void **state)
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

/* A launch that is outstanding for so many us. */
static void runs_for(unsigned n, CUfunction kernel, useconds_t us)
{
	driver->streams_busy = driver->events_busy = 1;
	launch_call(n, kernel, BLOCKS);
	usleep(us);
	driver->streams_busy = driver->events_busy = 0;
	land(0);
	assert_true(eventually(!sampler_of(client)->armed));
}

/* A program that begins with little to do, as one that measures how long its kernels take. What
 * they take from then on must not seem others' making for long. */
static void first_launches_that_were_short_mislead_nobody(void **state)
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
		cmocka_unit_test(what_costs_too_much_stays_native),
		cmocka_unit_test(a_hopeless_form_is_launched_once),
		cmocka_unit_test(further_builds_are_tried),
		cmocka_unit_test(the_build_with_most_blocks_is_first),
		cmocka_unit_test(what_the_driver_refuses_is_not_tried_for_ever),
		cmocka_unit_test(work_that_changes_is_compared_at_the_same_time),
		cmocka_unit_test(a_form_is_in_use_at_once_if_somebody_waits),
		cmocka_unit_test(who_waits_finds_what_leaves_soonest_or_else_is_fastest),
		cmocka_unit_test(of_those_that_leave_as_soon_the_fastest_is_used),
		cmocka_unit_test(who_waits_is_not_kept_by_long_blocks),
		cmocka_unit_test(launches_take_turns_if_nobody_waits),
		cmocka_unit_test(a_launch_that_goes_on_is_known_to_be_long),
		cmocka_unit_test(the_best_is_compared_once_more),
		cmocka_unit_test(a_kernel_that_takes_longer_now_is_chosen_anew),
		cmocka_unit_test(a_form_that_had_more_to_do_is_not_hopeless),
		cmocka_unit_test(nobody_above),
		cmocka_unit_test(those_above_try_nothing_of_no_use),
		cmocka_unit_test(gates_are_enough_for_short_kernels),
		cmocka_unit_test(what_is_shorter_in_its_form_keeps_it),
		cmocka_unit_test(first_launches_that_were_short_mislead_nobody),
	};

	driver_load();
	return cmocka_run_group_tests(tests, agent_begin, agent_finish);
}
