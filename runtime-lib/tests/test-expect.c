/* Hints of programs, and what keeps the GPU until their launch comes, on the null driver. */
#include "hinted.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define WEIR_LIBRARY
#include "weir/weir.h"

static void programs_that_are_not_governed_are_told(void **state)
{
	(void)state;
	cuCtxSetCurrent(NULL);
	assert_int_equal(weir_available(), 0);
	assert_int_equal(weir_expect(NULL, 100), -EAGAIN);
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
	assert_int_equal(weir_expect(STREAM(n, 1), UINT32_MAX), 0); /* 1 ms */
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
	assert_int_equal(weir_expect(STREAM(n, 1), 250), 0);
	assert_int_equal(agent.status->speculative, before);
	gone(n);
}

static void a_kernel_waits_for_the_launch_in_its_stream(void **state)
{
	(void)state;
	unsetenv("WEIR_EXPECT"); /* the default */
	expect_settings();
	unsigned n = context_ready();
	int loaded = driver->modules_loaded;
	hint(STREAM(n, 2));
	const struct null_op *op = &driver->ops[0];
	const struct expect_params *params = (const void *)op->parameters;
	uint32_t number = expecting->held;
	assert_int_equal(op->kind, NULL_LAUNCH);
	assert_int_equal(op->grid[0] * op->block[0], 1);
	assert_ptr_equal(op->function, expecting->kernel);
	assert_int_equal(params->released, (uintptr_t)expecting->released);
	assert_int_equal(params->number, number);
	assert_true(params->span <= EXPECT_MAX + SPECULATION_SLACK);

	launch(n, 2);
	assert_int_equal(driver->seen, number - 1); /* the GPU had to wait until it was queued */
	assert_int_equal(*expecting->released, number);
	assert_int_equal(expecting->held, 0);
	assert_int_equal(driver->modules_loaded, loaded);
	assert_int_equal(expect_holding, 0);
	cuStreamSynchronize(STREAM(n, 2));
	gone(n);
}

static void a_launch_in_any_stream_lets_it_go(void **state)
{
	(void)state;
	use("kernel");
	unsigned n = context_ready();
	hint(STREAM(n, 2));
	launch(n, 1);
	assert_int_equal(expecting->held, 0);
	finish_work(n);
	hint(STREAM(n, 2));
	cuGraphLaunch((CUgraphExec)(uintptr_t)0x9100, STREAM(n, 3));
	assert_int_equal(expecting->held, 0);
	cuStreamSynchronize(STREAM(n, 3));
	gone(n);
}

static void default_streams_are_named_as_for_a_launch(void **state)
{
	(void)state;
	use("kernel");
	unsigned n = context_ready();
	hint(CU_STREAM_LEGACY);
	cuLaunchKernel_ptsz(KERNEL, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL);
	assert_int_equal(expecting->held, 0);
	cuStreamSynchronize_ptsz(NULL);
	assert_true(eventually(!shown()));
	hint(CU_STREAM_PER_THREAD);
	cuStreamSynchronize_ptsz(NULL);
	assert_int_equal(expecting->held, 0);
	assert_true(eventually(!shown()));

	expecting->not_before = 0;
	driver->n_ops = 0;
	assert_int_equal(weir_expect(NULL, 250), 0);
	assert_int_equal(driver->n_ops, 1);
	assert_ptr_equal(driver->ops[0].stream, CU_STREAM_LEGACY);
	cuCtxSynchronize();
	assert_int_equal(weir_expect(STREAM(n - 1, 1), 250), -EINVAL);
	gone(n);
}

static void destroy_stream(void)
{
	launch(current, 5);
	cuStreamSynchronize(STREAM(current, 5));
	assert_true(eventually(!shown()));
	hint(STREAM(current, 5));
	cuStreamDestroy_v2(STREAM(current, 5));
}

static void calls_that_wait_let_it_go(void **state)
{
	(void)state;
	use("kernel");
	unsigned n = current = context_ready();
	for (size_t i = 0; i <= n_calls_that_wait; i++) {
		hint(STREAM(n, 1));
		uint32_t number = expecting->held;
		uint64_t misses = expecting->misses;
		(i < n_calls_that_wait ? calls_that_wait[i] : destroy_stream)();
		assert_int_equal(expecting->held, 0);
		assert_true(*expecting->released >= number);
		assert_true(expecting->misses > misses);
		assert_true(eventually(!shown()));
	}
	/* The driver's call comes afterwards. */
	static void (*const seen[])(void) = {synchronize_stream, synchronize_context};
	for (size_t i = 0; i < countof(seen); i++) {
		hint(STREAM(n, 1));
		uint32_t number = expecting->held;
		seen[i]();
		assert_int_equal(driver->seen, number);
	}
	gone(n);
}

static void a_query_does_not(void **state)
{
	(void)state;
	use("kernel");
	unsigned n = context_ready();
	hint(STREAM(n, 1));
	uint32_t number = expecting->held;
	cuStreamQuery(STREAM(n, 1));
	assert_int_equal(expecting->held, number);
	launch(n, 1);
	finish_work(n);
	gone(n);
}

static void there_is_one_at_a_time(void **state)
{
	(void)state;
	use("kernel");
	unsigned n = context_ready();
	hint(STREAM(n, 1));
	uint32_t number = expecting->held;
	weir_expect(STREAM(n, 1), 250);
	weir_expect(STREAM(n, 2), 250);
	assert_int_equal(driver->n_ops, 1);
	assert_int_equal(expecting->held, number);
	assert_int_equal(expect_holding, 1);
	launch(n, 1);
	assert_int_equal(expect_holding, 0);
	finish_work(n);
	gone(n);
}

static void what_waits_for_no_launch_is_let_go(void **state)
{
	(void)state;
	use("kernel");
	unsigned n = context_ready();
	weir_expect(STREAM(n, 1), 1);
	assert_int_equal(driver->n_ops, 1);
	const struct expect_params *params = (const void *)driver->ops[0].parameters;
	assert_int_equal(params->span, NS_PER_US + SPECULATION_SLACK);
	assert_true(eventually(!expecting->held));
	assert_true(eventually(!shown()));
	assert_int_equal(*expecting->released, 2);
	assert_int_equal(expecting->misses, 1);
	assert_true(expecting->not_before > expecting->until);

	expecting->not_before = UINT64_MAX;
	uint64_t before = agent.status->speculative;
	weir_expect(STREAM(n, 1), 1);
	assert_int_equal(agent.status->speculative, before + 1);
	assert_int_equal(driver->n_ops, 1);
	assert_true(eventually(!shown()));
	expecting->not_before = 0;
	weir_expect(STREAM(n, 1), 1);
	assert_int_equal(driver->n_ops, 2);
	assert_true(eventually(!expecting->held));
	gone(n);
}

/* A hint puts nothing into the stream. */
static void assert_puts_nothing(CUstream stream)
{
	expecting->not_before = 0;
	driver->n_ops = 0;
	assert_int_equal(weir_expect(stream, 1), 0);
	assert_int_equal(driver->n_ops, 0);
	assert_int_equal(expecting->held, 0);
	assert_true(eventually(!shown()));
}

static void nothing_is_put_where_it_gains_nothing(void **state)
{
	(void)state;
	use("kernel");
	unsigned n = context_ready();
	agent.control->below = 0;
	assert_puts_nothing(STREAM(n, 1));
	agent.control->below = 1;
	agent.control->hold = 1;
	assert_puts_nothing(STREAM(n, 1));
	agent.control->hold = 0;
	client->concurrent = true;
	assert_puts_nothing(STREAM(n, 1));
	client->concurrent = false;

	gone(n);

	n = context(0, 1);
	weir_expect(STREAM(n, 1), 250);
	assert_int_equal(expecting->state, EXPECT_NONE);
	gone(n);
}

static void nothing_is_put_into_a_captured_stream(void **state)
{
	CUgraph graph;

	(void)state;
	use("kernel");
	unsigned n = context_ready();
	assert_int_equal(cuStreamBeginCapture_v2(STREAM(n, 2), CU_STREAM_CAPTURE_MODE_GLOBAL),
			 CUDA_SUCCESS);
	assert_puts_nothing(STREAM(n, 1)); /* nor beside it */
	assert_puts_nothing(STREAM(n, 2));
	assert_int_equal(driver->spoilt, 0);
	cuStreamEndCapture(STREAM(n, 2), &graph);
	hint(STREAM(n, 2));
	cuCtxSynchronize();
	gone(n);
}

static void nothing_is_put_into_a_busy_stream(void **state)
{
	(void)state;
	use("kernel");
	unsigned n = context_ready();
	driver->streams_busy = 1; /* with a copy that libweir did not see */
	assert_puts_nothing(STREAM(n, 1));

	/* Work is outstanding: the GPU switches in any case. */
	launch(n, 1);
	driver->n_ops = 0;
	weir_expect(STREAM(n, 1), 250);
	weir_expect(STREAM(n, 2), 250);
	assert_int_equal(driver->n_ops, 0);
	driver->streams_busy = 0;
	finish_work(n);
	gone(n);
}

static void a_lowered_stream_gains_nothing(void **state)
{
	(void)state;
	use("kernel");
	unsigned n = context_ready();
	uint64_t before = agent.status->speculative;
	assert_int_equal(weir_set_priority(STREAM(n, 2), WEIR_LEVEL_LOW), 0);
	assert_puts_nothing(STREAM(n, 2));
	assert_int_equal(agent.status->speculative, before);
	hint(STREAM(n, 1));
	launch(n, 1);
	finish_work(n);
	gone(n);
}

static void a_driver_that_refuses_is_not_asked_again(void **state)
{
	(void)state;
	use("kernel");
	unsigned n = context(2, 1);
	finish_work(n);
	driver->loads_fail = 1;
	weir_expect(STREAM(n, 1), 1);
	assert_true(eventually(expecting->state == EXPECT_REFUSED));
	driver->loads_fail = 0;
	assert_true(eventually(!shown()));
	assert_puts_nothing(STREAM(n, 1));
	gone(n);
}

static void it_is_let_go_before_its_context_ends(void **state)
{
	(void)state;
	use("kernel");
	unsigned n = context_ready();
	hint(STREAM(n, 1));
	uint32_t number = expecting->held;
	gone(n);
	assert_int_equal(*expecting->released, number);
	assert_int_equal(expecting->held, 0);
	assert_int_equal(expect_holding, 0);
}

static void it_is_let_go_at_exit(void **state)
{
	(void)state;
	use("kernel");
	unsigned n = context_ready();
	hint(STREAM(n, 1));
	uint32_t number = expecting->held;
	expect_stop(client);
	assert_int_equal(*expecting->released, number);
	assert_int_equal(expect_holding, 0);
	gone(n);
}

static void a_forked_child_holds_nothing(void **state)
{
	int status;

	(void)state;
	use("kernel");
	unsigned n = context_ready();
	hint(STREAM(n, 1));
	uint32_t number = expecting->held;
	pid_t child = fork();
	if (child == 0) {
		bool forgotten = !expect_holding && !expecting->held && !expecting->released;
		driver->watched = NULL;
		launch(n, 1);
		cuCtxSynchronize();
		_exit(forgotten && weir_expect(STREAM(n, 1), 250) == -EAGAIN ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(expecting->held, number);
	assert_int_equal(*expecting->released, number - 1);
	launch(n, 1);
	assert_int_equal(*expecting->released, number);
	finish_work(n);
	gone(n);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(programs_that_are_not_governed_are_told),
		cmocka_unit_test(a_hint_shows_demand),
		cmocka_unit_test(a_hint_may_do_nothing),
		cmocka_unit_test(a_kernel_waits_for_the_launch_in_its_stream),
		cmocka_unit_test(a_launch_in_any_stream_lets_it_go),
		cmocka_unit_test(default_streams_are_named_as_for_a_launch),
		cmocka_unit_test(calls_that_wait_let_it_go),
		cmocka_unit_test(a_query_does_not),
		cmocka_unit_test(there_is_one_at_a_time),
		cmocka_unit_test(what_waits_for_no_launch_is_let_go),
		cmocka_unit_test(nothing_is_put_where_it_gains_nothing),
		cmocka_unit_test(nothing_is_put_into_a_captured_stream),
		cmocka_unit_test(nothing_is_put_into_a_busy_stream),
		cmocka_unit_test(a_lowered_stream_gains_nothing),
		cmocka_unit_test(a_driver_that_refuses_is_not_asked_again),
		cmocka_unit_test(it_is_let_go_before_its_context_ends),
		cmocka_unit_test(it_is_let_go_at_exit),
		cmocka_unit_test(a_forked_child_holds_nothing),
	};

	driver_load();
	return cmocka_run_group_tests(tests, agent_begin, agent_finish);
}
