/* Graphs: captured from a stream, captured from two streams that fork and join, and built by hand;
 * each launched several times, in a stream that has work before and behind it.
 */
#include "workloads/stream-order/ops.h"

#define ACTIONS_MAX 6u

static uint32_t random_actions(struct kit *kit, struct action *actions)
{
	uint32_t n = 1 + random_below(&kit->random, ACTIONS_MAX);

	for (uint32_t i = 0; i < n; i++)
		actions[i] = action_random(kit);
	return n;
}

static void expect_all(struct checked_stream *checked, const struct action *actions, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		action_expect(checked, &actions[i]);
}

/* Capture sees created streams only, so a non-blocking one and no default stream. */
static void begin_capture(struct checked_stream *checked)
{
	capture_lock();
	CU(cuStreamBeginCapture(checked->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
}

static CUgraphExec end_capture(struct checked_stream *checked)
{
	CUgraph graph;
	CUgraphExec exec;

	CU(cuStreamEndCapture(checked->stream, &graph));
	capture_unlock();
	CU(cuGraphInstantiate(&exec, graph, 0));
	CU(cuGraphDestroy(graph));
	return exec;
}

static void launch(struct checked_stream *checked, CUgraphExec exec)
{
	struct target to = checked_stream_target(checked);

	CU(to.calls->launch_graph(exec, to.stream));
}

void operation_graph_captured(struct run *run, struct checked_stream *checked)
{
	struct action actions[ACTIONS_MAX];
	uint32_t n = random_actions(&run->kit, actions);
	CUgraphExec exec;

	begin_capture(checked);
	for (uint32_t i = 0; i < n; i++)
		action_issue(checked, &actions[i], true);
	exec = end_capture(checked);
	for (uint32_t rounds = 1 + random_below(&run->kit.random, 3); rounds; rounds--) {
		launch(checked, exec);
		expect_all(checked, actions, n);
	}
	CU(cuGraphExecDestroy(exec));
}

/* Another stream joins the capture and leaves it again; the graph changes its words. */
void operation_graph_forked(struct run *run, struct checked_stream *checked)
{
	struct checked_stream *other = other_stream(run, checked);
	struct action own[ACTIONS_MAX], others[ACTIONS_MAX];
	uint32_t n_own = random_actions(&run->kit, own);
	uint32_t n_others = random_actions(&run->kit, others);
	CUgraphExec exec;

	if (other->kind != STREAM_NON_BLOCKING)
		return;
	begin_capture(checked);
	checked_stream_order(checked, other);
	for (uint32_t i = 0; i < n_others; i++)
		action_issue(other, &others[i], true);
	for (uint32_t i = 0; i < n_own; i++)
		action_issue(checked, &own[i], true);
	checked_stream_order(other, checked);
	exec = end_capture(checked);

	checked_stream_order(other, checked);
	for (uint32_t rounds = 1 + random_below(&run->kit.random, 3); rounds; rounds--) {
		launch(checked, exec);
		expect_all(checked, own, n_own);
		expect_all(other, others, n_others);
	}
	checked_stream_order(checked, other);
	CU(cuGraphExecDestroy(exec));
}

static CUgraphNode add_step(CUgraph graph, const CUgraphNode *after, struct checked_stream *checked,
			    const struct action *action)
{
	struct action copy = *action;
	uint32_t words = STREAM_WORDS;
	void *parameters[] = {&checked->data, &words, &copy.multiply, &copy.add, &copy.delay};
	CUDA_KERNEL_NODE_PARAMS node = {.func = checked->kit->step,
					.gridDimX = STREAM_WORDS / STREAM_THREADS,
					.gridDimY = 1,
					.gridDimZ = 1,
					.blockDimX = STREAM_THREADS,
					.blockDimY = 1,
					.blockDimZ = 1,
					.kernelParams = parameters};
	CUgraphNode out;

	CU(cuGraphAddKernelNode(&out, graph, after, after ? 1 : 0, &node));
	return out;
}

static CUgraphNode add_set(CUgraph graph, const CUgraphNode *after, struct checked_stream *checked,
			   const struct action *action)
{
	CUDA_MEMSET_NODE_PARAMS node = {.dst = checked->data +
					       action->range.first * sizeof(uint32_t),
					.value = action->add,
					.elementSize = 4,
					.width = action->range.count,
					.height = 1};
	CUcontext context;
	CUgraphNode out;

	CU(cuCtxGetCurrent(&context));
	CU(cuGraphAddMemsetNode(&out, graph, after, after ? 1 : 0, &node, context));
	return out;
}

static CUgraphNode add_copy(CUgraph graph, const CUgraphNode *after, struct checked_stream *checked,
			    const struct action *action)
{
	size_t bytes = action->range.count * sizeof(uint32_t);
	bool to_host = action->kind == ACTION_TO_HOST;
	CUDA_MEMCPY3D node = {.WidthInBytes = bytes, .Height = 1, .Depth = 1};
	CUcontext context;
	CUgraphNode out;

	node.srcMemoryType = to_host ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
	node.dstMemoryType = to_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
	node.srcDevice = node.dstDevice = checked->data + action->range.first * sizeof(uint32_t);
	node.srcHost = node.dstHost = checked->host + action->range.first;
	node.srcPitch = node.dstPitch = bytes;
	CU(cuCtxGetCurrent(&context));
	CU(cuGraphAddMemcpyNode(&out, graph, after, after ? 1 : 0, &node, context));
	return out;
}

static CUgraphNode add_node(CUgraph graph, const CUgraphNode *after, struct checked_stream *checked,
			    const struct action *action)
{
	CUDA_HOST_NODE_PARAMS node = {.fn = action_host_function};
	CUgraphNode out;

	switch (action->kind) {
	case ACTION_STEP:
		return add_step(graph, after, checked, action);
	case ACTION_SET:
		return add_set(graph, after, checked, action);
	case ACTION_TO_HOST:
	case ACTION_TO_DEVICE:
		return add_copy(graph, after, checked, action);
	default:
		node.userData = host_call_new(checked, action);
		CU(cuGraphAddHostNode(&out, graph, after, after ? 1 : 0, &node));
		return out;
	}
}

void operation_graph_by_hand(struct run *run, struct checked_stream *checked)
{
	struct action actions[ACTIONS_MAX];
	uint32_t n = random_actions(&run->kit, actions);
	CUgraphNode node;
	CUgraph graph;
	CUgraphExec exec;

	CU(cuGraphCreate(&graph, 0));
	for (uint32_t i = 0; i < n; i++)
		node = add_node(graph, i ? &node : NULL, checked, &actions[i]);
	CU(cuGraphInstantiate(&exec, graph, 0));
	CU(cuGraphDestroy(graph));
	for (uint32_t rounds = 1 + random_below(&run->kit.random, 3); rounds; rounds--) {
		launch(checked, exec);
		expect_all(checked, actions, n);
	}
	CU(cuGraphExecDestroy(exec));
}
