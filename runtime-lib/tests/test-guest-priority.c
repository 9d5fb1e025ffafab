/* Launches of clients that run at the same time have a priority by level, length and order. */
#include "guest.h"

#include <weir/base.h>

/* The priority with which the next launch of a kernel reaches the driver; 1: none. */
static int priority_of_kernel(CUstream stream, unsigned kernel)
{
	driver->n_ops = 0;
	launch_on(stream, kernel);
	for (size_t i = driver->n_ops; i--;) /* behind it there may be an event */
		if (driver->ops[i].kind == NULL_LAUNCH)
			return driver->ops[i].priority;
	fail_msg("nothing was launched");
	return 0;
}

static int priority_of_launch(CUstream stream)
{
	return priority_of_kernel(stream, 600);
}

static int priority_of_config(CUstream stream, CUlaunchAttribute *attributes, unsigned n)
{
	CUlaunchConfig config = {
		.gridDimX = 1,
		.gridDimY = 1,
		.gridDimZ = 1,
		.blockDimX = 32,
		.blockDimY = 1,
		.blockDimZ = 1,
		.hStream = stream,
		.attrs = attributes,
		.numAttrs = n,
	};

	driver->n_ops = 0;
	assert_int_equal(cuLaunchKernelEx(&config, KERNEL(601), NULL, NULL), CUDA_SUCCESS);
	assert_true(driver->n_ops >= 1);
	return driver->ops[driver->n_ops - 1].priority;
}

/* Of the driver's 0..-5 each level has a part; the program's own order within it stays. So does
 * the priority of a cooperative launch. */
static void launches_have_their_levels_priority(void **state)
{
	static const int plain[] = {1, -1, -3, -5}, ahead[] = {0, -2, -4, -5};
	CUlaunchAttribute attributes[2] = {{.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE},
					   {.id = CU_LAUNCH_ATTRIBUTE_PRIORITY}};

	(void)state;
	driver->mps = 1;
	for (uint8_t level = 0; level < WEIR_LEVELS; level++) {
		driver->priority = 0;
		unsigned n = welcomed(level, 9);
		agent.control->above = agent.control->below = 0;
		assert_int_equal(priority_of_launch(STREAM(n, 1)), 1); /* nobody else is there */
		agent.control->above = level == 0;
		agent.control->below = level > 0;
		assert_int_equal(priority_of_launch(STREAM(n, 1)), plain[level]);
		driver->priority = -3;
		assert_int_equal(priority_of_launch(STREAM(n, 2)), ahead[level]);
		assert_int_equal(priority_of_config(STREAM(n, 2), attributes, 1), ahead[level]);
		assert_int_equal(driver->ops[driver->n_ops - 1].attributes, 2);
		attributes[0].value.cooperative = 1;
		assert_int_equal(priority_of_config(STREAM(n, 2), attributes, 1), 1);
		attributes[0].value.cooperative = 0;
		attributes[1].value.priority = -2; /* the program's own */
		assert_int_equal(priority_of_config(STREAM(n, 2), attributes, 2), -2);
		agent.control->above = agent.control->below = 0;
		gone(n);
	}
	driver->priority = 0;
	driver->mps = 0;
}

/* Clients of one level run at the same time: a launch twice as long has a priority one step less.
 */
static void launches_have_their_lengths_priority(void **state)
{
	static const struct {
		uint64_t ns;
		int priority;
	} cases[] = {{100000, -4},   {1900000, -4}, {2500000, -3}, {5000000, -2},
		     {11000000, -1}, {17000000, 1}, {900000000, 1}};

	(void)state;
	driver->mps = 1;
	unsigned n = welcomed(1, 9);
	for (unsigned i = 0; i < countof(cases); i++)
		learn(n, 610 + i, cases[i].ns);
	assert_int_equal(priority_of_kernel(STREAM(n, 1), 610), 1);
	agent.control->flags = WEIR_CONTROL_AHEAD;
	for (unsigned i = 0; i < countof(cases); i++)
		assert_int_equal(priority_of_kernel(STREAM(n, 1), 610 + i), cases[i].priority);
	/* Nothing is known of it: it is as good as short. */
	assert_int_equal(priority_of_kernel(STREAM(n, 1), 609), -4);
	/* Levels come first. */
	agent.control->below = 1;
	assert_int_equal(priority_of_kernel(STREAM(n, 1), 612), -1);
	assert_int_equal(priority_of_kernel(STREAM(n, 1), 614), -1);
	agent.control->below = agent.control->flags = 0;
	driver->mps = 0;
	gone(n);
}

/* The priority of the first launch of new work, which then goes on. */
static int priority_of_burst(unsigned n, unsigned kernel)
{
	driver->streams_busy = 0;
	assert_int_equal(cuStreamSynchronize(STREAM(n, 1)), CUDA_SUCCESS);
	assert_true(eventually(!(agent.demand[0]->word & 1ull << 9)));
	driver->streams_busy = 1;
	return priority_of_kernel(STREAM(n, 1), kernel);
}

static int priority_now(unsigned n)
{
	return priority_of_kernel(STREAM(n, 1), 620);
}

/* Among same-level clients above others, the one that had work first is ahead for a while. */
static void who_comes_first_is_ahead(void **state)
{
	(void)state;
	driver->mps = 1;
	unsigned n = welcomed(2, 9);
	learn(n, 621, 5000000);
	learn(n, 620, 100000);
	agent.control->below = 1;
	assert_int_equal(priority_of_burst(n, 620), -3); /* the agent does not say so */
	agent.control->flags = WEIR_CONTROL_AHEAD;
	assert_int_equal(priority_of_burst(n, 620), -4);
	agent.demand[0]->word |= 1 << 3; /* those of levels between us count for nothing */
	assert_int_equal(priority_of_burst(n, 620), -4);
	agent.demand[1]->word |= 1 << 4;                             /* an equal comes */
	assert_int_equal(priority_of_kernel(STREAM(n, 1), 621), -3); /* nobody waits behind that */
	agent.control->flags = 0;
	assert_int_equal(priority_now(n), -3);
	agent.control->flags = WEIR_CONTROL_AHEAD;
	assert_true(eventually(priority_now(n) == -3)); /* it was at work for too long */

	assert_int_equal(priority_of_burst(n, 620), -3); /* the equal was before us */
	agent.demand[1]->word &= ~(1ull << 4);
	assert_int_equal(priority_now(n), -3);
	agent.control->below = agent.control->flags = 0;
	agent.demand[0]->word = agent.demand[1]->word = 0;
	driver->streams_busy = driver->mps = 0;
	gone(n);
}

static void launch_cooperative(unsigned n)
{
	assert_int_equal(
		cuLaunchCooperativeKernel(KERNEL(600), 1, 1, 1, 32, 1, 1, 0, STREAM(n, 1), NULL),
		CUDA_SUCCESS);
}

static void launch_graph(unsigned n)
{
	assert_int_equal(cuGraphLaunch((CUgraphExec)KERNEL(700), STREAM(n, 1)), CUDA_SUCCESS);
}

static void launch_cooperative_by_config(unsigned n)
{
	CUlaunchAttribute all = {.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value.cooperative = 1};

	assert_int_equal(priority_of_config(STREAM(n, 1), &all, 1), 1);
}

static void launch_with_priority(unsigned n)
{
	CUlaunchAttribute own = {.id = CU_LAUNCH_ATTRIBUTE_PRIORITY, .value.priority = -5};

	assert_int_equal(priority_of_config(STREAM(n, 1), &own, 1), -5);
}

/* The order of the program's own streams stays. */
static void launch_in_stream_with_priority(unsigned n)
{
	driver->priority = -3;
	assert_int_equal(priority_of_launch(STREAM(n, 3)), 1);
	driver->priority = 0;
}

/* What has no priority by its length is told of, so that no other launch of the level has one. */
static void unordered_launches_are_told(void **state)
{
	static void (*const unordered[])(unsigned n) = {
		launch_cooperative, launch_cooperative_by_config, launch_graph,
		launch_with_priority, launch_in_stream_with_priority};

	(void)state;
	driver->mps = 1;
	for (unsigned i = 0; i < countof(unordered); i++) {
		unsigned n = welcomed(1, 9);
		agent.control->flags = WEIR_CONTROL_AHEAD;
		launch_on(STREAM(n, 1), 600);
		assert_true(eventually(agent.status->flags & WEIR_STATUS_ORDERED));
		unordered[i](n);
		assert_true(eventually(!(agent.status->flags & WEIR_STATUS_ORDERED)));
		launch_on(STREAM(n, 1), 600);
		settle(50000);
		assert_false(agent.status->flags & WEIR_STATUS_ORDERED);
		agent.control->flags = 0;
		gone(n);
	}
	driver->mps = 0;
	unsigned n = welcomed(1, 9);
	settle(50000);
	assert_false(agent.status->flags & WEIR_STATUS_ORDERED);
	gone(n);
}

static void priorities_may_be_unknown(void **state)
{
	(void)state;
	unsigned n = welcomed(2, 9); /* not under MPS */
	agent.control->below = 1;
	assert_int_equal(priority_of_launch(STREAM(n, 1)), 1);
	gone(n);

	driver->mps = 1;
	n = welcomed(2, 9);
	agent.control->flags = WEIR_CONTROL_AHEAD; /* which says nothing here */
	driver->priorities_fail = CUDA_ERROR_INVALID_VALUE;
	assert_int_equal(priority_of_launch(STREAM(n, 1)), 1); /* launched as it is */
	driver->priorities_fail = CUDA_ERROR_NOT_SUPPORTED;
	assert_int_equal(priority_of_launch(STREAM(n, 1)), 1);
	driver->priorities_fail = 0;
	assert_int_equal(priority_of_launch(STREAM(n, 1)), 1); /* not tried again */
	agent.control->below = 0;
	assert_int_equal(priority_of_launch(STREAM(n, 1)), 1);
	agent.control->flags = 0;
	driver->mps = 0;
	gone(n);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(launches_have_their_levels_priority),
		cmocka_unit_test(launches_have_their_lengths_priority),
		cmocka_unit_test(who_comes_first_is_ahead),
		cmocka_unit_test(unordered_launches_are_told),
		cmocka_unit_test(priorities_may_be_unknown),
	};

	return cmocka_run_group_tests(tests, guest_begin_called, guest_finish);
}
