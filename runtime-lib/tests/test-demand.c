/* Speculative demand, shown for a copy before a launch; busy periods, on the null driver. */
#include "gates/demand.h"
#include "client/link.h"
#include "client/stream.h"
#include "client/worker.h"

#include "catch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#define KERNEL ((CUfunction)(uintptr_t)0x9000)
#define TRIES  400 /* what a busy machine spoils is tried again */

/* On this thread. */
static _Thread_local unsigned wakes, hurries;

void __real_worker_wake(void);
void __wrap_worker_wake(void);
void __wrap_worker_wake(void)
{
	wakes++;
	__real_worker_wake();
}

void __real_worker_hurry(const struct client *of);
void __wrap_worker_hurry(const struct client *of);
void __wrap_worker_hurry(const struct client *of)
{
	hurries++;
	__real_worker_hurry(of);
}

static void launch(unsigned n)
{
	assert_int_equal(cuLaunchKernel(KERNEL, 1, 1, 1, 32, 1, 1, 0, STREAM(n, 1), NULL, NULL),
			 CUDA_SUCCESS);
}

static void gone(unsigned n)
{
	driver->streams_busy = 0;
	context_gone(n);
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

static void copy(void)
{
	static const char bytes[8];

	assert_int_equal(cuMemcpyHtoD_v2(0x5000, bytes, sizeof(bytes)), CUDA_SUCCESS);
}

static void trust_follows_what_came(void **state)
{
	struct speculation speculation = {0};
	unsigned n = 0;

	(void)state;
	for (; !speculation_pays(&speculation) && n < 100; n++)
		speculation_learn(&speculation, 100000);
	assert_in_range(n, 5, 20);
	assert_int_equal(speculation.lead, 100000);
	for (unsigned i = 0; i < 1000; i++)
		speculation_learn(&speculation, 200000);
	assert_true(speculation.trust <= 256);
	assert_in_range(speculation.lead, 199000, 200000);
	for (n = 0; speculation_pays(&speculation) && n < 100; n++)
		speculation_learn(&speculation, UINT64_MAX);
	assert_in_range(n, 2, 5);
	for (unsigned i = 0; i < 1000; i++)
		speculation_learn(&speculation, SPECULATION_LEAD_MAX + 1);
	assert_int_equal(speculation.trust, 0);
}

/* Copies, each followed by a launch after about @us. */
static void teach(unsigned n, unsigned us)
{
	for (unsigned i = 0; i < TRIES && !speculation_pays(&demand_of(client)->speculation); i++) {
		copy();
		usleep(us);
		launch(n);
		finish_work(n);
	}
	assert_true(speculation_pays(&demand_of(client)->speculation));
}

static bool copy_shows_demand(unsigned n)
{
	for (unsigned i = 0; i < TRIES; i++) {
		teach(n, 100);
		copy();
		if (shown())
			return true;
		launch(n);
		finish_work(n);
	}
	return false;
}

static void a_copy_shows_speculative_demand(void **state)
{
	unsigned n = context_welcomed(2);

	(void)state;
	finish_work(n);
	copy();
	assert_false(shown()); /* nothing is known yet */
	launch(n);
	finish_work(n);
	assert_true(copy_shows_demand(n));
	assert_int_equal(agent.demand[1]->word, agent.demand[0]->word);
	assert_true(agent.status->speculative > 0);
	assert_int_equal(agent.status->outstanding,
			 0); /* speculative demand is not told to the agent */

	/* The launch comes: demand stays until it is finished. */
	driver->streams_busy = 1;
	launch(n);
	assert_true(shown());
	usleep(20000);
	assert_true(shown());
	assert_true(agent.status->speculative_time > 0);
	driver->streams_busy = 0;
	finish_work(n);
	gone(n);
}

static void what_nothing_follows_is_taken_back(void **state)
{
	unsigned n = context_welcomed(2);

	(void)state;
	finish_work(n);
	assert_true(copy_shows_demand(n));
	uint64_t misses = agent.status->speculative_misses;
	assert_true(eventually(!shown()));
	assert_true(eventually(agent.status->speculative_misses == misses + 1));

	/* A client that only copies shows it rarely. */
	uint64_t before = agent.status->speculative;
	for (unsigned i = 0; i < 50; i++) {
		copy();
		assert_true(eventually(!shown()));
		usleep(1000);
	}
	assert_in_range(agent.status->speculative - before, 0, 4);
	gone(n);
}

static void at_the_bottom_nothing_is_shown(void **state)
{
	unsigned n = context_welcomed(0);
	uint64_t before = agent.status->speculative;

	(void)state;
	for (unsigned i = 0; i < 20; i++) {
		copy();
		launch(n);
		cuStreamSynchronize(STREAM(n, 1));
	}
	assert_int_equal(agent.status->speculative, before);
	assert_int_equal(demand_of(client)->speculation.trust, 0);
	gone(n);
}

/* The next thing that the client says is that it has work. */
static void assert_told(void)
{
	union weir_message message;
	int fds[WEIR_FDS_MAX];
	size_t n_fds;

	assert_true(eventually(!fake_agent_quiet(&agent)));
	assert_int_equal(weir_message_receive(agent.client, &message, fds, &n_fds), 0);
	assert_int_equal(message.header.type, WEIR_WORK);
}

static void work_is_told_if_somebody_wants_to_know(void **state)
{
	unsigned n = context_welcomed(1);

	(void)state;
	finish_work(n);
	launch(n);
	finish_work(n);
	assert_true(fake_agent_quiet(&agent));

	agent.control->flags = WEIR_CONTROL_TELL;
	launch(n);
	assert_told();
	launch(n); /* it has work already */
	assert_true(fake_agent_quiet(&agent));
	finish_work(n);

	/* Another agent, or the same again: it is told on its own connection. */
	fake_agent_stop(&agent);
	assert_true(eventually(link_of(client)->socket < 0));
	launch(n);
	finish_work(n);
	fake_agent_start(&agent);
	fake_agent_welcome_next(&agent, 1, 3);
	fake_agent_join();
	assert_true(eventually(link_of(client)->socket >= 0));
	agent.control->flags = WEIR_CONTROL_TELL;
	usleep(10000);
	launch(n);
	assert_told();
	finish_work(n);
	agent.control->flags = 0;
	gone(n);
}

/* The client's binding, at level 1, whose first write is caught. */
static struct level_binding *caught_at_1(void (*meanwhile)(void))
{
	struct level_binding *binding = catch_write(meanwhile);

	binding->level = 1;
	return binding;
}

static unsigned of_context;

static void launch_and_finish(void)
{
	atomic_store(&demand_of(client)->gap, 0); /* no lingering */
	launch(of_context);
	cuStreamSynchronize(STREAM(of_context, 1));
}

static void speculative_demand_ends_with_the_work_it_was_for(void **state)
{
	(void)state;
	of_context = context_welcomed(1);
	finish_work(of_context);
	usleep(50000);
	demand_set_speculatively(client, caught_at_1(launch_and_finish));
	assert_true(is_caught());
	assert_true(eventually(!shown()));
	gone(of_context);
}

static void finish_now(void)
{
	atomic_store(&demand_of(client)->gap, 0);
	driver->streams_busy = 0;
	cuStreamSynchronize(STREAM(of_context, 1));
}

static void demand_that_moves_ends_with_its_work(void **state)
{
	(void)state;
	driver->streams_busy = 1;
	of_context = context_welcomed(1);
	assert_true(shown());
	demand_move(client, caught_at_1(finish_now));
	assert_true(is_caught());
	assert_true(eventually(!shown()));
	gone(of_context);
}

static void bursts_are_told(void **state)
{
	unsigned n = context_welcomed(1);

	(void)state;
	finish_work(n);
	demand_of(client)->busy = (struct busy_period){0};
	/* One that does not end. */
	driver->streams_busy = 1;
	launch(n);
	assert_true(eventually(agent.status->busy_period > 10000000));
	driver->streams_busy = 0;
	finish_work(n);
	assert_true(eventually(busy_period_known(&demand_of(client)->busy) > 10000000));
	assert_true(eventually(agent.status->busy_period ==
			       busy_period_known(&demand_of(client)->busy)));

	/* Demand lingers behind those that follow, but not in them. */
	for (unsigned i = 0; i < TRIES && busy_period_known(&demand_of(client)->busy) > 100000;
	     i++) {
		launch(n);
		atomic_store(&demand_of(client)->gap, 90000);
		finish_work(n);
	}
	assert_in_range(busy_period_known(&demand_of(client)->busy), 1, 100000);
	assert_true(eventually(agent.status->busy_period ==
			       busy_period_known(&demand_of(client)->busy)));
	gone(n);
}

static void a_burst_begins_with_the_launch(void **state)
{
	unsigned n = context_welcomed(2);

	(void)state;
	finish_work(n);
	assert_true(copy_shows_demand(n));
	assert_true(eventually(!shown()));
	assert_true(eventually(!demand_of(client)->busy.since));
	assert_true(copy_shows_demand(n));
	uint64_t before = client_now();
	driver->streams_busy = 1;
	launch(n);
	assert_true(demand_of(client)->busy.since >= before);
	driver->streams_busy = 0;
	finish_work(n);
	gone(n);
}

/* Behind each launch demand stays for the next one, not only behind the first of several that come
 * in time. */
static void each_launch_ends_idleness(void **state)
{
	unsigned n = context_welcomed(1);
	const uint64_t gap = 40 * NS_PER_US;

	(void)state;
	finish_work(n);
	driver->streams_busy = 1;
	launch(n);
	assert_true(shown());
	assert_int_equal(atomic_load(&demand_of(client)->idle_since), 0);
	/* The work was seen finished, and demand stayed. */
	atomic_store(&demand_of(client)->gap, gap);
	atomic_store(&demand_of(client)->idle_since, client_now() - 2 * gap);
	launch(n);
	assert_int_equal(atomic_load(&demand_of(client)->idle_since), 0);
	assert_true(atomic_load(&demand_of(client)->gap) > gap);
	driver->streams_busy = 0;
	finish_work(n);
	gone(n);
}

static unsigned wakes_of_a_launch(unsigned n, uint32_t flags)
{
	finish_work(n);
	agent.control->flags = flags;
	wakes = 0;
	launch(n);
	return wakes;
}

/* What a client with a minimum rate has finished is reported soon, also if its requests are short,
 * and the worker sleeps between them. */
static void with_a_minimum_rate_the_worker_wakes(void **state)
{
	unsigned n = context_welcomed(1);
	struct tick tick = {.binding = atomic_load(&client->binding)};

	(void)state;
	assert_int_equal(wakes_of_a_launch(n, 0), 0);
	assert_int_equal(wakes_of_a_launch(n, WEIR_CONTROL_RATED), 1);
	finish_work(n);
	uint64_t idle = atomic_load(&demand_of(client)->idle_since);
	assert_true(idle);
	tick.now = idle + DEMAND_LATELY - 1;
	demand_work(client, &tick);
	assert_true(tick.lately);
	tick.now++;
	demand_work(client, &tick);
	assert_false(tick.lately);
	agent.control->flags = 0;
	tick.now = idle;
	demand_work(client, &tick);
	assert_false(tick.lately);
	gone(n);
}

/* How often the worker is hurried when a call returns that has waited for an event of @n, which has
 * work. @gap: ns until it has more, as was learned. */
static unsigned hurries_of_an_event(unsigned n, uint64_t gap)
{
	driver->streams_busy = 1;
	launch(n);
	atomic_store(&demand_of(client)->gap, gap);
	hurries = 0;
	assert_int_equal(cuEventSynchronize(NULL), CUDA_SUCCESS);
	unsigned found = hurries;
	driver->streams_busy = 0;
	finish_work(n);
	return found;
}

/* Nobody knows which work an event stands behind. */
static void who_waits_for_an_event_hurries_the_worker_for_others(void **state)
{
	unsigned n = context_welcomed(1);

	(void)state;
	finish_work(n);
	assert_int_equal(hurries_of_an_event(n, NS_PER_MS), 0); /* there are no others */
	agent.control->below = 1;
	assert_int_equal(hurries_of_an_event(n, NS_PER_MS), 1);

	atomic_store(&demand_of(client)->hurried, client_now() + NS_PER_S); /* it was just now */
	assert_int_equal(hurries_of_an_event(n, NS_PER_MS), 0);

	atomic_store(&demand_of(client)->hurried, 0);
	assert_int_equal(hurries_of_an_event(n, 10 * NS_PER_US), 0); /* it goes on at once */
	agent.control->below = 0;
	agent.control->flags = WEIR_CONTROL_HOLDABLE | WEIR_CONTROL_CONTENDED;
	assert_int_equal(hurries_of_an_event(n, NS_PER_MS), 1);

	atomic_store(&demand_of(client)->hurried, 0);
	hurries = 0;
	cuEventSynchronize(NULL); /* nothing is outstanding */
	assert_int_equal(hurries, 0);
	agent.control->flags = 0;
	gone(n);
}

/* Then one look is enough. */
static void behind_a_call_that_waited_demand_ends_at_once(void **state)
{
	unsigned n = context_welcomed(0);
	struct tick tick = {.binding = atomic_load(&client->binding), .hurried = true};

	(void)state;
	finish_work(n);
	worker_pause();
	launch(n);
	atomic_store(&demand_of(client)->gap, 0);
	stream_for_each (s, client) {
		struct progress all = stream_progress(s);
		stream_completed(s, &all);
	}
	tick.now = client_now();
	demand_work(client, &tick);
	worker_resume();
	assert_false(tick.demand_now);
	gone(n);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(trust_follows_what_came),
		cmocka_unit_test(a_copy_shows_speculative_demand),
		cmocka_unit_test(what_nothing_follows_is_taken_back),
		cmocka_unit_test(at_the_bottom_nothing_is_shown),
		cmocka_unit_test(bursts_are_told),
		cmocka_unit_test(a_burst_begins_with_the_launch),
		cmocka_unit_test(each_launch_ends_idleness),
		cmocka_unit_test(with_a_minimum_rate_the_worker_wakes),
		cmocka_unit_test(work_is_told_if_somebody_wants_to_know),
		cmocka_unit_test(speculative_demand_ends_with_the_work_it_was_for),
		cmocka_unit_test(demand_that_moves_ends_with_its_work),
		cmocka_unit_test(who_waits_for_an_event_hurries_the_worker_for_others),
		cmocka_unit_test(behind_a_call_that_waited_demand_ends_at_once),
	};

	driver_load();
	return cmocka_run_group_tests(tests, agent_begin, agent_finish);
}
