/* Which form a kernel runs in while same-level clients alternate. */
#include "formed.h"

#include "gates/gate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

static void same_level_clients_get_the_cheapest_quantum(void **state)
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
	const struct tuned_kernel *tuned = tuned_for(kernel);
	assert_int_equal(tuned->tuner.in_use[WAITING_NOBODY], 0);
	assert_int_equal(config_in_use(tuned, WAITING_URGENT)->form, WEIR_PERSISTENT);
	assert_int_equal(config_in_use(tuned, WAITING_SAME_LEVEL)->form, WEIR_RESUMABLE);
	waiters_of(client)->held_until = UINT64_MAX;
	assert_true(eventually(atomic_load(&waiters_of(client)->waiting) == WAITING_SAME_LEVEL));
	ops_of(n, kernel, 100 * AT_ONCE);
	assert_ptr_equal(driver->ops[driver->n_ops - 1].function, NULL_WIDE);
	waiters_of(client)->held_until = 0;
	driver->wide_elapsed_ns = 0;
	gone(n);
}

/* A kernel of 5 ms. Slices cost 1 %, persistent launches 5 %. */
static CUfunction slices_are_cheap(struct rewritten *rewritten)
{
	*rewritten = in_forms(1u << WEIR_PERSISTENT);
	rewritten->variants[WEIR_SLICED][0] = (struct variant){(CUfunction)(uintptr_t)NULL_WIDE};
	CUfunction kernel = kernel_of(5000000, rewritten);
	driver->form_elapsed_ns = 5250000;
	driver->wide_elapsed_ns = 5050000;
	return kernel;
}

static void same_level_clients_get_long_slices(void **state)
{
	struct rewritten rewritten;
	unsigned n = welcomed(1);

	(void)state;
	usleep(50000);
	CUfunction kernel = slices_are_cheap(&rewritten);
	assert_true(settles(n, kernel, 100 * AT_ONCE));
	const struct tuned_kernel *tuned = tuned_for(kernel);
	const struct launch_config *fine = &tuned->tuner.candidates[tuned->tuner.n - 2].config,
				   *coarse = &tuned->tuner.candidates[tuned->tuner.n - 1].config;
	assert_int_equal(fine->form, WEIR_SLICED);
	assert_int_equal(coarse->form, WEIR_SLICED);
	assert_in_range(coarse->step, 4 * fine->step, 8 * fine->step);
	assert_int_equal(config_in_use(tuned, WAITING_SAME_LEVEL)->form, WEIR_SLICED);
	assert_int_equal(config_in_use(tuned, WAITING_URGENT)->form, WEIR_PERSISTENT);
	driver->wide_elapsed_ns = 0;
	gone(n);
}

/* One good candidate suffices while they wait; the others are compared later. */
static void tuning_is_postponed_while_same_level_clients_wait(void **state)
{
	struct rewritten rewritten;
	unsigned n = welcomed(1);

	(void)state;
	usleep(50000);
	waiters_of(client)->held_until = UINT64_MAX;
	assert_true(eventually(atomic_load(&waiters_of(client)->waiting) == WAITING_SAME_LEVEL));
	CUfunction kernel = slices_are_cheap(&rewritten);
	assert_true(settles(n, kernel, 100 * AT_ONCE) || settles(n, kernel, 100 * AT_ONCE));
	const struct tuned_kernel *tuned = tuned_for(kernel);
	assert_int_equal(tuned->tuner.postponed, tuned->tuner.first + 1);
	assert_int_equal(tuned->tuner.in_use[WAITING_SAME_LEVEL], tuned->tuner.first);
	assert_int_equal(tuned->tuner.candidates[tuned->tuner.first].config.form, WEIR_SLICED);

	/* A sample with other clients' work between the slices does not count. */
	unsigned dirty = tuned->tuner.candidates[tuned->tuner.first].spoiled;
	driver->wide_elapsed_ns = 50000000;
	agent.control->hold = 1;
	measure_next();
	launch_call(n, kernel, 100 * AT_ONCE);
	assert_true(eventually(tuned->tuner.candidates[tuned->tuner.first].spoiled == dirty + 1));
	assert_int_equal(tuned->tuner.candidates[tuned->tuner.first].least_spoiled, 0);
	agent.control->hold = 0;
	driver->wide_elapsed_ns = 5050000;

	waiters_of(client)->held_until = 0;
	assert_true(eventually(tuned->tuner.state == AUTOTUNE_COMPARING));
	assert_true(settles(n, kernel, 100 * AT_ONCE));
	assert_int_equal(tuned->tuner.postponed, 0);
	assert_int_equal(config_in_use(tuned, WAITING_URGENT)->form, WEIR_PERSISTENT);
	driver->wide_elapsed_ns = 0;
	gone(n);
}

/* Until the agent sees them, same-level clients run side by side and slow each other. */
static void a_kernel_that_is_slow_for_a_moment_is_not_tuned_again(void **state)
{
	unsigned n = welcomed(1);
	struct rewritten rewritten = in_forms(1u << WEIR_PERSISTENT);
	CUfunction kernel = kernel_of(1000000, &rewritten);

	(void)state;
	assert_true(settles(n, kernel, BLOCKS));
	const struct tuned_kernel *tuned = tuned_for(kernel);
	driver->elapsed_ns = driver->form_elapsed_ns = 8000000;
	for (unsigned i = 0; i < 5; i++) {
		measure_next();
		launch_call(n, kernel, BLOCKS);
		land(0);
		assert_true(eventually(tuned->tuner.outliers > i));
	}
	assert_int_equal(tuned->tuner.state, AUTOTUNE_SETTLED);
	usleep(200000);
	measure_next();
	launch_call(n, kernel, BLOCKS);
	land(0);
	assert_true(eventually(tuned->tuner.state != AUTOTUNE_SETTLED));
	gone(n);
}

/* Gates are dense then. A chain would make the next client wait for its last continuation. */
static void short_kernels_need_no_forms_among_same_level_clients(void **state)
{
	unsigned n = welcomed(0);
	struct rewritten rewritten = in_forms(1u << WEIR_PERSISTENT);
	CUfunction kernel = kernel_of(300000, &rewritten);

	(void)state;
	assert_true(settles(n, kernel, BLOCKS));
	agent.control->flags = WEIR_CONTROL_HOLDABLE | WEIR_CONTROL_CONTENDED;
	assert_true(eventually(gating_of(client)->interval == GATE_INTERVAL_CONTENDED));
	ops_of(n, kernel, BLOCKS);
	assert_ptr_equal(driver->ops[driver->n_ops - 1].function, kernel);
	agent.control->flags |= WEIR_CONTROL_URGENT;
	assert_true(eventually(atomic_load(&waiters_of(client)->waiting) == WAITING_URGENT));
	ops_of(n, kernel, BLOCKS);
	assert_ptr_equal(driver->ops[driver->n_ops - 1].function, FORM(WEIR_PERSISTENT));
	agent.control->flags = 0;
	gone(n);
}

/* The function of the next launch, while same-level clients are urgent and their shorter launches
 * overtake its waiting blocks. */
static void *launched_among_same_level(unsigned n, CUfunction kernel, unsigned blocks)
{
	agent.control->flags = WEIR_CONTROL_HOLDABLE | WEIR_CONTROL_CONTENDED |
			       WEIR_CONTROL_URGENT | WEIR_CONTROL_AHEAD;
	assert_true(eventually(atomic_load(&waiters_of(client)->waiting) == WAITING_URGENT));
	assert_true(
		eventually(atomic_load(&launch_order_of(client)->yields) == !agent.control->above));
	ops_of(n, kernel, blocks);
	for (size_t i = 0; i < driver->n_ops; i++)
		if (driver->ops[i].kind == NULL_LAUNCH)
			return driver->ops[i].function;
	return NULL;
}

/* A client that overtakes waits for running blocks only. If these are short, no form is worth its
 * price. */
static void overtaken_kernels_need_no_form(void **state)
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
	assert_ptr_equal(launched_among_same_level(n, dear, 100 * AT_ONCE), dear);
	assert_int_equal(driver->ops[driver->n_ops - 1].priority, -2);

	/* A higher-level client waits for all blocks. */
	agent.control->above = 1;
	assert_ptr_equal(launched_among_same_level(n, dear, 100 * AT_ONCE), FORM(WEIR_PERSISTENT));
	agent.control->above = 0;

	/* Blocks of 1.25 ms. */
	agent.control->flags = 0;
	CUfunction slow = kernel_of(5000000, &rewritten);
	driver->form_elapsed_ns = 5300000;
	assert_true(settles(n, slow, 4 * AT_ONCE));
	assert_ptr_equal(launched_among_same_level(n, slow, 4 * AT_ONCE), FORM(WEIR_PERSISTENT));

	/* The longest launches share one priority, so none overtakes another. */
	agent.control->flags = 0;
	CUfunction longest = kernel_of(20000000, &rewritten);
	driver->form_elapsed_ns = 21000000;
	assert_true(settles(n, longest, 1000 * AT_ONCE));
	assert_ptr_equal(launched_among_same_level(n, longest, 1000 * AT_ONCE),
			 FORM(WEIR_PERSISTENT));

	/* A form that is faster than native is used anyway, with a priority too. */
	agent.control->flags = 0;
	CUfunction better = kernel_of(5000000, &rewritten);
	driver->form_elapsed_ns = 4800000;
	assert_true(settles(n, better, 100 * AT_ONCE));
	assert_ptr_equal(launched_among_same_level(n, better, 100 * AT_ONCE),
			 FORM(WEIR_PERSISTENT));
	for (size_t i = 0; i < driver->n_ops; i++)
		if (is_form(&driver->ops[i]))
			assert_int_equal(driver->ops[i].priority, -2);

	/* Short launches share one priority. */
	agent.control->flags = 0;
	CUfunction brief = kernel_of(1500000, &rewritten);
	driver->form_elapsed_ns = 1600000;
	assert_true(settles(n, brief, 100 * AT_ONCE));
	assert_ptr_equal(launched_among_same_level(n, brief, 100 * AT_ONCE), FORM(WEIR_PERSISTENT));
	agent.control->flags = 0;
	driver->mps = 0;
	gone(n);
}

static void a_kernel_that_only_others_make_long_gets_no_form(void **state)
{
	unsigned n = welcomed(0);
	struct rewritten rewritten = in_forms(1u << WEIR_PERSISTENT);
	CUfunction kernel = kernel_of(90000, &rewritten);

	(void)state;
	for (unsigned i = 0; i < 4; i++)
		ops_of(n, kernel, BLOCKS);
	assert_true(eventually(!sampler_of(client)->armed));
	agent.control->flags = WEIR_CONTROL_HOLDABLE | WEIR_CONTROL_CONTENDED;
	assert_true(eventually(gating_of(client)->interval == GATE_INTERVAL_CONTENDED));
	driver->elapsed_ns = 150000;
	for (unsigned i = 0; i < 5; i++) {
		measure_next();
		ops_of(n, kernel, BLOCKS);
		assert_true(eventually(!sampler_of(client)->armed));
	}
	assert_null(tuned_for(kernel));
	agent.control->flags = 0;
	gone(n);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(same_level_clients_get_the_cheapest_quantum),
		cmocka_unit_test(same_level_clients_get_long_slices),
		cmocka_unit_test(tuning_is_postponed_while_same_level_clients_wait),
		cmocka_unit_test(a_kernel_that_is_slow_for_a_moment_is_not_tuned_again),
		cmocka_unit_test(short_kernels_need_no_forms_among_same_level_clients),
		cmocka_unit_test(overtaken_kernels_need_no_form),
		cmocka_unit_test(a_kernel_that_only_others_make_long_gets_no_form),
	};

	driver_load();
	return cmocka_run_group_tests(tests, agent_begin, agent_finish);
}
