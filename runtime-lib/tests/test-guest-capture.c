/* While a stream is captured, nobody of ours may ask how far any is: that would end the capture. */
#include "guest.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define MANY_LOOKS 50000 /* us */

static CUresult begin(CUstream stream)
{
	return cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
}

static CUresult end(CUstream stream)
{
	CUgraph graph;

	return cuStreamEndCapture(stream, &graph);
}

/* Time for the worker to ask, if it does; and whether it asks again afterwards. */
static void ends_unspoilt(unsigned n)
{
	usleep(MANY_LOOKS);
	assert_int_equal(end(STREAM(n, 1)), CUDA_SUCCESS);
	assert_int_equal(driver->spoilt, 0);
	driver->streams_busy = 0;
	assert_true(eventually(agent.demand[0]->word == 0));
	gone(n);
}

static void is_left_alone(void **state)
{
	(void)state;
	driver->streams_busy = 1;
	unsigned n = welcomed(1, 3);
	assert_int_equal(begin(STREAM(n, 1)), CUDA_SUCCESS);
	launch_on(STREAM(n, 2), n);
	ends_unspoilt(n);
}

static void calls_that_fail_do_not_end_it(void **state)
{
	(void)state;
	driver->streams_busy = 1;
	unsigned n = welcomed(1, 3);
	assert_int_equal(begin(STREAM(n, 1)), CUDA_SUCCESS);
	assert_int_equal(begin(STREAM(n, 1)), CUDA_ERROR_ILLEGAL_STATE);
	usleep(MANY_LOOKS);
	driver->end_fails = CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
	assert_int_equal(end(STREAM(n, 1)), CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
	driver->end_fails = 0;
	ends_unspoilt(n);
}

/* Else no stream would ever be asked again. */
static void is_over_with_its_context(void **state)
{
	(void)state;
	unsigned n = welcomed(1, 3);
	assert_int_equal(begin(STREAM(n, 1)), CUDA_SUCCESS);
	gone(n);
	driver->captured = NULL;

	driver->streams_busy = 1;
	n = welcomed(1, 3);
	driver->streams_busy = 0;
	assert_true(eventually(agent.demand[0]->word == 0));
	gone(n);
}

/* A kernel of another stream fails meanwhile, and the driver says nothing but that. */
static void is_over_in_a_broken_context(void **state)
{
	(void)state;
	driver->streams_busy = 1;
	unsigned n = welcomed(1, 3);
	assert_int_equal(begin(STREAM(n, 1)), CUDA_SUCCESS);
	driver->broken = driver->end_fails = CUDA_ERROR_ILLEGAL_ADDRESS;
	assert_int_equal(end(STREAM(n, 1)), CUDA_ERROR_ILLEGAL_ADDRESS);
	driver->captured = NULL;
	bool cleared = eventually(agent.demand[0]->word == 0);
	driver->broken = driver->end_fails = 0;
	gone(n);
	assert_true(cleared);
}

/* Gates of a graph of 100 kernels, 2 ms by what is assumed of each. */
static int gates_inside(bool above)
{
	unsigned n = welcomed(0, 9);

	agent.control->above = above;
	int before = driver->gates;
	assert_int_equal(begin(STREAM(n, 1)), CUDA_SUCCESS);
	for (unsigned i = 0; i < 101; i++)
		launch_on(STREAM(n, 1), 650);
	assert_int_equal(end(STREAM(n, 1)), CUDA_SUCCESS);
	int gates = driver->gates - before;
	gone(n);
	return gates;
}

/* Under time-slicing the hardware interrupts graphs, so they have few while nobody is above. */
static void has_gates_by_who_is_there(void **state)
{
	(void)state;
	assert_int_equal(gates_inside(false), 2);
	assert_int_equal(gates_inside(true), 5);
	driver->mps = 1;
	assert_int_equal(gates_inside(false), 5);
	driver->mps = 0;
}

static void *first_launch(void *stream)
{
	launch_on(stream, 1);
	return NULL;
}

static void *answer(void *data)
{
	usleep(MANY_LOOKS);
	fake_agent_welcome(&agent, 1, 3);
	return data;
}

/* The agent takes its time over the first launch in the context; the capture waits for that. */
static void begun_while_another_thread_makes_the_context_known(void **state)
{
	unsigned n = context_new();
	pthread_t beside, agents;

	(void)state;
	driver->streams_busy = 1;
	assert_int_equal(pthread_create(&beside, NULL, first_launch, STREAM(n, 2)), 0);
	fake_agent_accept(&agent);
	assert_int_equal(pthread_create(&agents, NULL, answer, NULL), 0);
	assert_int_equal(begin(STREAM(n, 1)), CUDA_SUCCESS);
	pthread_join(agents, NULL);
	pthread_join(beside, NULL);
	launch_on(STREAM(n, 1), n);
	ends_unspoilt(n);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_left_alone),
		cmocka_unit_test(calls_that_fail_do_not_end_it),
		cmocka_unit_test(is_over_with_its_context),
		cmocka_unit_test(is_over_in_a_broken_context),
		cmocka_unit_test(has_gates_by_who_is_there),
		cmocka_unit_test(begun_while_another_thread_makes_the_context_known),
	};

	return cmocka_run_group_tests(tests, guest_begin_called, guest_finish);
}
