/* Priorities: whose waiting blocks begin first when a block ends. */
#include "driver-test.h"

static CUstream with_priority(int priority)
{
	CUstream stream;

	ok(cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, priority));
	return stream;
}

/* In @stream; @priority of the launch itself, NULL: none. */
static void launch_with(CUfunction f, unsigned blocks, CUstream stream, const int *priority,
			bool cooperative, void **params)
{
	CUlaunchAttribute attributes[2] = {
		{.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value.cooperative = cooperative},
		{.id = CU_LAUNCH_ATTRIBUTE_PRIORITY, .value.priority = priority ? *priority : 0}};
	CUlaunchConfig config = {blocks, 1, 1, 1, 1, 1, 0, stream, attributes, priority ? 2 : 1};

	ok(cuLaunchKernelEx(&config, f, params, NULL));
}

/* A kernel that writes host word 513. */
static void append_with(CUstream stream, const int *priority)
{
	CUdeviceptr list = pointer_to(fx.host + 512);
	uint32_t value = 1;
	void *params[] = {&list, &value};

	launch_with(fx.append, 1, stream, priority, false, params);
}

/* The same as a graph's node, captured in a stream of @captured priority. @node: that the node gets
 * afterwards, NULL: none. */
static void append_by_graph(CUstream stream, int captured, const int *node)
{
	CUstream recorder = with_priority(captured);
	CUkernelNodeAttrValue value = {.priority = node ? *node : 0};
	CUgraph graph;
	CUgraphNode kernel;
	CUgraphExec exec;
	size_t n = 1;

	ok(cuStreamBeginCapture(recorder, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	append_with(recorder, NULL);
	ok(cuStreamEndCapture(recorder, &graph));
	ok(cuGraphGetNodes(graph, &kernel, &n));
	if (node)
		ok(cuGraphKernelNodeSetAttribute(kernel, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
	ok(cuGraphInstantiate(&exec, graph, 0));
	ok(cuGraphLaunch(exec, stream));
	ok(cuGraphExecDestroy(exec));
	ok(cuGraphDestroy(graph));
	ok(cuStreamDestroy(recorder));
}

/* Blocks in @stream that stay until host word @flag is not 0. */
static void stay(CUstream stream, unsigned blocks, size_t flag)
{
	CUdeviceptr word = pointer_to(fx.host + flag), p = pointer_to(fx.host + 1);

	ok(launch2(fx.hold, blocks, stream, &word, &p));
}

static bool is_done_within(CUstream stream, unsigned ms)
{
	for (unsigned i = 0; i < ms && cuStreamQuery(stream) == CUDA_ERROR_NOT_READY; i++)
		usleep(1000);
	return cuStreamQuery(stream) == CUDA_SUCCESS;
}

static struct line {
	CUstream first, second;
} line;

/* One kernel on all SMs, which nothing overtakes, and another one that waits behind it, with the
 * priority @second. */
static void stand_in_line(int second)
{
	memset(fx.host, 0, 4096);
	line = (struct line){with_priority(-5), with_priority(second)};
	stay(line.first, 3, 2);
	stay(line.second, 100, 3);
}

/* The kernel in @stream came last. Whether it is done while the second one of the line is not. */
static bool overtakes(CUstream stream)
{
	set_word(fx.host + 2, 1);
	ok(cuStreamSynchronize(line.first));
	/* A kernel that waits is not done after any time; one that goes first takes little. */
	bool done = is_done_within(stream, 1000);
	fails(cuStreamQuery(line.second), CUDA_ERROR_NOT_READY);
	set_word(fx.host + 3, 1);
	ok(cuCtxSynchronize());
	assert_int_equal(fx.host[512], 1);
	assert_int_equal(fx.host[1], 103);
	ok(cuStreamDestroy(line.first));
	ok(cuStreamDestroy(line.second));
	return done;
}

static void test_launches(void **state)
{
	static const int least = 0, greater = -1, beyond = -1000000;
	CUstream usual = with_priority(0), urgent = with_priority(-5);
	const struct {
		int second;
		CUstream stream;
		const int *priority;
		bool overtakes;
	} cases[] = {
		{0, urgent, NULL, true},    {0, usual, NULL, false},    {0, usual, &greater, true},
		{0, urgent, &least, false}, {-4, usual, &beyond, true}, {-5, usual, &beyond, false},
	};

	(void)state;
	for (size_t i = 0; i < countof(cases); i++) {
		stand_in_line(cases[i].second);
		append_with(cases[i].stream, cases[i].priority);
		assert_int_equal(overtakes(cases[i].stream), cases[i].overtakes);
	}
}

static void test_graphs(void **state)
{
	static const int greater = -1;
	CUstream usual = with_priority(0), urgent = with_priority(-5);

	(void)state;
	stand_in_line(0);
	append_by_graph(usual, -2, NULL);
	assert_true(overtakes(usual));
	stand_in_line(0);
	append_by_graph(urgent, 0, NULL);
	assert_false(overtakes(urgent));
	stand_in_line(0);
	append_by_graph(usual, 0, &greater);
	assert_true(overtakes(usual));
}

/* Of a cooperative kernel of the least priority one block has begun when another such kernel, of a
 * greater priority, comes and the other SMs become free. Both need all SMs. */
static void test_cooperative(void **state)
{
	CUstream first = new_stream(CU_STREAM_NON_BLOCKING), usual = with_priority(0),
		 urgent = with_priority(-5);
	CUdeviceptr low = pointer_to(fx.host + 8), high = pointer_to(fx.host + 9);
	uint32_t blocks = 3;
	void *low_params[] = {&low, &blocks}, *high_params[] = {&high, &blocks};

	(void)state;
	for (unsigned i = 0; i < 5; i++) {
		memset(fx.host, 0, 4096);
		stay(first, 2, 2);
		launch_with(fx.meet, blocks, usual, NULL, true, low_params);
		while (get_word(fx.host + 8) != 1)
			usleep(1000);
		launch_with(fx.meet, blocks, urgent, NULL, true, high_params);
		set_word(fx.host + 2, 1);
		assert_true(is_done_within(usual, 20000));
		assert_true(is_done_within(urgent, 20000));
		assert_int_equal(get_word(fx.host + 8), blocks);
		assert_int_equal(get_word(fx.host + 9), blocks);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_launches, setup, teardown),
		cmocka_unit_test_setup_teardown(test_graphs, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cooperative, setup, teardown),
	};
	int failed;

	own_machine("3", "64M");
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	remove_machine();
	return failed;
}
