/* Hints of launches that come later: the worker keeps the GPU for them in time. On the null driver.
 */
#include "hinted.h"

#include "client/worker.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define WEIR_LIBRARY
#include "weir/weir.h"

/* Earlier, our group would be on the GPU too early. The machine may be slow: then nothing is put.
 */
static void a_later_launch_is_waited_for_in_time(void **state)
{
	(void)state;
	use("kernel");
	unsigned n = context_ready();
	for (int i = 0; i < 1000 && !driver->n_ops; i++) {
		uint64_t before = agent.status->speculative, begin = client_now();
		expecting->not_before = 0;
		assert_int_equal(weir_expect(STREAM(n, 2), 1000), 0);
		assert_int_equal(agent.status->speculative, before + 1);
		assert_true(eventually(!expecting->planned));
		assert_true(client_now() - begin >= 750 * NS_PER_US);
		assert_true(eventually(!shown()));
		assert_true(eventually(!expect_holding));
	}
	assert_int_equal(driver->n_ops, 1);
	const struct expect_params *params = (const void *)driver->ops[0].parameters;
	assert_ptr_equal(driver->ops[0].stream, STREAM(n, 2));
	assert_ptr_equal(driver->ops[0].function, expecting->kernel);
	assert_int_equal(params->span, EXPECT_MAX + SPECULATION_SLACK);
	assert_int_equal(*expecting->released, params->number); /* no launch came */
	assert_int_equal(expecting->held, 0);
	gone(n);
}

/* A hint whose time does not come. On a slow machine it may have come at once. */
static void plan(CUstream stream)
{
	for (int i = 0; i < 1000 && expecting->planned != UINT64_MAX; i++) {
		expecting->not_before = 0;
		assert_int_equal(weir_expect(stream, 1000), 0);
		uint64_t at = expecting->planned;
		if (!at || !atomic_compare_exchange_strong(&expecting->planned, &at, UINT64_MAX))
			assert_true(eventually(!expect_holding));
	}
	assert_true(expecting->planned == UINT64_MAX);
	assert_int_equal(expect_holding, 1);
	driver->n_ops = 0;
}

/* It has come: the worker takes the plan. */
static void plan_is_due(void)
{
	expecting->planned = client_now();
	assert_true(eventually(!expecting->planned && !expecting->beginning));
}

static void it_ends_with_the_launch(void **state)
{
	(void)state;
	use("kernel");
	unsigned n = context_ready();
	for (int i = 0; i < 1000 && !driver->n_ops; i++) {
		plan(STREAM(n, 2));
		plan_is_due(); /* and may be late */
		assert_int_equal(expect_holding, expecting->held ? 1 : 0);
	}
	assert_int_equal(driver->n_ops, 1);
	assert_ptr_equal(driver->ops[0].function, expecting->kernel);
	launch(n, 2);
	assert_int_equal(expecting->held, 0);
	assert_int_equal(*expecting->released, expecting->begun);
	finish_work(n);
	gone(n);
}

static void a_launch_that_comes_sooner_drops_the_plan(void **state)
{
	(void)state;
	use("kernel");
	unsigned n = context_ready();
	plan(STREAM(n, 2));
	launch(n, 1);
	assert_int_equal(expecting->planned, 0);
	assert_int_equal(expect_holding, 0);
	finish_work(n);
	assert_int_equal(driver->n_ops, 1);
	assert_ptr_equal(driver->ops[0].function, KERNEL);
	gone(n);
}

static void calls_that_wait_drop_it(void **state)
{
	(void)state;
	use("kernel");
	unsigned n = current = context_ready();
	for (size_t i = 0; i < n_calls_that_wait; i++) {
		plan(STREAM(n, 1));
		uint64_t misses = expecting->misses;
		calls_that_wait[i]();
		assert_int_equal(expecting->planned, 0);
		assert_int_equal(expect_holding, 0);
		assert_int_equal(expecting->misses, misses); /* the GPU was not kept */
		assert_true(eventually(!shown()));
	}
	gone(n);
}

static void the_newest_hint_counts(void **state)
{
	(void)state;
	use("kernel");
	unsigned n = context_ready();
	plan(STREAM(n, 2));
	assert_int_equal(weir_expect(STREAM(n, 1), 1000), 0);
	assert_true(expecting->planned < UINT64_MAX);
	assert_true(eventually(!expect_holding));
	plan(STREAM(n, 2));
	hint(STREAM(n, 1));
	assert_int_equal(expecting->planned, 0);
	assert_int_equal(expect_holding, 1);
	launch(n, 1);
	assert_int_equal(expect_holding, 0);
	finish_work(n);
	gone(n);
}

/* No thread can name another one's default stream. */
static void nothing_is_planned_in_a_per_thread_stream(void **state)
{
	(void)state;
	use("kernel");
	unsigned n = context_ready();
	assert_int_equal(weir_expect(CU_STREAM_PER_THREAD, 1000), 0);
	assert_int_equal(expecting->planned, 0);
	assert_int_equal(expect_holding, 0);
	assert_true(eventually(!shown()));
	assert_int_equal(driver->n_ops, 0);
	gone(n);
}

static void assert_nothing_is_put(void)
{
	plan_is_due();
	assert_int_equal(driver->n_ops, 0);
	assert_int_equal(expecting->held, 0);
	assert_int_equal(expect_holding, 0);
}

static void what_gains_nothing_any_more_is_dropped(void **state)
{
	(void)state;
	use("kernel");
	unsigned n = context_ready();
	plan(STREAM(n, 2));
	driver->streams_busy = 1;
	assert_nothing_is_put();
	driver->streams_busy = 0;

	plan(STREAM(n, 2));
	agent.control->hold = 1;
	assert_nothing_is_put();
	agent.control->hold = 0;

	plan(STREAM(n, 2));
	expecting->not_before = UINT64_MAX;
	assert_nothing_is_put();

	plan(STREAM(n, 2)); /* the worker is late */
	expecting->planned = client_now() - EXPECT_LATE;
	assert_true(eventually(!expecting->planned && !expecting->beginning));
	assert_int_equal(driver->n_ops, 0);
	gone(n);
}

static void nothing_is_put_into_a_capture(void **state)
{
	CUgraph graph;

	(void)state;
	use("kernel");
	unsigned n = context_ready();
	plan(STREAM(n, 2));
	assert_int_equal(cuStreamBeginCapture_v2(STREAM(n, 2), CU_STREAM_CAPTURE_MODE_GLOBAL),
			 CUDA_SUCCESS);
	if (expecting->planned)
		assert_nothing_is_put();
	assert_int_equal(driver->spoilt, 0);
	cuStreamEndCapture(STREAM(n, 2), &graph);
	gone(n);
}

static void a_stream_that_ends_takes_its_plan_along(void **state)
{
	(void)state;
	use("kernel");
	unsigned n = context_ready();
	launch(n, 5);
	cuStreamSynchronize(STREAM(n, 5));
	assert_true(eventually(!shown()));
	plan(STREAM(n, 5));
	cuStreamDestroy_v2(STREAM(n, 5));
	assert_int_equal(expecting->planned, 0);
	assert_int_equal(expect_holding, 0);
	gone(n);
}

static void contexts_that_end_and_processes_take_it_along(void **state)
{
	(void)state;
	use("kernel");
	unsigned n = context_ready();
	plan(STREAM(n, 1));
	expect_stop(client);
	assert_int_equal(expecting->planned, 0);
	assert_int_equal(expect_holding, 0);
	plan(STREAM(n, 1));
	gone(n);
	assert_int_equal(expecting->planned, 0);
	assert_int_equal(expect_holding, 0);
}

static void a_forked_child_plans_nothing(void **state)
{
	int status;

	(void)state;
	use("kernel");
	unsigned n = context_ready();
	plan(STREAM(n, 1));
	pid_t child = fork();
	if (child == 0) {
		driver->watched = NULL;
		_exit(expect_holding || expecting->planned ? 1 : 0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_true(expecting->planned == UINT64_MAX);
	launch(n, 1);
	finish_work(n);
	gone(n);
}

static void launch_in_planned_stream(void)
{
	launch(current, 1);
}

/* The worker has taken the plan, and looks whether the stream is idle; meanwhile somebody lets the
 * GPU go. */
static void what_is_let_go_while_it_begins_is_not_put(void **state)
{
	static void (*const calls[])(void) = {launch_in_planned_stream, synchronize_context};

	(void)state;
	use("kernel");
	unsigned n = current = context_ready();
	for (size_t i = 0; i < countof(calls); i++) {
		bool begins = false;
		for (int tries = 0; tries < 1000 && !begins; tries++) {
			plan(STREAM(n, 1));
			driver->streams_stuck = 1;
			expecting->planned = client_now();
			/* A worker that is late does not look. */
			assert_true(eventually(driver->queries_stuck ||
					       (!expecting->planned && !expecting->beginning)));
			begins = driver->queries_stuck;
			driver->streams_stuck = begins;
		}
		assert_true(begins);
		assert_int_equal(expecting->planned, 0);
		driver->n_ops = 0;
		calls[i]();
		int ops = driver->n_ops;
		driver->streams_stuck = 0;
		assert_true(eventually(!expecting->beginning));
		assert_int_equal(driver->n_ops, ops);
		assert_int_equal(expecting->held, 0);
		assert_int_equal(*expecting->released, expecting->begun);
		assert_true(eventually(!expect_holding));
		finish_work(n);
	}
	gone(n);
}

/* The launch comes at about the moment that is planned. Once it is in its stream nothing may wait
 * for it: what did would be let go by the worker later on, and count as a miss. */
static void the_launch_and_the_worker_meet(void **state)
{
	unsigned put = 0, soon = 0;

	(void)state;
	use("kernel");
	unsigned n = context_ready();
	for (unsigned i = 0; i < 2000; i++) {
		plan(STREAM(n, 1));
		uint64_t at = client_now() + 150 * NS_PER_US;
		expecting->planned = at;
		worker_alarm();
		while (client_now() + 8 * NS_PER_US < at + i % 16 * NS_PER_US)
			;
		launch(n, 1);
		uint64_t misses = expecting->misses;
		put += driver->n_ops > 1;
		soon += driver->n_ops == 1;
		assert_true(eventually(!expecting->held && !expect_holding));
		assert_int_equal(expecting->misses, misses);
		assert_int_equal(*expecting->released, expecting->begun);
		cuStreamSynchronize(STREAM(n, 1));
		assert_true(eventually(!shown()));
	}
	print_message("the worker was first %u times, the launch %u times\n", put, soon);
	gone(n);
}

/* While it is set, the worker yields its processor for good: in the midst of a look, not in the
 * driver. */
static _Atomic bool worker_stuck;
static _Atomic unsigned yields; /* the worker's: other threads yield, too, until it has looked */

static bool is_worker(void)
{
	char name[16] = "";

	prctl(PR_GET_NAME, name);
	return strcmp(name, "weir-worker") == 0;
}

int sched_yield(void)
{
	bool waits = atomic_load(&worker_stuck) && is_worker();

	if (waits)
		atomic_fetch_add(&yields, 1);
	do
		usleep(100);
	while (waits && atomic_load(&worker_stuck));
	return 0;
}

static _Atomic bool destroyed;

static void *destroy(void *context)
{
	cuCtxDestroy_v2(context);
	atomic_store(&destroyed, true);
	return NULL;
}

/* In the midst of a look at the context. */
static void stick_worker(unsigned n)
{
	atomic_store(&yields, 0);
	atomic_store(&worker_stuck, true);
	for (int i = 0; i < 1000 && !atomic_load(&yields); i++) {
		plan(STREAM(n, 1));
		expecting->planned = client_now() + 100 * NS_PER_US;
		worker_alarm();
		assert_true(eventually(atomic_load(&yields) || !expecting->planned));
	}
	assert_int_equal(atomic_load(&yields), 1);
}

/* Else another client could take the slot, and the worker would go on with its state. */
static void a_context_does_not_end_while_the_worker_looks_at_it(void **state)
{
	pthread_t thread;

	(void)state;
	use("kernel");
	unsigned n = context_ready();
	stick_worker(n);
	assert_int_equal(pthread_create(&thread, NULL, destroy, CONTEXT(n)), 0);
	assert_true(eventually(atomic_load(&client->state) != CLIENT_LIVE));
	usleep(50000);
	assert_int_equal(atomic_load(&client->state), CLIENT_ENDING);
	assert_non_null(atomic_load(&client->binding)); /* no row has forgotten it yet */
	assert_false(atomic_load(&destroyed));
	atomic_store(&worker_stuck, false);
	pthread_join(thread, NULL);
	assert_int_equal(atomic_load(&client->state), CLIENT_DEAD);
	assert_int_equal(expect_holding, 0);
	driver->watched = NULL;
	agent.control->below = 0;
	context_gone(n);
}

/* The worker may wait for this thread. */
static void a_context_ends_though_the_worker_does_not_come_back(void **state)
{
	(void)state;
	use("kernel");
	unsigned n = context_ready();
	struct client *former = client;
	stick_worker(n);
	assert_true(shown());
	assert_int_equal(cuCtxDestroy_v2(CONTEXT(n)), CUDA_SUCCESS);
	assert_true(atomic_load(&worker_stuck));
	assert_false(shown());
	assert_int_equal(atomic_load(&former->state), CLIENT_ENDING);
	assert_non_null(atomic_load(&former->binding)); /* the worker goes on with it */
	atomic_store(&worker_stuck, false);
	driver->watched = NULL;
	agent.control->below = 0;

	n = context_ready();
	assert_ptr_not_equal(client, former);
	assert_int_equal(atomic_load(&former->state), CLIENT_ENDING);
	assert_false(shown());
	gone(n);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_later_launch_is_waited_for_in_time),
		cmocka_unit_test(it_ends_with_the_launch),
		cmocka_unit_test(a_launch_that_comes_sooner_drops_the_plan),
		cmocka_unit_test(calls_that_wait_drop_it),
		cmocka_unit_test(the_newest_hint_counts),
		cmocka_unit_test(nothing_is_planned_in_a_per_thread_stream),
		cmocka_unit_test(what_gains_nothing_any_more_is_dropped),
		cmocka_unit_test(nothing_is_put_into_a_capture),
		cmocka_unit_test(a_stream_that_ends_takes_its_plan_along),
		cmocka_unit_test(contexts_that_end_and_processes_take_it_along),
		cmocka_unit_test(a_forked_child_plans_nothing),
		cmocka_unit_test(what_is_let_go_while_it_begins_is_not_put),
		cmocka_unit_test(the_launch_and_the_worker_meet),
		cmocka_unit_test(a_context_does_not_end_while_the_worker_looks_at_it),
		cmocka_unit_test(a_context_ends_though_the_worker_does_not_come_back),
	};

	driver_load();
	return cmocka_run_group_tests(tests, agent_begin, agent_finish);
}
