/* Which kernels run in which form, and when that is decided anew. libweir's own sources, on a
 * driver that does nothing but be observable. */
#include "formed.h"

#include "gate.h"

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

static struct lane *first_lane(void)
{
	struct lanes *lanes = atomic_load(&client->lanes);

	return lanes && lanes->state == LANES_READY && atomic_load(&lanes->lane[0].taken)
		       ? &lanes->lane[0]
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
	launch_call(n, kernel, BLOCKS); /* has the lane made, if need be */
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
	const struct choice *choice = choice_for(kernel);
	assert_int_equal(choice->candidates[choice->in_use[WAITED_NOT]].plan.form, WEIR_PERSISTENT);
	assert_int_equal(choice->candidates[choice->in_use[WAITED_ALWAYS]].plan.form,
			 WEIR_RESUMABLE);
	driver->wide_elapsed_ns = 0;
	gone(n);
}

static void equals_find_what_makes_turns_cheap(void **state)
{
	struct rewritten rewritten = in_forms(1u << WEIR_PERSISTENT);
	unsigned n = welcomed(1);

	(void)state;
	usleep(50000);
	rewritten.variants[WEIR_RESUMABLE][0] = (struct variant){(CUfunction)(uintptr_t)NULL_WIDE};
	CUfunction kernel = kernel_of(3000000, &rewritten);
	driver->form_elapsed_ns = 3240000;
	driver->wide_elapsed_ns = 3150000;
	assert_true(settles(n, kernel, 100 * AT_ONCE));
	const struct choice *choice = choice_for(kernel);
	assert_int_equal(choice->in_use[WAITED_NOT], 0);
	assert_int_equal(choice->candidates[choice->in_use[WAITED_ALWAYS]].plan.form,
			 WEIR_PERSISTENT);
	assert_int_equal(choice->candidates[choice->in_use[WAITED_LONG]].plan.form, WEIR_RESUMABLE);
	client->worker.held_until = UINT64_MAX;
	assert_true(eventually(atomic_load(&client->waited) == WAITED_LONG));
	ops_of(n, kernel, 100 * AT_ONCE);
	assert_ptr_equal(driver->ops[driver->n_ops - 1].function, NULL_WIDE);
	client->worker.held_until = 0;
	driver->wide_elapsed_ns = 0;
	gone(n);
}

/* A kernel of 5 ms, of which slices cost 1 % and what leaves sooner 5 %. */
static CUfunction slices_are_cheap(struct rewritten *rewritten)
{
	*rewritten = in_forms(1u << WEIR_PERSISTENT);
	rewritten->variants[WEIR_SLICED][0] = (struct variant){(CUfunction)(uintptr_t)NULL_WIDE};
	CUfunction kernel = kernel_of(5000000, rewritten);
	driver->form_elapsed_ns = 5250000;
	driver->wide_elapsed_ns = 5050000;
	return kernel;
}

static void equals_find_long_slices(void **state)
{
	struct rewritten rewritten;
	unsigned n = welcomed(1);

	(void)state;
	usleep(50000);
	CUfunction kernel = slices_are_cheap(&rewritten);
	assert_true(settles(n, kernel, 100 * AT_ONCE));
	const struct choice *choice = choice_for(kernel);
	const struct plan *fine = &choice->candidates[choice->n - 2].plan,
			  *coarse = &choice->candidates[choice->n - 1].plan;
	assert_int_equal(fine->form, WEIR_SLICED);
	assert_int_equal(coarse->form, WEIR_SLICED);
	assert_in_range(coarse->step, 4 * fine->step, 8 * fine->step);
	assert_int_equal(choice->candidates[choice->in_use[WAITED_LONG]].plan.form, WEIR_SLICED);
	assert_int_equal(choice->candidates[choice->in_use[WAITED_ALWAYS]].plan.form,
			 WEIR_PERSISTENT);
	driver->wide_elapsed_ns = 0;
	gone(n);
}

/* One good candidate is enough for equals; all the others are tried when they wait no more. */
static void equals_do_not_wait_for_a_long_trial(void **state)
{
	struct rewritten rewritten;
	unsigned n = welcomed(1);

	(void)state;
	usleep(50000);
	client->worker.held_until = UINT64_MAX;
	assert_true(eventually(atomic_load(&client->waited) == WAITED_LONG));
	CUfunction kernel = slices_are_cheap(&rewritten);
	assert_true(settles(n, kernel, 100 * AT_ONCE) || settles(n, kernel, 100 * AT_ONCE));
	const struct choice *choice = choice_for(kernel);
	assert_int_equal(choice->untried, choice->first + 1);
	assert_int_equal(choice->in_use[WAITED_LONG], choice->first);
	assert_int_equal(choice->candidates[choice->first].plan.form, WEIR_SLICED);

	/* What it takes with others between its slices is nothing to go by. */
	unsigned dirty = choice->candidates[choice->first].dirty;
	driver->wide_elapsed_ns = 50000000;
	agent.control->hold = 1;
	measure_next();
	launch_call(n, kernel, 100 * AT_ONCE);
	assert_true(eventually(choice->candidates[choice->first].dirty == dirty + 1));
	assert_int_equal(choice->candidates[choice->first].least, 0);
	agent.control->hold = 0;
	driver->wide_elapsed_ns = 5050000;

	client->worker.held_until = 0;
	assert_true(eventually(choice->state == CHOICE_TRYING));
	assert_true(settles(n, kernel, 100 * AT_ONCE));
	assert_int_equal(choice->untried, 0);
	assert_int_equal(choice->candidates[choice->in_use[WAITED_ALWAYS]].plan.form,
			 WEIR_PERSISTENT);
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
	const struct choice *choice = choice_for(kernel);
	assert_int_equal(choice->candidates[choice->in_use[WAITED_ALWAYS]].plan.build, 1);
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
	assert_null(choice_for(kernel));
	/* Nor one that is held up by somebody above. */
	agent.demand[0]->word = 1;
	driver->last_busy = 1;
	launch_call(n, kernel, BLOCKS);
	usleep(50000);
	driver->last_busy = 0;
	agent.demand[0]->word = 0;
	usleep(50000);
	assert_null(choice_for(kernel));
	gone(n);
}

/* Five samples made it better than it is. */
static void the_best_is_compared_once_more(void **state)
{
	unsigned n = welcomed(0);
	struct rewritten rewritten = in_forms(1u << WEIR_PERSISTENT);
	CUfunction kernel = kernel_of(1000000, &rewritten);
	const struct choice *choice = NULL;
	bool again = false;

	(void)state;
	driver->form_elapsed_ns = 1000000;
	for (int i = 0; i < 400 && !again; i++) {
		launch_call(n, kernel, BLOCKS);
		land(0);
		usleep(2000);
		choice = choice_for(kernel);
		for (size_t k = 1; choice && k < choice->n; k++)
			again |= choice->candidates[k].again;
	}
	assert_true(again);
	driver->form_elapsed_ns = 1025000;
	assert_true(settles(n, kernel, BLOCKS));
	assert_int_equal(choice->in_use[WAITED_NOT], 0);
	gone(n);
}

static void a_kernel_that_takes_longer_now_is_chosen_anew(void **state)
{
	unsigned n = welcomed(0);
	struct rewritten rewritten = in_forms(1u << WEIR_PERSISTENT | 1u << WEIR_RESUMABLE);
	CUfunction kernel = kernel_of(200000, &rewritten);

	(void)state;
	assert_true(settles(n, kernel, BLOCKS));
	const struct choice *choice = choice_for(kernel);
	assert_int_equal(choice->candidates[choice->in_use[WAITED_NOT]].plan.form, WEIR_PERSISTENT);

	/* Blocks of 640 us are to leave inside. */
	driver->elapsed_ns = driver->form_elapsed_ns = 20000000;
	for (int i = 0; i < 200 && choice->made_for != 20000000; i++)
		ops_of(n, kernel, BLOCKS), usleep(6000);
	assert_int_equal(choice->made_for, 20000000);
	assert_true(settles(n, kernel, BLOCKS));
	assert_int_equal(choice->candidates[choice->in_use[WAITED_NOT]].plan.form, WEIR_RESUMABLE);
	gone(n);
}

/* As long as the agent has not seen them, equals run beside each other. */
static void what_takes_longer_for_a_moment_is_not_chosen_anew(void **state)
{
	unsigned n = welcomed(1);
	struct rewritten rewritten = in_forms(1u << WEIR_PERSISTENT);
	CUfunction kernel = kernel_of(1000000, &rewritten);

	(void)state;
	assert_true(settles(n, kernel, BLOCKS));
	const struct choice *choice = choice_for(kernel);
	driver->elapsed_ns = driver->form_elapsed_ns = 8000000;
	for (unsigned i = 0; i < 5; i++) {
		measure_next();
		launch_call(n, kernel, BLOCKS);
		land(0);
		assert_true(eventually(choice->strange > i));
	}
	assert_int_equal(choice->state, CHOICE_SETTLED);
	usleep(200000);
	measure_next();
	launch_call(n, kernel, BLOCKS);
	land(0);
	assert_true(eventually(choice->state != CHOICE_SETTLED));
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
	assert_int_equal(choice_for(kernel)->state, CHOICE_WANTED);
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

/* Gates are as dense while equals have turns; who has the next one is not to wait for the rest of a
 * chain. */
static void short_kernels_need_no_forms_among_equals(void **state)
{
	unsigned n = welcomed(0);
	struct rewritten rewritten = in_forms(1u << WEIR_PERSISTENT);
	CUfunction kernel = kernel_of(300000, &rewritten);

	(void)state;
	assert_true(settles(n, kernel, BLOCKS));
	agent.control->flags = WEIR_CONTROL_HOLDABLE | WEIR_CONTROL_CONTENDED;
	assert_true(eventually(client->gate_interval == GATE_INTERVAL_CONTENDED));
	ops_of(n, kernel, BLOCKS);
	assert_ptr_equal(driver->ops[driver->n_ops - 1].function, kernel);
	agent.control->flags |= WEIR_CONTROL_URGENT;
	assert_true(eventually(atomic_load(&client->waited) == WAITED_ALWAYS));
	ops_of(n, kernel, BLOCKS);
	assert_ptr_equal(driver->ops[driver->n_ops - 1].function, FORM(WEIR_PERSISTENT));
	agent.control->flags = 0;
	gone(n);
}

/* The function of the next launch, while equals must not wait and those with shorter launches go
 * ahead of what it has not begun. */
static void *launched_among_equals(unsigned n, CUfunction kernel, unsigned blocks)
{
	agent.control->flags = WEIR_CONTROL_HOLDABLE | WEIR_CONTROL_CONTENDED |
			       WEIR_CONTROL_URGENT | WEIR_CONTROL_AHEAD;
	assert_true(eventually(atomic_load(&client->waited) == WAITED_ALWAYS));
	assert_true(eventually(atomic_load(&client->yields) == !agent.control->above));
	ops_of(n, kernel, blocks);
	for (size_t i = 0; i < driver->n_ops; i++)
		if (driver->ops[i].kind == NULL_LAUNCH)
			return driver->ops[i].function;
	return NULL;
}

/* Who goes ahead waits for what has begun alone: no form is worth its price then, if blocks are
 * short. */
static void who_goes_ahead_needs_no_form(void **state)
{
	struct rewritten rewritten = in_forms(1u << WEIR_PERSISTENT);

	(void)state;
	driver->mps = 1;
	unsigned n = welcomed(0);
	agent.control->above = 0;
	usleep(50000);
	CUfunction dear = kernel_of(5000000, &rewritten);
	driver->form_elapsed_ns = 5300000;
	assert_true(settles(n, dear, 100 * AT_ONCE));
	assert_ptr_equal(launched_among_equals(n, dear, 100 * AT_ONCE), dear);
	assert_int_equal(driver->ops[driver->n_ops - 1].priority, -2);

	/* Somebody above waits for all of them. */
	agent.control->above = 1;
	assert_ptr_equal(launched_among_equals(n, dear, 100 * AT_ONCE), FORM(WEIR_PERSISTENT));
	agent.control->above = 0;

	/* Blocks of 1.25 ms. */
	agent.control->flags = 0;
	CUfunction slow = kernel_of(5000000, &rewritten);
	driver->form_elapsed_ns = 5300000;
	assert_true(settles(n, slow, 4 * AT_ONCE));
	assert_ptr_equal(launched_among_equals(n, slow, 4 * AT_ONCE), FORM(WEIR_PERSISTENT));

	/* So long that it is not told apart from longer ones. */
	agent.control->flags = 0;
	CUfunction longest = kernel_of(20000000, &rewritten);
	driver->form_elapsed_ns = 21000000;
	assert_true(settles(n, longest, 1000 * AT_ONCE));
	assert_ptr_equal(launched_among_equals(n, longest, 1000 * AT_ONCE), FORM(WEIR_PERSISTENT));

	/* What is better in any case is in use, and is told apart as well. */
	agent.control->flags = 0;
	CUfunction better = kernel_of(5000000, &rewritten);
	driver->form_elapsed_ns = 4800000;
	assert_true(settles(n, better, 100 * AT_ONCE));
	assert_ptr_equal(launched_among_equals(n, better, 100 * AT_ONCE), FORM(WEIR_PERSISTENT));
	for (size_t i = 0; i < driver->n_ops; i++)
		if (is_form(&driver->ops[i]))
			assert_int_equal(driver->ops[i].priority, -2);

	/* Who goes ahead of nothing that is short: it is not told apart. */
	agent.control->flags = 0;
	CUfunction brief = kernel_of(1500000, &rewritten);
	driver->form_elapsed_ns = 1600000;
	assert_true(settles(n, brief, 100 * AT_ONCE));
	assert_ptr_equal(launched_among_equals(n, brief, 100 * AT_ONCE), FORM(WEIR_PERSISTENT));
	agent.control->flags = 0;
	driver->mps = 0;
	gone(n);
}

/* Among equals a launch takes as long as these make it: one that is short enough alone stays as it
 * is. */
static void what_others_lengthen_gets_no_form(void **state)
{
	unsigned n = welcomed(0);
	struct rewritten rewritten = in_forms(1u << WEIR_PERSISTENT);
	CUfunction kernel = kernel_of(90000, &rewritten);

	(void)state;
	for (unsigned i = 0; i < 4; i++)
		ops_of(n, kernel, BLOCKS);
	assert_true(eventually(!client->sampler.armed));
	agent.control->flags = WEIR_CONTROL_HOLDABLE | WEIR_CONTROL_CONTENDED;
	assert_true(eventually(client->gate_interval == GATE_INTERVAL_CONTENDED));
	driver->elapsed_ns = 150000;
	for (unsigned i = 0; i < 5; i++) {
		measure_next();
		ops_of(n, kernel, BLOCKS);
		assert_true(eventually(!client->sampler.armed));
	}
	assert_null(choice_for(kernel));
	agent.control->flags = 0;
	gone(n);
}

/* A launch that is outstanding for so many us. */
static void runs_for(unsigned n, CUfunction kernel, useconds_t us)
{
	driver->streams_busy = driver->events_busy = 1;
	launch_call(n, kernel, BLOCKS);
	usleep(us);
	driver->streams_busy = driver->events_busy = 0;
	land(0);
	assert_true(eventually(!client->sampler.armed));
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
		assert_true(eventually(!client->sampler.armed));
		if (among_others) {
			agent.control->flags = WEIR_CONTROL_HOLDABLE | WEIR_CONTROL_CONTENDED;
			assert_true(eventually(client->gate_interval == GATE_INTERVAL_CONTENDED));
		}
		driver->elapsed_ns = driver->form_elapsed_ns = 40000000;
		for (; !choice_for(kernel) && launches < 100; launches++)
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
		cmocka_unit_test(equals_find_what_makes_turns_cheap),
		cmocka_unit_test(equals_find_long_slices),
		cmocka_unit_test(equals_do_not_wait_for_a_long_trial),
		cmocka_unit_test(what_takes_longer_for_a_moment_is_not_chosen_anew),
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
		cmocka_unit_test(short_kernels_need_no_forms_among_equals),
		cmocka_unit_test(who_goes_ahead_needs_no_form),
		cmocka_unit_test(what_others_lengthen_gets_no_form),
		cmocka_unit_test(first_launches_that_were_short_mislead_nobody),
	};

	driver_load();
	return cmocka_run_group_tests(tests, agent_begin, agent_finish);
}
