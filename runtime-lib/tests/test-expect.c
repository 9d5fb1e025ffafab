/* Hints of programs, and what keeps the GPU until their launch comes, on the null driver. */
#include "gates/expect.h"

#include "inside.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define WEIR_LIBRARY
#include "weir/weir.h"

#define KERNEL ((CUfunction)(uintptr_t)0x9000)

static struct expecting *expecting;

static void launch(unsigned n)
{
	assert_int_equal(cuLaunchKernel(KERNEL, 1, 1, 1, 32, 1, 1, 0, STREAM(n, 1), NULL, NULL),
			 CUDA_SUCCESS);
}

static bool shown(void)
{
	return agent.demand[0]->word != 0;
}

static void finish_work(unsigned n)
{
	assert_int_equal(cuStreamSynchronize(STREAM(n, 1)), CUDA_SUCCESS);
	assert_true(eventually(!shown()));
}

static void use(const char *name)
{
	setenv("WEIR_EXPECT", name, 1);
	expect_settings();
}

static unsigned context(uint8_t level, unsigned below)
{
	unsigned n = context_welcomed(level);

	agent.control->below = below;
	expecting = expecting_of(client);
	cuStreamSynchronize(STREAM(n, 1));
	return n;
}

static void gone(unsigned n)
{
	agent.control->below = 0;
	context_gone(n);
}

/* A client whose first hint has made all ready, and whose GPU has done what that put. */
static unsigned context_ready(void)
{
	unsigned n = context(2, 1);

	finish_work(n);
	assert_int_equal(weir_expect(1), 0);
	assert_true(eventually(expecting->state == EXPECT_READY));
	assert_int_equal(expecting->held, 0);
	assert_int_equal(expecting->words->released, 1);
	expecting->words->done = 1;
	assert_true(eventually(!shown()));
	driver->n_ops = 0;
	return n;
}

static void programs_that_are_not_governed_are_told(void **state)
{
	(void)state;
	cuCtxSetCurrent(NULL);
	assert_int_equal(weir_available(), 0);
	assert_int_equal(weir_expect(100), -EAGAIN);
}

static void a_hint_shows_demand(void **state)
{
	(void)state;
	use("demand");
	unsigned n = context(2, 1);
	finish_work(n);
	assert_int_equal(weir_available(), 1);
	uint64_t before = agent.status->speculative, misses = agent.status->speculative_misses;
	driver->n_ops = 0;
	assert_int_equal(weir_expect(UINT32_MAX), 0); /* 1 ms */
	assert_int_equal(agent.status->speculative, before + 1);
	assert_true(eventually(agent.status->speculative_misses == misses + 1));
	assert_false(shown());
	assert_int_equal(driver->n_ops, 0);
	assert_int_equal(demand_of(client)->speculation.trust, 0); /* nothing is learned */
	gone(n);
}

static void a_hint_may_do_nothing(void **state)
{
	(void)state;
	use("off");
	unsigned n = context(2, 1);
	finish_work(n);
	uint64_t before = agent.status->speculative;
	assert_int_equal(weir_expect(1000), 0);
	assert_int_equal(agent.status->speculative, before);
	gone(n);
}

static void a_kernel_waits_for_the_launch(void **state)
{
	(void)state;
	use("kernel");
	unsigned n = context_ready();
	int loaded = driver->modules_loaded;
	assert_int_equal(weir_expect(1000), 0);
	assert_int_equal(driver->n_ops, 1);
	const struct null_op *op = &driver->ops[0];
	const struct expect_params *params = (const void *)op->parameters;
	assert_int_equal(op->kind, NULL_LAUNCH);
	assert_int_equal(op->grid[0] * op->block[0], 1);
	assert_ptr_equal(op->function, expecting->kernel);
	assert_ptr_equal(op->stream, expecting->stream);
	assert_int_equal(params->words, (uintptr_t)expecting->words);
	assert_int_equal(params->number, 2);
	assert_true(params->span <= EXPECT_MAX);

	launch(n);
	assert_int_equal(expecting->held, 0);
	assert_int_equal(expecting->words->released, 2);
	assert_int_equal(driver->modules_loaded, loaded);
	assert_int_equal(expect_holding, 0);
	finish_work(n);
	gone(n);
}

static void nothing_is_put_behind_one_that_has_not_ended(void **state)
{
	(void)state;
	use("kernel");
	unsigned n = context_ready();
	weir_expect(1000);
	launch(n);
	finish_work(n);
	assert_int_equal(driver->n_ops, 2);
	weir_expect(1000); /* the first one waits for its turn on the GPU still */
	launch(n);
	finish_work(n);
	assert_int_equal(driver->n_ops, 3);
	expecting->words->done = 2;
	expecting->not_before = 0; /* on a slow machine no launch came */
	weir_expect(1000);
	launch(n);
	assert_int_equal(driver->n_ops, 5);
	assert_int_equal(expecting->words->released, 3);
	finish_work(n);
	gone(n);
}

static void what_waits_for_no_launch_is_let_go(void **state)
{
	(void)state;
	use("kernel");
	unsigned n = context_ready();
	weir_expect(1);
	assert_int_equal(driver->n_ops, 1);
	assert_true(eventually(!expecting->held));
	assert_true(eventually(!shown()));
	assert_int_equal(expecting->words->released, 2);
	assert_int_equal(expecting->misses, 1);
	assert_true(expecting->not_before > expecting->until);
	expecting->words->done = 2;

	expecting->not_before = UINT64_MAX;
	uint64_t before = agent.status->speculative;
	weir_expect(1);
	assert_int_equal(agent.status->speculative, before + 1);
	assert_int_equal(driver->n_ops, 1);
	assert_true(eventually(!shown()));
	expecting->not_before = 0;
	weir_expect(1);
	assert_int_equal(driver->n_ops, 2);
	assert_true(eventually(!expecting->held));
	gone(n);
}

static void a_context_that_is_waited_for_is_let_go(void **state)
{
	(void)state;
	use("kernel");
	unsigned n = context_ready();
	weir_expect(1000);
	assert_int_equal(driver->n_ops, 1);
	assert_int_equal(cuCtxSynchronize(), CUDA_SUCCESS);
	assert_int_equal(expecting->held, 0);
	assert_int_equal(expecting->words->released, 2);
	assert_true(eventually(!shown()));
	gone(n);
}

static void other_ways_wait_for_nothing(void **state)
{
	(void)state;
	use("write");
	unsigned n = context_ready();
	int loaded = driver->modules_loaded;
	weir_expect(1000);
	assert_int_equal(driver->n_ops, 1);
	assert_int_equal(driver->ops[0].kind, NULL_GATE); /* a batch of operations */
	assert_int_equal(driver->ops[0].address, (uintptr_t)&expecting->words->done);
	launch(n);
	finish_work(n);
	assert_int_equal(driver->modules_loaded, loaded);
	gone(n);
}

/* A hint puts nothing into a stream. */
static void assert_puts_nothing(void)
{
	driver->n_ops = 0;
	weir_expect(1);
	assert_int_equal(driver->n_ops, 0);
	assert_true(eventually(!shown()));
}

static void nothing_is_put_where_it_gains_nothing(void **state)
{
	(void)state;
	use("kernel");
	unsigned n = context_ready();
	agent.control->below = 0;
	assert_puts_nothing();
	agent.control->below = 1;
	client->concurrent = true;
	assert_puts_nothing();
	client->concurrent = false;

	CUgraph graph;
	assert_int_equal(cuStreamBeginCapture_v2(STREAM(n, 2), CU_STREAM_CAPTURE_MODE_GLOBAL),
			 CUDA_SUCCESS);
	assert_puts_nothing();
	cuStreamEndCapture(STREAM(n, 2), &graph);

	/* Work is outstanding: the GPU switches in any case. */
	driver->streams_busy = 1;
	launch(n);
	driver->n_ops = 0;
	weir_expect(1000);
	assert_int_equal(driver->n_ops, 0);
	driver->streams_busy = 0;
	finish_work(n);
	gone(n);

	n = context(0, 1);
	weir_expect(1000);
	assert_int_equal(expecting->state, EXPECT_NONE);
	gone(n);
}

static void a_driver_that_refuses_is_not_asked_again(void **state)
{
	(void)state;
	use("kernel");
	unsigned n = context(2, 1);
	finish_work(n);
	driver->loads_fail = 1;
	weir_expect(1);
	assert_true(eventually(expecting->state == EXPECT_REFUSED));
	driver->loads_fail = 0;
	assert_true(eventually(!shown()));
	assert_puts_nothing();
	gone(n);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(programs_that_are_not_governed_are_told),
		cmocka_unit_test(a_hint_shows_demand),
		cmocka_unit_test(a_hint_may_do_nothing),
		cmocka_unit_test(a_kernel_waits_for_the_launch),
		cmocka_unit_test(nothing_is_put_behind_one_that_has_not_ended),
		cmocka_unit_test(what_waits_for_no_launch_is_let_go),
		cmocka_unit_test(a_context_that_is_waited_for_is_let_go),
		cmocka_unit_test(other_ways_wait_for_nothing),
		cmocka_unit_test(nothing_is_put_where_it_gains_nothing),
		cmocka_unit_test(a_driver_that_refuses_is_not_asked_again),
	};

	driver_load();
	return cmocka_run_group_tests(tests, agent_begin, agent_finish);
}
