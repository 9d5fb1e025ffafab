/* What LEVEL messages do to a client: other levels, new pages, and the question whether it has
 * work, on the null driver. */
#include "gates/level-change.h"

#include "inside.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "client/level-binding.h"

#define KERNEL ((CUfunction)(uintptr_t)0x9000)
#define OWN    (1u << 1) /* the bit that context_welcomed() gives */

static void launch(unsigned n)
{
	assert_int_equal(cuLaunchKernel(KERNEL, 1, 1, 1, 32, 1, 1, 0, STREAM(n, 1), NULL, NULL),
			 CUDA_SUCCESS);
}

static const struct level_binding *binding(void)
{
	return atomic_load(&client->binding);
}

/* Tells the level, and waits until the client has settled that. */
static void settle(uint8_t level)
{
	const struct level_binding *before = binding();

	fake_agent_level(&agent, level);
	assert_true(eventually(binding() != before));
}

static void capture(unsigned n)
{
	CUgraph graph;

	assert_int_equal(cuStreamBeginCapture_v2(STREAM(n, 1), CU_STREAM_CAPTURE_MODE_GLOBAL),
			 CUDA_SUCCESS);
	for (unsigned i = 0; i < 100; i++)
		launch(n);
	assert_int_equal(cuStreamEndCapture(STREAM(n, 1), &graph), CUDA_SUCCESS);
}

/* Each message is about the level that the last one told, which the client did not take. */
static void test_graphs_keep_their_level(void **state)
{
	unsigned n = context_welcomed(1);

	(void)state;
	capture(n);
	for (unsigned i = 0; i < 300; i++) {
		fake_agent_new_demand(&agent);
		settle(2 + i % 2);
		assert_int_equal(binding()->level, 1);
		assert_int_equal(link_of(client)->newest.level, 2 + i % 2);
		launch(n);
	}
	/* Its gates wait for the pages that the others write now. */
	assert_false(binding_demanded(binding()));
	atomic_store(&agent.demand[1]->word, 1u << 7);
	assert_true(binding_demanded(binding()));
	atomic_store(&agent.demand[1]->word, 0);
	settle(0);
	assert_int_equal(binding()->level, 0);
	context_gone(n);
}

static void test_demand_moves_to_new_pages(void **state)
{
	unsigned n = context_welcomed(2);

	(void)state;
	driver->streams_busy = 1;
	launch(n);
	assert_int_equal(agent.demand[1]->word, OWN);
	fake_agent_new_demand(&agent);
	atomic_store(&agent.demand[0]->word, 0);
	settle(2);
	assert_true(eventually(agent.demand[0]->word == OWN && agent.demand[1]->word == OWN));
	assert_true(eventually(agent.former[0]->word == 0 && agent.former[1]->word == 0));
	driver->streams_busy = 0;
	assert_int_equal(cuStreamSynchronize(STREAM(n, 1)), CUDA_SUCCESS);
	assert_true(eventually(agent.demand[0]->word == 0 && agent.demand[1]->word == 0));
	context_gone(n);
}

/* The agent copied the words before the work ended. */
static void test_ended_demand_does_not_come_back(void **state)
{
	unsigned n = context_welcomed(2);

	(void)state;
	assert_int_equal(cuStreamSynchronize(STREAM(n, 1)), CUDA_SUCCESS);
	assert_true(eventually(agent.demand[0]->word == 0 && agent.status->outstanding == 0));
	fake_agent_new_demand(&agent);
	agent.demand[0]->word = agent.demand[1]->word = OWN;
	settle(2);
	assert_true(eventually(agent.demand[0]->word == 0 && agent.demand[1]->word == 0));
	context_gone(n);
}

/* The same level with the same pages: the agent has cleared bits that nobody seemed to claim. */
static void test_cleared_demand_is_set_again(void **state)
{
	unsigned n = context_welcomed(2);
	const struct level_binding *before = binding();

	(void)state;
	driver->streams_busy = 1;
	launch(n);
	for (unsigned i = 0; i < 100; i++) {
		agent.demand[0]->word = agent.demand[1]->word = 0;
		fake_agent_level(&agent, 2);
		assert_true(
			eventually(agent.demand[0]->word == OWN && agent.demand[1]->word == OWN));
	}
	assert_ptr_equal(binding(), before); /* nothing is kept of it */
	driver->streams_busy = 0;
	context_gone(n);
}

/* A client of level 0 has no bit. */
static void test_raised_client_gets_a_bit(void **state)
{
	unsigned n = context_welcomed_as(0, WEIR_BIT_SHARED);

	(void)state;
	assert_true(agent.hello.flags & WEIR_HELLO_TAKES_BIT);
	assert_int_equal(cuStreamSynchronize(STREAM(n, 1)), CUDA_SUCCESS);
	fake_agent_raise(&agent, 2, 9);
	assert_true(eventually(binding()->level == 2));
	driver->streams_busy = 1;
	launch(n);
	assert_int_equal(agent.demand[1]->word, 1u << 9);
	driver->streams_busy = 0;
	assert_int_equal(cuStreamSynchronize(STREAM(n, 1)), CUDA_SUCCESS);
	assert_true(eventually(agent.demand[1]->word == 0));
	settle(1);
	assert_int_equal(binding()->bit, 9);
	context_gone(n);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_graphs_keep_their_level),
		cmocka_unit_test(test_demand_moves_to_new_pages),
		cmocka_unit_test(test_ended_demand_does_not_come_back),
		cmocka_unit_test(test_cleared_demand_is_set_again),
		cmocka_unit_test(test_raised_client_gets_a_bit),
	};

	driver_load();
	return cmocka_run_group_tests(tests, agent_begin, agent_finish);
}
