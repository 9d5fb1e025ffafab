/* Streams that are captured, and the replay of what they became. */
#include "graph-fixture.h"

#include <pthread.h>

static void test_capture_and_replay(void **state)
{
	CUstream s = new_stream(CU_STREAM_NON_BLOCKING);
	CUstreamCaptureStatus status;
	CUgraph graph;
	CUgraphExec exec;

	(void)state;
	ok(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	ok(cuStreamIsCapturing(s, &status));
	assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
	ok(cuMemsetD32Async(fx.memory, 10, 1, s));
	add(s, 2, 1);
	ok(cuMemcpyDtoDAsync(fx.memory + 4, fx.memory, 4, s));
	ok(cuStreamEndCapture(s, &graph));
	ok(cuStreamIsCapturing(s, &status));
	assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_NONE);
	assert_int_equal(device_word(0), 0); /* nothing was done yet */
	assert_int_equal(node_count(graph), 3);
	assert_int_equal(type_of(graph, 0), CU_GRAPH_NODE_TYPE_MEMSET);
	assert_int_equal(type_of(graph, 1), CU_GRAPH_NODE_TYPE_KERNEL);
	assert_int_equal(type_of(graph, 2), CU_GRAPH_NODE_TYPE_MEMCPY);

	exec = instantiate(graph);
	ok(cuGraphDestroy(graph)); /* the executable is a copy */
	for (int i = 0; i < 3; i++)
		ok(cuGraphLaunch(exec, s));
	add(s, 1, 100);
	ok(cuStreamSynchronize(s));
	assert_int_equal(device_word(0), 112);
	assert_int_equal(device_word(1), 12);
	ok(cuGraphExecDestroy(exec));
}

/* A captured wait holds each replay between the kernels before and after it. */
static void test_captured_gate(void **state)
{
	CUstream s = new_stream(CU_STREAM_NON_BLOCKING);
	CUgraph graph;
	CUgraphExec exec;

	(void)state;
	ok(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	append(s, 1);
	ok(cuStreamWaitValue32(s, pointer_to(fx.host), 1, CU_STREAM_WAIT_VALUE_EQ));
	append(s, 2);
	ok(cuStreamEndCapture(s, &graph));
	assert_int_equal(type_of(graph, 1), CU_GRAPH_NODE_TYPE_BATCH_MEM_OP);
	exec = instantiate(graph);
	for (uint32_t round = 0; round < 2; round++) {
		set_word(fx.host, 0);
		ok(cuGraphLaunch(exec, s));
		while (get_word(fx.host + 512) != 2 * round + 1)
			usleep(100);
		usleep(3000);
		fails(cuStreamQuery(s), CUDA_ERROR_NOT_READY);
		assert_int_equal(get_word(fx.host + 512), 2 * round + 1);
		set_word(fx.host, 1);
		ok(cuStreamSynchronize(s));
		assert_int_equal(list_at(2 * round + 1), 2);
	}
}

/* Waiting for an event of a capturing stream joins the capture; such streams must be joined back.
 */
static void test_fork_and_join(void **state)
{
	CUstream a = new_stream(CU_STREAM_NON_BLOCKING), b = new_stream(CU_STREAM_NON_BLOCKING);
	CUstreamCaptureStatus status;
	CUevent fork, join;
	CUgraph graph;
	CUgraphExec exec;
	size_t edges;

	(void)state;
	ok(cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING));
	ok(cuEventCreate(&join, CU_EVENT_DISABLE_TIMING));
	ok(cuStreamBeginCapture(a, CU_STREAM_CAPTURE_MODE_GLOBAL));
	append(a, 1);
	ok(cuEventRecord(fork, a));
	ok(cuStreamWaitEvent(b, fork, 0));
	ok(cuStreamIsCapturing(b, &status));
	assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
	append(b, 2);
	append(a, 3);
	ok(cuEventRecord(join, b));
	ok(cuStreamWaitEvent(a, join, 0));
	append(a, 4);
	fails(cuEventQuery(join), CUDA_ERROR_CAPTURED_EVENT);
	ok(cuStreamEndCapture(a, &graph));
	ok(cuStreamIsCapturing(b, &status));
	assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_NONE);
	ok(cuGraphGetEdges(graph, NULL, NULL, NULL, &edges));
	assert_int_equal(edges, 4);
	exec = instantiate(graph);
	ok(cuGraphLaunch(exec, b));
	ok(cuStreamSynchronize(b));
	assert_int_equal(fx.host[512], 4);
	assert_int_equal(list_at(0), 1);
	assert_int_equal(list_at(1) + list_at(2), 5);
	assert_int_equal(list_at(3), 4);

	ok(cuStreamBeginCapture(a, CU_STREAM_CAPTURE_MODE_GLOBAL));
	append(a, 1);
	ok(cuEventRecord(fork, a));
	ok(cuStreamWaitEvent(b, fork, 0));
	append(b, 2);
	fails(cuStreamEndCapture(b, &graph), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
	fails(cuStreamEndCapture(a, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	assert_null(graph);

	ok(cuStreamBeginCapture(a, CU_STREAM_CAPTURE_MODE_GLOBAL));
	append(a, 1);
	ok(cuEventRecord(fork, a));
	ok(cuStreamWaitEvent(b, fork, 0));
	append(b, 2);
	fails(cuStreamEndCapture(a, &graph), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
}

/* Begins a capture, lets @forbidden invalidate it, and checks its end. */
static void broken_by(CUstream s, CUresult result, CUresult expected)
{
	CUstreamCaptureStatus status;
	CUgraph graph = (CUgraph)1;

	assert_int_equal(result, expected);
	ok(cuStreamIsCapturing(s, &status));
	assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_INVALIDATED);
	fails(launch2(fx.add, 1, s, &fx.memory, &(uint32_t){1}),
	      CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	fails(cuStreamEndCapture(s, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	assert_null(graph);
}

static void test_forbidden_calls(void **state)
{
	CUstream s = new_stream(CU_STREAM_NON_BLOCKING), blocking = new_stream(CU_STREAM_DEFAULT);
	CUstream other = new_stream(CU_STREAM_NON_BLOCKING);
	CUdeviceptr p;
	CUevent outside;
	CUgraph graph;
	uint32_t word;

	(void)state;
	ok(cuEventCreate(&outside, 0));
	ok(cuEventRecord(outside, other));
#define BROKEN(stream, mode, call, error)               \
	do {                                            \
		ok(cuStreamBeginCapture(stream, mode)); \
		broken_by(stream, call, error);         \
	} while (0)
	BROKEN(s, CU_STREAM_CAPTURE_MODE_RELAXED, cuStreamSynchronize(s),
	       CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	BROKEN(s, CU_STREAM_CAPTURE_MODE_RELAXED, cuStreamQuery(s),
	       CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	BROKEN(s, CU_STREAM_CAPTURE_MODE_RELAXED, cuCtxSynchronize(),
	       CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	BROKEN(s, CU_STREAM_CAPTURE_MODE_GLOBAL, cuMemAlloc(&p, 16),
	       CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	BROKEN(s, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, cuEventQuery(outside),
	       CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	BROKEN(s, CU_STREAM_CAPTURE_MODE_RELAXED, cuStreamWaitEvent(s, outside, 0),
	       CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
	BROKEN(blocking, CU_STREAM_CAPTURE_MODE_RELAXED, cuMemsetD8(fx.memory, 0, 1),
	       CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
	BROKEN(blocking, CU_STREAM_CAPTURE_MODE_RELAXED, cuMemcpyDtoH(&word, fx.memory, 4),
	       CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
#undef BROKEN
	fails(cuStreamBeginCapture(NULL, CU_STREAM_CAPTURE_MODE_RELAXED),
	      CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	fails(cuStreamEndCapture(s, &graph), CUDA_ERROR_ILLEGAL_STATE);
	fails(cuStreamBeginCapture(s, 3), CUDA_ERROR_INVALID_VALUE);

	/* what a relaxed capture allows, and a relaxed thread */
	ok(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
	fails(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_ERROR_ILLEGAL_STATE);
	ok(cuMemAlloc(&p, 16));
	ok(cuEventQuery(outside));
	add(NULL, 1, 1); /* the stream does not synchronise with the legacy one */
	ok(cuStreamEndCapture(s, &graph));
	ok(cuGraphDestroy(graph));
}

static void *free_in_thread(void *relaxed)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	CUdeviceptr p;

	ok(cuCtxSetCurrent(fx.ctx));
	if (relaxed)
		ok(cuThreadExchangeStreamCaptureMode(&mode));
	return (void *)(uintptr_t)cuMemAlloc(&p, 16);
}

static CUresult alloc_elsewhere(bool relaxed)
{
	pthread_t thread;
	void *result;

	assert_int_equal(pthread_create(&thread, NULL, free_in_thread, relaxed ? &thread : NULL),
			 0);
	pthread_join(thread, &result);
	return (CUresult)(uintptr_t)result;
}

/* A global capture forbids unsafe calls to all threads that are not relaxed; other modes do not. */
static void test_modes_and_threads(void **state)
{
	CUstream s = new_stream(CU_STREAM_NON_BLOCKING);
	CUgraph graph;

	(void)state;
	ok(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	ok(alloc_elsewhere(false));
	ok(cuStreamEndCapture(s, &graph));
	ok(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	ok(alloc_elsewhere(true));
	fails(alloc_elsewhere(false), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	fails(cuStreamEndCapture(s, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

static void test_capture_info(void **state)
{
	CUstream s = new_stream(CU_STREAM_NON_BLOCKING);
	CUstreamCaptureStatus status;
	cuuint64_t id = 0;
	CUgraph graph = NULL, same = NULL;
	CUgraphNode node;
	const CUgraphNode *heads = NULL;
	size_t n = 99;

	(void)state;
	ok(cuStreamGetCaptureInfo(s, &status, &id, &graph, &heads, NULL, &n));
	assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_NONE);
	ok(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	append(s, 1);
	ok(cuStreamGetCaptureInfo(s, &status, &id, &graph, &heads, NULL, &n));
	assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
	assert_true(id > 0 && n == 1);
	/* a node that the caller puts in */
	ok(cuGraphAddEmptyNode(&node, graph, heads, n));
	ok(cuStreamUpdateCaptureDependencies(s, &node, NULL, 1,
					     CU_STREAM_SET_CAPTURE_DEPENDENCIES));
	append(s, 2);
	fails(cuGraphDestroy(graph), CUDA_ERROR_INVALID_VALUE);
	ok(cuStreamEndCapture(s, &same));
	assert_ptr_equal(graph, same);
	assert_int_equal(node_count(graph), 3);
	ok(cuGraphGetEdges(graph, NULL, NULL, NULL, &n));
	assert_int_equal(n, 2);
	ok(cuGraphLaunch(instantiate(graph), s));
	ok(cuStreamSynchronize(s));
	assert_int_equal(list_at(1), 2);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_capture_and_replay), TEST(test_captured_gate),
		TEST(test_fork_and_join),      TEST(test_forbidden_calls),
		TEST(test_modes_and_threads),  TEST(test_capture_info),
	};
	int failed;

	own_machine("2", "64M");
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	remove_machine();
	return failed;
}
