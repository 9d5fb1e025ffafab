/* Chains: how many continuations a launch in a form has, and what is learned from evictions. On the
 * null driver. */
#include "formed.h"

#include "gates/gate.h"
#include "gates/waiting.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <unistd.h>

#include <cmocka.h>

static void evictions_make_chains_longer(void **state)
{
	unsigned n = welcomed(0);
	struct rewritten rewritten = in_forms(1u << WEIR_PERSISTENT);
	CUfunction kernel = kernel_of(950000, &rewritten);

	(void)state;
	assert_true(settles(n, kernel, BLOCKS));
	driver->n_ops = 0;
	launch_call(n, kernel, BLOCKS);
	assert_in_range(driver->n_ops, 3, 4); /* one continuation */
	land(1);                              /* which it needed: there may be more to come */
	assert_true(eventually(agent.status->form_evictions[WEIR_PERSISTENT] == 1));
	assert_true(agent.status->form_launches[WEIR_PERSISTENT] > 0);
	assert_int_equal(agent.status->evictions, 1);
	assert_int_equal(ops_of(n, kernel, BLOCKS), 1 + 2 * 10); /* 0.95 ms / 100 us */

	for (int i = 0; i < 100; i++)
		ops_of(n, kernel, BLOCKS);
	assert_int_equal(ops_of(n, kernel, BLOCKS), 3); /* it is never evicted now */
	gone(n);
}

static size_t continuations_of(unsigned n, CUfunction kernel)
{
	ops_of(n, kernel, BLOCKS); /* may begin with a gate */
	return ops_of(n, kernel, BLOCKS) / 2;
}

/* Below others a long launch has a continuation for each 1.5 ms: it may be queued before they have
 * work. After they have gone others may come. */
static void chains_are_longer_below_others(void **state)
{
	struct rewritten rewritten = in_forms(1u << WEIR_PERSISTENT);
	CUfunction kernel;
	unsigned n = welcomed(0);

	(void)state;
	kernel = kernel_of(16000000, &rewritten);
	assert_true(settles(n, kernel, BLOCKS));
	assert_int_equal(continuations_of(n, kernel), 11);
	assert_true(eventually(atomic_load(&waiters_of(client)->below_lately)));
	agent.control->above = 0;
	assert_int_equal(continuations_of(n, kernel), 11);
	usleep(50000);
	assert_int_equal(continuations_of(n, kernel), 11);
	gone(n);

	n = context_welcomed(0);
	kernel = kernel_of(16000000, &rewritten);
	assert_true(settles(n, kernel, BLOCKS));
	assert_int_equal(continuations_of(n, kernel), 3);
	gone(n);
}

/* Long launches of which some are queued: whatever each may have alone, together they stay below
 * what the driver takes without waiting. */
static void queued_launches_share_continuations(void **state)
{
	unsigned n = welcomed(0);
	struct rewritten rewritten = in_forms(1u << WEIR_PERSISTENT);
	CUfunction kernel = kernel_of(20000000, &rewritten);
	size_t ops[8], all = 0;

	(void)state;
	assert_true(settles(n, kernel, BLOCKS));
	driver->n_ops = 0;
	launch_call(n, kernel, BLOCKS);
	land((uint32_t)driver->n_ops / 2);
	assert_true(eventually(agent.status->evictions > 0));
	for (unsigned i = 0; i < 8; i++) {
		driver->n_ops = 0;
		launch_call(n, kernel, BLOCKS);
		ops[i] = driver->n_ops;
		all += ops[i];
	}
	assert_int_equal(ops[0], 1 + 2 * 201); /* 20 ms / 100 us */
	assert_int_equal(ops[7], 1 + 2 * LINKS_LEAST);
	assert_in_range(all, 2 * LINKS_MAX, 2 * LINKS_MAX + 8);
	land(0); /* all of them */
	gone(n);
}

/* Continuations that are not needed cost some microseconds each: there are as many as there may be
 * only until it is known how many are needed. */
static void a_chain_that_was_too_short_is_long_for_a_while(void **state)
{
	unsigned n = welcomed(0);
	struct rewritten rewritten = in_forms(1u << WEIR_PERSISTENT);
	CUfunction kernel = kernel_of(20000000, &rewritten);
	const size_t all = 1 + 2 * 201; /* 20 ms / 100 us */

	(void)state;
	assert_true(settles(n, kernel, BLOCKS));
	uint64_t before = agent.status->evictions;
	driver->n_ops = 0;
	launch_call(n, kernel, BLOCKS);
	uint32_t continuations = (uint32_t)driver->n_ops / 2;
	land(continuations); /* all that it had */
	assert_true(eventually(agent.status->evictions == before + continuations));
	for (unsigned i = 0; i < 8; i++) {
		driver->n_ops = 0;
		launch_call(n, kernel, BLOCKS);
		assert_int_equal(driver->n_ops, all);
		before = agent.status->evictions;
		land(continuations + 2);
		assert_true(eventually(agent.status->evictions == before + continuations + 2));
	}
	/* Twice that, or the first expectation. */
	driver->n_ops = 0;
	launch_call(n, kernel, BLOCKS);
	assert_in_range(driver->n_ops, 1 + 2 * (3 + 2 * (continuations + 2) - 1),
			1 + 2 * (3 + 4 * continuations));
	land(0);
	gone(n);
}

/* The chain is longer or shorter each time, and takes time, too, if nothing is left to do. */
static void predictions_leave_chains_out(void **state)
{
	unsigned n = welcomed(0);
	struct rewritten rewritten = in_forms(1u << WEIR_PERSISTENT);
	CUfunction kernel = kernel_of(20000000, &rewritten);
	const uint64_t link = 4600;

	(void)state;
	assert_true(settles(n, kernel, BLOCKS));
	assert_true(eventually(!sampler_of(client)->armed));
	const struct kernel_time *time = kernel_find(tuned_for(kernel)->key);
	for (int i = 0; i < 1000 && kernel_mean(time) > 20000000 - 2 * link; i++) {
		ops_of(n, kernel, BLOCKS);
		usleep(2000);
	}
	/* A continuation for each 1.5 ms. */
	assert_in_range(kernel_mean(time), 20000000 - 14 * link, 20000000 - 2 * link);
	gone(n);
}

/* Launches of which some are sampled, each evicted so often. */
static void evicted_launches(unsigned n, CUfunction kernel, unsigned evictions)
{
	for (int i = 0; i < 40; i++) {
		launch_call(n, kernel, BLOCKS);
		land(evictions);
		usleep(1000);
	}
	assert_true(eventually(!sampler_of(client)->armed));
}

/* A kernel of 1 ms runs 0.52 ms, leaves, and runs 0.52 ms again: 40 us are lost, and 4.6 us for
 * each link of the chain, 10 at most, that were in its time when it was not evicted. */
static void what_an_eviction_costs_is_learned(void **state)
{
	unsigned n = welcomed(1);
	struct rewritten rewritten = in_forms(1u << WEIR_PERSISTENT);
	CUfunction kernel = kernel_of(1000000, &rewritten);

	(void)state;
	assert_true(settles(n, kernel, BLOCKS));
	assert_true(eventually(!sampler_of(client)->armed));
	driver->form_elapsed_ns = 520000;
	evicted_launches(n, kernel, 1); /* nobody contends: nothing is asked of the GPU for it */
	assert_int_equal(learning_of(client)->eviction_cost, 0);
	agent.control->flags = WEIR_CONTROL_HOLDABLE | WEIR_CONTROL_CONTENDED;
	assert_true(eventually(gating_of(client)->interval == GATE_INTERVAL_CONTENDED));
	evicted_launches(n, kernel, 2);
	assert_int_equal(learning_of(client)->eviction_cost, 0);
	evicted_launches(n, kernel, 1);
	assert_in_range(kernel_find(tuned_for(kernel)->key)->eviction, 40000, 40000 + 46000);
	/* Less, as long as it is remembered that the kernel was launched as it is. */
	assert_true(eventually(agent.status->eviction_cost > 5000));
	assert_true(agent.status->eviction_cost < 40000 + 46000 + 4600);
	agent.control->flags = 0;
	gone(n);
}

struct caller {
	CUfunction kernel;
	CUstream stream;
};

static void *many_launches(void *data)
{
	const struct caller *caller = data;

	for (int i = 0; i < 150; i++)
		cuLaunchKernel(caller->kernel, BLOCKS, 1, 1, 64, 1, 1, 0, caller->stream, params,
			       NULL);
	return NULL;
}

static void chains_are_not_mixed(void **state)
{
	unsigned n = welcomed(1);
	struct rewritten rewritten = in_forms(1u << WEIR_PERSISTENT);
	CUfunction kernel = kernel_of(2000000, &rewritten);
	struct caller caller = {kernel, STREAM(n, 1)};
	pthread_t threads[3];
	uint32_t serial = 0, continuations = 0;

	(void)state;
	assert_true(settles(n, kernel, BLOCKS));
	driver->n_ops = 0;
	for (size_t i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, many_launches, &caller);
	for (size_t i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	for (size_t i = 0; i < driver->n_ops; i++) {
		const struct null_op *op = &driver->ops[i];
		if (op->kind != NULL_LAUNCH)
			continue;
		assert_true(is_form(op));
		if (hidden_of(op)->serial != serial)
			assert_int_equal(continuations % 3, 0);
		serial = hidden_of(op)->serial;
		continuations++;
	}
	assert_int_equal(continuations, 3 * 3 * 150);
	land(0);
	gone(n);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(evictions_make_chains_longer),
		cmocka_unit_test(chains_are_longer_below_others),
		cmocka_unit_test(queued_launches_share_continuations),
		cmocka_unit_test(a_chain_that_was_too_short_is_long_for_a_while),
		cmocka_unit_test(predictions_leave_chains_out),
		cmocka_unit_test(what_an_eviction_costs_is_learned),
		cmocka_unit_test(chains_are_not_mixed),
	};

	driver_load();
	return cmocka_run_group_tests(tests, agent_begin, agent_finish);
}
