/* Demand in the pages of lower levels while pages, levels, needs and agents change. */
#include "catch.h"
#include "needing.h"

#include "gates/demand-pages.h"
#include "gates/priority.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define THREADS NEEDING_STREAM

/* The agent's other side of a new page: all demand is for the whole GPU. */
static void new_pages(void)
{
	fake_agent_new_demand(&agent);
	for (unsigned q = 0; q < 2; q++)
		atomic_store(&agent.demand[q]->whole, agent.demand[q]->word);
}

static void sms_move_to_new_pages(void **state)
{
	unsigned n = begin(NEEDED);

	(void)state;
	launch(n, 1, 2);
	assert_shown(0, 2);
	new_pages();
	fake_agent_level(&agent, 2);
	assert_true(eventually(agent.demand[0]->sms == 2 && agent.demand[1]->sms == 2 &&
			       !agent.demand[0]->whole && !agent.demand[1]->whole));
	assert_shown(0, 2);
	assert_true(eventually(!agent.former[0]->sms && !agent.former[1]->sms));

	/* At the lower level it is above one page less. */
	fake_agent_level(&agent, 1);
	assert_true(eventually(is_clear(agent.demand[1])));
	assert_int_equal(agent.demand[0]->sms, 2);
	assert_int_equal(agent.status->demand_sms, 2);
	fake_agent_level(&agent, 2);
	finish_work(n);
	assert_true(eventually(atomic_load(&client->binding)->level == 2));
	driver->streams_busy = 1;
	launch(n, 1, 1);
	assert_shown(0, 1);
	end(n);
}

static void another_agent_is_told(void **state)
{
	unsigned n = begin(NEEDED);

	(void)state;
	launch(n, 1, 2);
	assert_shown(0, 2);
	fake_agent_stop(&agent);
	fake_agent_renew(&agent);
	atomic_store(&agent.control->yield, NEEDED);
	fake_agent_start(&agent);
	fake_agent_accept(&agent);
	fake_agent_welcome(&agent, 2, 1);
	assert_true(eventually(agent.status->demand_sms == 2));
	assert_shown(0, 2);
	end(n);
}

static void a_shared_bit_tells_nothing(void **state)
{
	unsigned n = context_welcomed_as(2, WEIR_BIT_SHARED);

	(void)state;
	atomic_store(&agent.control->yield, NEEDED);
	driver->streams_busy = 1;
	launch(n, 1, 1);
	assert_true(all_clear()); /* the agent sets the bit */
	end(n);
}

static void a_context_ends_at_work(void **state)
{
	unsigned n = begin(NEEDED);

	(void)state;
	launch(n, 1, 2);
	assert_shown(0, 2);
	context_gone(n);
	assert_true(all_clear());
	driver->streams_busy = 0;
	atomic_store(&agent.control->yield, 0);
}

static unsigned racing;
static _Atomic bool stop;

static void *race(void *argument)
{
	unsigned stream = (unsigned)(uintptr_t)argument, seed = stream;

	cuCtxSetCurrent(CONTEXT(racing));
	while (!atomic_load(&stop)) {
		unsigned blocks = 1 + (unsigned)rand_r(&seed) % 5;
		cuLaunchKernel(KERNEL, blocks, 1, 1, 32, 1, 1, 0, STREAM(racing, stream), NULL,
			       NULL);
		if (rand_r(&seed) % 4 == 0)
			cuStreamSynchronize(STREAM(racing, stream));
		if (rand_r(&seed) % 16 == 0)
			demand_set_speculatively(client, atomic_load(&client->binding));
		if (rand_r(&seed) % 64 == 0)
			usleep(200);
	}
	return NULL;
}

/* Launches, ends of work, and changes of pages and levels, all at once. */
static void races_leave_nothing(void **state)
{
	pthread_t threads[THREADS];

	(void)state;
	racing = begin(NEEDED);
	driver->streams_busy = 0;
	for (unsigned round = 0; round < 8; round++) {
		atomic_store(&stop, false);
		/* In one stream in every second round, so that the need is a number mostly. */
		for (unsigned i = 0; i < THREADS; i++)
			assert_int_equal(pthread_create(&threads[i], NULL, race,
							(void *)(uintptr_t)(round % 2 ? 1 + i : 1)),
					 0);
		for (unsigned i = 0; i < 8; i++) {
			usleep(3000);
			if (round % 4 == 1)
				new_pages();
			fake_agent_level(&agent, round % 4 == 2 ? (uint8_t)(1 + i % 2) : 2);
		}
		atomic_store(&stop, true);
		for (unsigned i = 0; i < THREADS; i++)
			pthread_join(threads[i], NULL);
		finish_work(racing);
		/* A late launch may leave bits there, which the agent clears. */
		assert_true(eventually(!agent.former[0] || !agent.former[0]->sms));
	}
	fake_agent_level(&agent, 2);
	assert_true(eventually(atomic_load(&client->binding)->level == 2));
	end(racing);
}

static void *change_need(void *argument)
{
	const struct level_binding *binding = atomic_load(&client->binding);
	unsigned seed = (unsigned)(uintptr_t)argument;

	for (unsigned i = 0; i < 1000000; i++) {
		unsigned what = (unsigned)rand_r(&seed) % 8;
		if (what < 4) {
			pages_withdraw(client, binding, 0);
		} else {
			sms_raise(client, what == 7 ? SMS_WHOLE : what);
			pages_set(client, binding);
		}
	}
	return NULL;
}

/* The same without the work around it: each sum is that of the last need. */
static void sums_follow_the_last_need(void **state)
{
	unsigned n = begin(NEEDED);
	pthread_t threads[THREADS];

	(void)state;
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, change_need, (void *)(uintptr_t)(i + 1)),
			0);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	uint32_t sms = sms_are_whole(client) ? 0 : sms_needed(client);
	assert_int_equal(agent.demand[0]->sms, sms);
	assert_int_equal(agent.demand[1]->sms, sms);
	assert_int_equal(agent.status->demand_sms, sms);
	pages_withdraw(client, atomic_load(&client->binding), 0);
	assert_true(all_clear());
	end(n);
}

/* The client's binding, and that with the page that is caught. */
static const struct level_binding *before;
static struct level_binding *binding;

/* The client needs 1 SM; returns when all pages say so, and what happens @meanwhile, between those
 * of the two levels. */
static void publish_and(void (*meanwhile)(void))
{
	before = atomic_load(&client->binding);
	binding = catch_write(meanwhile);
	atomic_store(&client->binding, binding);
	sms_raise(client, 1);
	pages_set(client, binding);
	assert_true(is_caught());
}

static void withdraw(void)
{
	pages_clear(binding, NULL);
	pages_withdraw(client, atomic_load(&client->binding), 0);
	atomic_store(&client->binding, before);
	assert_true(all_clear());
}

static void need_more(void)
{
	sms_raise(client, 3);
	pages_set(client, binding);
}

static void the_need_grows_while_it_is_shown(void **state)
{
	unsigned n = begin(NEEDED);

	(void)state;
	publish_and(need_more);
	assert_shown(0, 3);
	withdraw();
	end(n);
}

static void go_to_level_1(void)
{
	static struct level_binding next;

	next = *binding;
	next.level = 1;
	demand_move(client, &next);
}

static void the_level_falls_while_the_need_is_shown(void **state)
{
	unsigned n = begin(NEEDED);

	(void)state;
	publish_and(go_to_level_1);
	assert_int_equal(agent.demand[0]->sms, 1);
	assert_int_equal(agent.demand[1]->sms, 0);
	assert_int_equal(agent.status->demand_sms, 1);
	withdraw();
	end(n);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(sms_move_to_new_pages),
		cmocka_unit_test(another_agent_is_told),
		cmocka_unit_test(a_shared_bit_tells_nothing),
		cmocka_unit_test(a_context_ends_at_work),
		cmocka_unit_test(races_leave_nothing),
		cmocka_unit_test(sums_follow_the_last_need),
		cmocka_unit_test(the_need_grows_while_it_is_shown),
		cmocka_unit_test(the_level_falls_while_the_need_is_shown),
	};

	driver_load();
	return cmocka_run_group_tests(tests, agent_begin, agent_finish);
}
