/* Graphs by hand, and their replay. */
#include "graph-fixture.h"

static CUgraphNode kernel_node(CUgraph graph, CUgraphNode from, uint32_t value)
{
	CUdeviceptr list = pointer_to(fx.host + 512);
	void *params[] = {&list, &value};
	CUDA_KERNEL_NODE_PARAMS p = {.func = fx.append,
				     .gridDimX = 1,
				     .gridDimY = 1,
				     .gridDimZ = 1,
				     .blockDimX = 1,
				     .blockDimY = 1,
				     .blockDimZ = 1,
				     .kernelParams = params};
	CUgraphNode node;

	ok(cuGraphAddKernelNode(&node, graph, &from, from != NULL, &p));
	return node;
}

static void put_seven(void *data)
{
	set_word((uint32_t *)data, 7);
}

/* One node of each kind; order is by edges, not by when a node was added. */
static void test_by_hand(void **state)
{
	CUstream s = new_stream(CU_STREAM_NON_BLOCKING);
	CUstreamBatchMemOpParams write = {
		.writeValue = {.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32,
			       .address = pointer_to(fx.host + 20),
			       .value = 5}};
	CUDA_BATCH_MEM_OP_NODE_PARAMS memop = {.ctx = fx.ctx, .count = 1, .paramArray = &write};
	CUDA_HOST_NODE_PARAMS host = {put_seven, fx.host + 21};
	CUDA_MEMSET_NODE_PARAMS set = {.dst = pointer_to(fx.host + 22),
				       .value = 9,
				       .elementSize = 4,
				       .width = 1,
				       .height = 1};
	CUDA_MEMCPY3D copy = {.srcMemoryType = CU_MEMORYTYPE_HOST,
			      .srcHost = fx.host + 22,
			      .dstMemoryType = CU_MEMORYTYPE_DEVICE,
			      .dstDevice = fx.memory + 40,
			      .WidthInBytes = 4,
			      .Height = 1,
			      .Depth = 1};
	CUgraphNode first, second, nodes[6];
	CUevent e;
	CUgraph graph, child, clone;
	CUgraphExec exec;
	size_t n;

	(void)state;
	ok(cuEventCreate(&e, 0));
	ok(cuGraphCreate(&graph, 0));
	ok(cuGraphCreate(&child, 0));
	second = kernel_node(graph, NULL, 2);
	first = kernel_node(graph, NULL, 1);
	ok(cuGraphAddDependencies(graph, &first, &second, NULL, 1));
	kernel_node(child, NULL, 3);
	ok(cuGraphAddChildGraphNode(&nodes[0], graph, &second, 1, child));
	ok(cuGraphAddBatchMemOpNode(&nodes[1], graph, &nodes[0], 1, &memop));
	ok(cuGraphAddHostNode(&nodes[2], graph, &nodes[1], 1, &host));
	ok(cuGraphAddMemsetNode(&nodes[3], graph, &nodes[2], 1, &set, fx.ctx));
	ok(cuGraphAddMemcpyNode(&nodes[4], graph, &nodes[3], 1, &copy, fx.ctx));
	ok(cuGraphAddEventRecordNode(&nodes[5], graph, &nodes[4], 1, e));
	ok(cuGraphGetRootNodes(graph, NULL, &n));
	assert_int_equal(n, 1);
	ok(cuGraphClone(&clone, graph));
	ok(cuGraphDestroy(graph));
	ok(cuGraphDestroy(child));
	exec = instantiate(clone);
	ok(cuGraphLaunch(exec, s));
	ok(cuEventSynchronize(e));
	ok(cuStreamSynchronize(s));
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(list_at(i), i + 1);
	assert_int_equal(fx.host[20], 5);
	assert_int_equal(fx.host[21], 7);
	assert_int_equal(device_word(10), 9);
}

static void test_event_wait_node(void **state)
{
	CUstream s = new_stream(CU_STREAM_NON_BLOCKING), other = new_stream(CU_STREAM_NON_BLOCKING);
	CUgraphNode wait;
	CUgraph graph;
	CUevent e;

	(void)state;
	ok(cuEventCreate(&e, 0));
	ok(cuGraphCreate(&graph, 0));
	ok(cuGraphAddEventWaitNode(&wait, graph, NULL, 0, e));
	kernel_node(graph, wait, 2);
	ok(cuStreamWaitValue32(other, pointer_to(fx.host), 1, CU_STREAM_WAIT_VALUE_EQ));
	append(other, 1);
	ok(cuEventRecord(e, other));
	ok(cuGraphLaunch(instantiate(graph), s));
	usleep(3000);
	fails(cuStreamQuery(s), CUDA_ERROR_NOT_READY);
	set_word(fx.host, 1);
	ok(cuStreamSynchronize(s));
	assert_int_equal(list_at(1), 2);
}

static void test_change_nodes(void **state)
{
	CUstream s = new_stream(CU_STREAM_NON_BLOCKING);
	CUDA_KERNEL_NODE_PARAMS p;
	CUgraphExecUpdateResultInfo info;
	CUgraph graph, other;
	CUgraphNode node;
	CUgraphExec exec;
	unsigned enabled;

	(void)state;
	ok(cuGraphCreate(&graph, 0));
	node = kernel_node(graph, NULL, 1);
	exec = instantiate(graph);
	ok(cuGraphKernelNodeGetParams(node, &p));
	assert_ptr_equal(p.func, fx.append);
	assert_int_equal(*(uint32_t *)p.kernelParams[1], 1);
	p.kernelParams[1] = &(uint32_t){2};
	ok(cuGraphExecKernelNodeSetParams(exec, node, &p));
	ok(cuGraphLaunch(exec, s));

	ok(cuGraphCreate(&other, 0));
	kernel_node(other, NULL, 3);
	ok(cuGraphExecUpdate(exec, other, &info));
	ok(cuGraphLaunch(exec, s));

	kernel_node(other, NULL, 4);
	fails(cuGraphExecUpdate(exec, other, &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
	assert_int_equal(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);

	ok(cuGraphNodeSetEnabled(exec, node, 0));
	ok(cuGraphNodeGetEnabled(exec, node, &enabled));
	assert_int_equal(enabled, 0);
	ok(cuGraphLaunch(exec, s));
	ok(cuStreamSynchronize(s));
	assert_int_equal(fx.host[512], 2);
	assert_int_equal(list_at(0), 2);
	assert_int_equal(list_at(1), 3);
}

static void test_hostile_graphs(void **state)
{
	CUgraph graph, other;
	CUgraphNode a, b, foreign, out;
	CUgraphExec exec;

	(void)state;
	ok(cuGraphCreate(&graph, 0));
	ok(cuGraphCreate(&other, 0));
	a = kernel_node(graph, NULL, 1);
	b = kernel_node(graph, a, 2);
	foreign = kernel_node(other, NULL, 3);
	fails(cuGraphAddEmptyNode(&out, graph, &foreign, 1), CUDA_ERROR_INVALID_VALUE);
	fails(cuGraphAddDependencies(graph, &a, &foreign, NULL, 1), CUDA_ERROR_INVALID_VALUE);
	fails(cuGraphAddDependencies(graph, &a, &a, NULL, 1), CUDA_ERROR_INVALID_VALUE);
	fails(cuGraphAddDependencies(graph, &a, &b, NULL, 1), CUDA_ERROR_INVALID_VALUE);
	ok(cuGraphAddDependencies(graph, &b, &a, NULL, 1)); /* a cycle */
	fails(cuGraphInstantiate(&exec, graph, 0), CUDA_ERROR_INVALID_VALUE);
	ok(cuGraphRemoveDependencies(graph, &b, &a, NULL, 1));
	ok(cuGraphInstantiate(&exec, graph, 0));
	ok(cuGraphDestroyNode(a));
	fails(cuGraphDestroyNode(a), CUDA_ERROR_INVALID_VALUE);
	ok(cuGraphDestroy(graph));
	fails(cuGraphDestroy(graph), CUDA_ERROR_INVALID_VALUE);
	fails(cuGraphNodeGetType(b, &(CUgraphNodeType){0}), CUDA_ERROR_INVALID_VALUE);
	fails(cuGraphLaunch((CUgraphExec)(uintptr_t)0x1234, NULL), CUDA_ERROR_INVALID_VALUE);
	fails(cuGraphLaunch(NULL, NULL), CUDA_ERROR_INVALID_VALUE);
	ok(cuModuleUnload(fx.module)); /* the executable keeps the code */
	ok(cuGraphLaunch(exec, NULL));
	ok(cuCtxSynchronize());
	assert_int_equal(fx.host[512], 2);
	ok(cuGraphExecDestroy(exec));
	fails(cuGraphLaunch(exec, NULL), CUDA_ERROR_INVALID_VALUE);
}

/* Many nodes, launched again and again while it runs. */
static void test_wide_graph(void **state)
{
	CUstream s = new_stream(CU_STREAM_NON_BLOCKING);
	CUgraph graph;
	CUgraphExec exec;

	(void)state;
	ok(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	for (int i = 0; i < 200; i++)
		add(s, 1, 1);
	ok(cuStreamEndCapture(s, &graph));
	exec = instantiate(graph);
	for (int i = 0; i < 5; i++)
		ok(cuGraphLaunch(exec, s));
	ok(cuGraphExecDestroy(exec));
	ok(cuStreamSynchronize(s));
	assert_int_equal(device_word(0), 1000);
}

static void test_graph_in_graph(void **state)
{
	CUstream s = new_stream(CU_STREAM_NON_BLOCKING);
	CUgraph inner, outer;
	CUgraphExec exec;

	(void)state;
	ok(cuGraphCreate(&inner, 0));
	kernel_node(inner, kernel_node(inner, NULL, 2), 3);
	exec = instantiate(inner);
	ok(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	append(s, 1);
	ok(cuGraphLaunch(exec, s));
	append(s, 4);
	ok(cuStreamEndCapture(s, &outer));
	assert_int_equal(node_count(outer), 3);
	assert_int_equal(type_of(outer, 1), CU_GRAPH_NODE_TYPE_GRAPH);
	ok(cuGraphLaunch(instantiate(outer), s));
	ok(cuStreamSynchronize(s));
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(list_at(i), i + 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_by_hand),        TEST(test_event_wait_node), TEST(test_change_nodes),
		TEST(test_hostile_graphs), TEST(test_wide_graph),      TEST(test_graph_in_graph),
	};
	int failed;

	own_machine("2", "64M");
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	remove_machine();
	return failed;
}
