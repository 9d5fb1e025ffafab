/* Levels that change, agents that die, others that take their place. */
#include "guest.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "weir/base.h"

static void level_changes_live(void **state)
{
	(void)state;
	driver->streams_busy = 1;
	unsigned n = welcomed(2, 7);
	assert_int_equal(agent.demand[1]->word, 1u << 7);

	fake_agent_level(&agent, 1); /* lowered: its bit leaves the word at once */
	assert_true(eventually(agent.demand[1]->word == 0));
	assert_int_equal(agent.demand[0]->word, 1u << 7);
	assert_true(eventually(agent.status->level == 1));

	/* Raised: not while a gate of the lower level may be ahead of it, or it would wait for
	 * itself. */
	fake_agent_level(&agent, 3);
	settle(100000);
	assert_int_equal(agent.demand[2]->word, 0);
	driver->streams_busy = 0;
	assert_int_equal(cuStreamSynchronize(STREAM(n, 1)), CUDA_SUCCESS);
	assert_true(eventually(agent.status->level == 3));
	driver->streams_busy = 1;
	launch_on(STREAM(n, 1), n);
	assert_int_equal(agent.demand[2]->word, 1u << 7);
	gone(n);
}

static void *launch_beside(void *stream)
{
	launch_on(stream, 500);
	return NULL;
}

/* Its gate is of the level that it began with. */
static void who_is_raised_waits_for_launches_under_way(void **state)
{
	unsigned n = welcomed(0, 9);
	pthread_t beside;

	(void)state;
	driver->launches_stuck = 1;
	assert_int_equal(pthread_create(&beside, NULL, launch_beside, STREAM(n, 1)), 0);
	bool under_way = eventually(driver->launches_waiting == 1);
	fake_agent_level(&agent, 2);
	settle(100000);
	int level = (int)agent.status->level;
	driver->launches_stuck = 0;
	pthread_join(beside, NULL);
	assert_true(under_way);
	assert_int_equal(level, 0);
	assert_true(eventually(agent.status->level == 2));
	gone(n);
}

static void graphs_keep_their_level(void **state)
{
	(void)state;
	unsigned n = welcomed(0, 9);
	CUgraph graph;

	int before = driver->gates, events = driver->events_recorded;
	assert_int_equal(cuStreamBeginCapture_v2(STREAM(n, 1), CU_STREAM_CAPTURE_MODE_GLOBAL),
			 CUDA_SUCCESS);
	for (unsigned i = 0; i < 100; i++)
		launch_on(STREAM(n, 1), 600);
	assert_int_equal(cuStreamEndCapture(STREAM(n, 1), &graph), CUDA_SUCCESS);
	assert_true(driver->gates > before); /* nodes of the graph, though nobody is above now */
	assert_int_equal(driver->events_recorded, events); /* but no samples */

	/* Its replays wait for the word of level 0: raised, it would wait for its own demand. */
	fake_agent_level(&agent, 2);
	settle(100000);
	assert_int_equal(agent.status->level, 0);
	gone(n);
}

static void agent_dies_and_returns(void **state)
{
	(void)state;
	/* Its markers, too: the worker leaves some as soon as it sees the hold. */
	driver->streams_busy = driver->events_busy = 1;
	unsigned n = welcomed(1, 11);
	agent.control->hold = 1;
	fake_agent_stop(&agent);
	assert_true(eventually(agent.control->hold == 0)); /* nobody is left to open it */
	assert_int_equal(agent.demand[0]->word, 1u << 11); /* the level stays */
	launch_on(STREAM(n, 1), n);

	fake_agent_start(&agent);
	fake_agent_accept(&agent);
	assert_int_equal(agent.hello.claimed_bit, 11);
	int registered = driver->registered;
	fake_agent_welcome(&agent, 1, 12); /* the old bit was given away */
	assert_true(eventually(agent.demand[0]->word == 1u << 12));
	assert_int_equal(driver->registered, registered); /* the same pages again */
	driver->events_busy = 0;
	gone(n);
}

static void say_no(void)
{
	struct weir_refused message = {.reason = WEIR_REFUSED_INTERNAL};

	weir_header_init(&message.header, WEIR_REFUSED, sizeof(message));
	assert_int_equal(weir_message_send(agent.client, &message, sizeof(message), NULL, 0), 0);
	shutdown(agent.client, SHUT_RDWR);
	close(agent.client);
}

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* A refused client asks again ever more seldom, and soon again after it was welcomed. */
static void who_is_refused_does_not_insist(void **state)
{
	static const uint64_t delays[] = {50, 100, 200, 400, 400}; /* ms */

	(void)state;
	driver->streams_busy = driver->events_busy = 1;
	unsigned n = welcomed(1, 11);
	for (unsigned times = 0; times < 2; times++) {
		uint64_t said = now_ms();
		shutdown(agent.client, SHUT_RDWR);
		close(agent.client);
		for (size_t i = 0; i < countof(delays); i++) {
			fake_agent_accept(&agent);
			assert_in_range(now_ms() - said, delays[i], EVENTUALLY_MS);
			said = now_ms();
			if (i + 1 < countof(delays))
				say_no();
		}
		fake_agent_welcome(&agent, 1, (uint8_t)(12 + times));
		launch_on(STREAM(n, 1), n);
		assert_true(eventually(agent.demand[0]->word == 1u << (12 + times)));
	}
	driver->events_busy = 0;
	gone(n);
}

/* The driver takes the next agent's pages late, and that agent has spoken of a level by then. */
static void next_agent_is_obeyed(void **state)
{
	(void)state;
	driver->streams_busy = 1;
	unsigned n = welcomed(2, 11);
	fake_agent_stop(&agent);
	fake_agent_renew(&agent);

	driver->pages_refused = 0;
	driver->refuses_pages = 1;
	fake_agent_start(&agent);
	fake_agent_accept(&agent);
	fake_agent_welcome(&agent, 2, 11);
	assert_true(eventually(driver->pages_refused > 0));
	assert_int_equal(agent.demand[0]->word, 1u << 11); /* as the last one said, until then */
	assert_int_equal(agent.demand[1]->word, 1u << 11);
	fake_agent_level(&agent, 1);
	driver->refuses_pages = 0;
	assert_true(eventually(agent.demand[1]->word == 0));
	assert_int_equal(agent.demand[0]->word, 1u << 11);
	assert_true(eventually(agent.status->level == 1 && agent.status->outstanding));
	gone(n);
}

/* A context is new, and the driver has no memory for a page of its agent. */
static void first_pages_are_taken_later(void **state)
{
	(void)state;
	driver->streams_busy = 1;
	driver->refuses_pages = 1;
	unsigned n = welcomed(2, 11);
	assert_int_equal(agent.demand[0]->word, 0);
	driver->refuses_pages = 0;
	assert_true(eventually(agent.status->level == 2));
	launch_on(STREAM(n, 1), n);
	assert_int_equal(agent.demand[0]->word, 1u << 11);
	gone(n);
}

/* An agent that is stopped does not renew its holds. */
static void forgotten_holds_end(void **state)
{
	(void)state;
	driver->streams_busy = 1;
	unsigned n = welcomed(1, 11);
	agent.control->hold_until = 0; /* an agent that says no time */
	agent.control->hold = 1;
	settle(600000);
	assert_int_equal(agent.control->hold, 1);
	agent.control->hold_until = UINT64_MAX;
	settle(600000);
	assert_int_equal(agent.control->hold, 1);
	agent.control->hold_until = 1;
	assert_true(eventually(agent.control->hold == 0));

	/* The worker is in a driver call that waits behind a closed gate. */
	driver->streams_stuck = 1;
	usleep(50000);
	agent.control->hold_until = 1;
	agent.control->hold = 1;
	bool opened = eventually(agent.control->hold == 0);
	driver->streams_stuck = 0;
	assert_true(opened);
	agent.control->hold_until = 0;
	gone(n);
}

static void shared_bit_is_the_agents(void **state)
{
	(void)state;
	driver->streams_busy = 1;
	unsigned n = welcomed(2, WEIR_BIT_SHARED);
	assert_int_equal(agent.demand[0]->word, 0);
	assert_true(eventually(agent.status->outstanding == 1));

	agent.demand[0]->word = agent.demand[1]->word = 1ull << WEIR_BIT_SHARED | 1;
	agent.demand[0]->whole = agent.demand[1]->whole = 1ull << WEIR_BIT_SHARED | 1;
	fake_agent_stop(&agent); /* nobody is left to clear it */
	assert_true(eventually(agent.demand[0]->word == 1 && agent.demand[1]->word == 1));
	assert_true(eventually(agent.demand[0]->whole == 1 && agent.demand[1]->whole == 1));
	agent.demand[0]->word = agent.demand[1]->word = 0;
	agent.demand[0]->whole = agent.demand[1]->whole = 0;
	fake_agent_start(&agent);
	gone(n);
}

static void hostile_agent(void **state)
{
	(void)state;
	/* A page shorter than a page would be a SIGBUS. */
	assert_int_equal(ftruncate(agent.control_fd, 100), 0);
	unsigned n = welcomed(2, 3);
	assert_int_equal(agent.demand[0]->word, 0); /* not governed, and alive */
	assert_int_equal(ftruncate(agent.control_fd, WEIR_PAGE_SIZE), 0);
	gone(n);

	n = welcomed(2, 3);
	for (int i = 0; i < 1000; i++) {
		uint8_t junk[WEIR_MESSAGE_MAX];
		for (size_t k = 0; k < sizeof(junk); k++)
			junk[k] = (uint8_t)rand();
		if (i % 2)
			weir_header_init((struct weir_header *)junk,
					 (enum weir_message_type)(rand() % 6),
					 (size_t)rand() % 400);
		send(agent.client, junk, (size_t)rand() % sizeof(junk) + 1, MSG_NOSIGNAL);
	}
	fake_agent_level(&agent, 1);
	assert_true(eventually(agent.status->level == 1)); /* still listening to sense */
	gone(n);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(level_changes_live),
		cmocka_unit_test(who_is_raised_waits_for_launches_under_way),
		cmocka_unit_test(graphs_keep_their_level),
		cmocka_unit_test(agent_dies_and_returns),
		cmocka_unit_test(who_is_refused_does_not_insist),
		cmocka_unit_test(next_agent_is_obeyed),
		cmocka_unit_test(first_pages_are_taken_later),
		cmocka_unit_test(forgotten_holds_end),
		cmocka_unit_test(shared_bit_is_the_agents),
		cmocka_unit_test(hostile_agent),
	};

	return cmocka_run_group_tests(tests, guest_begin_called, guest_finish);
}
