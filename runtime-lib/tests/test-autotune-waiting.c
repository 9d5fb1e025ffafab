/* Which form a kernel runs in while higher-level clients wait, and while nobody does. */
#include "formed.h"

#include "gates/gate.h"

#include "weir/base.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

static struct preempt_slot *first_slot(void)
{
	struct preempt_slots *slots = atomic_load(&preempting_of(client)->slots);

	return slots && slots->state == SLOTS_READY && atomic_load(&slots->slot[0].taken)
		       ? &slots->slot[0]
		       : NULL;
}

static void a_form_is_used_at_once_while_somebody_waits(void **state)
{
	struct rewritten rewritten = in_forms(1u << WEIR_PERSISTENT);
	unsigned n = welcomed(1);

	(void)state;
	somebody_waits(n);
	CUfunction kernel = kernel_of(2000000, &rewritten);
	launch_call(n, kernel, BLOCKS);
	assert_true(eventually(is_tried(kernel)));
	launch_call(n, kernel, BLOCKS); /* the worker makes the slot */
	assert_true(eventually(first_slot() != NULL));
	land(0);
	assert_true(eventually(agent.status->comparing == 1));
	assert_in_range(forms_of(n, kernel, 50), 45, 50); /* three native samples */

	/* It stays in use when the comparison ends. */
	assert_true(settles(n, kernel, BLOCKS));
	assert_true(eventually(agent.status->comparing == 0));
	assert_int_equal(forms_of(n, kernel, 5), 5);
	gone(n);
}

/* Which build is in use while somebody waits; natively the kernel takes 1 ms. */
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

static void while_somebody_waits_the_soonest_to_leave_or_the_fastest_is_used(void **state)
{
	(void)state;
	assert_ptr_equal(in_use_if_somebody_waits(1080000, 1020000), FORM(WEIR_PERSISTENT));
	assert_ptr_equal(in_use_if_somebody_waits(1200000, 1120000), NULL_WIDE);
	assert_false((uintptr_t)in_use_if_somebody_waits(1300000, 1300000) >= NULL_FORM);
}

/* Blocks of 2.5 ms: a persistent launch leaves too late. */
static void long_blocks_are_not_drained_while_somebody_waits(void **state)
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
	assert_int_equal(config_in_use(tuned, WAITING_NOBODY)->form, WEIR_PERSISTENT);
	assert_int_equal(config_in_use(tuned, WAITING_URGENT)->form, WEIR_RESUMABLE);
	driver->wide_elapsed_ns = 0;
	gone(n);
}

/* A second build with equal tickets. */
static void of_candidates_that_leave_as_soon_the_fastest_is_used(void **state)
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
	assert_int_equal(config_in_use(tuned, WAITING_URGENT)->build, 1);
	driver->wide_elapsed_ns = 0;
	gone(n);
}

static void native_and_form_alternate_while_nobody_waits(void **state)
{
	struct rewritten rewritten = in_forms(1u << WEIR_PERSISTENT);
	unsigned n = welcomed(1);

	(void)state;
	usleep(50000);
	CUfunction kernel = kernel_of(2000000, &rewritten);
	launch_call(n, kernel, BLOCKS);
	assert_true(eventually(is_tried(kernel)));
	launch_call(n, kernel, BLOCKS);
	assert_true(eventually(first_slot() != NULL));
	land(0);
	assert_in_range(forms_of(n, kernel, 8), 1, 6);
	gone(n);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_form_is_used_at_once_while_somebody_waits),
		cmocka_unit_test(while_somebody_waits_the_soonest_to_leave_or_the_fastest_is_used),
		cmocka_unit_test(of_candidates_that_leave_as_soon_the_fastest_is_used),
		cmocka_unit_test(long_blocks_are_not_drained_while_somebody_waits),
		cmocka_unit_test(native_and_form_alternate_while_nobody_waits),
	};

	driver_load();
	return cmocka_run_group_tests(tests, agent_begin, agent_finish);
}
