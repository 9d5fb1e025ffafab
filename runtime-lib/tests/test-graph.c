/* How many SMs a graph needs (launch/graph.h): graphs of the test's own, on the null driver. */
#include "needing.h"

#include "launch/graph.h"

struct node {
	CUgraphNodeType type;
	unsigned grid[3];
	bool cooperative, updatable;
	unsigned cluster;
	const struct graph *child;
};

struct graph {
	size_t n, edges;
	const struct node *nodes;
	unsigned char from[4], to[4]; /* of each edge: a node's number */
	bool early; /* a node may begin before the end of the one that it depends on */
};

#define KERNEL_OF(blocks)                                                   \
	{                                                                   \
		.type = CU_GRAPH_NODE_TYPE_KERNEL, .grid = { blocks, 1, 1 } \
	}
#define GRAPH_OF(of, ...)                                    \
	{                                                    \
		.n = countof(of), .nodes = (of), __VA_ARGS__ \
	}
#define ROW .edges = 2, .from = {0, 1}, .to = {1, 2}

static CUresult nodes_of(CUgraph handle, CUgraphNode *out, size_t *n)
{
	const struct graph *graph = (void *)handle;

	*n = graph->n;
	for (size_t i = 0; out && i < *n; i++)
		out[i] = (CUgraphNode)&graph->nodes[i];
	return CUDA_SUCCESS;
}

static CUresult edges_of(CUgraph handle, CUgraphNode *from, CUgraphNode *to, size_t *n)
{
	const struct graph *graph = (void *)handle;

	if (graph->early)
		return CUDA_ERROR_LOSSY_QUERY;
	*n = graph->edges;
	for (size_t i = 0; from && i < *n; i++) {
		from[i] = (CUgraphNode)&graph->nodes[graph->from[i]];
		to[i] = (CUgraphNode)&graph->nodes[graph->to[i]];
	}
	return CUDA_SUCCESS;
}

static CUresult type_of(CUgraphNode handle, CUgraphNodeType *type)
{
	*type = ((const struct node *)handle)->type;
	return CUDA_SUCCESS;
}

static CUresult kernel_of(CUgraphNode handle, CUDA_KERNEL_NODE_PARAMS_v2 *out)
{
	const struct node *node = (void *)handle;

	*out = (CUDA_KERNEL_NODE_PARAMS_v2){
		.gridDimX = node->grid[0], .gridDimY = node->grid[1], .gridDimZ = node->grid[2]};
	return CUDA_SUCCESS;
}

static CUresult attribute_of(CUgraphNode handle, CUkernelNodeAttrID id, CUkernelNodeAttrValue *out)
{
	const struct node *node = (void *)handle;

	*out = (CUkernelNodeAttrValue){0};
	if (id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
		out->cooperative = node->cooperative;
	else if (id == CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE)
		out->deviceUpdatableKernelNode.deviceUpdatable = node->updatable;
	else if (id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION && node->cluster)
		out->clusterDim.x = node->cluster, out->clusterDim.y = out->clusterDim.z = 1;
	return CUDA_SUCCESS;
}

static CUresult child_of(CUgraphNode handle, CUgraph *child)
{
	*child = (CUgraph)((const struct node *)handle)->child;
	return CUDA_SUCCESS;
}

static CUresult instantiate(CUgraphExec *out, CUgraph graph, unsigned long long flags)
{
	(void)flags;
	*out = (CUgraphExec)((uintptr_t)graph + 0x100000);
	return CUDA_SUCCESS;
}

static CUresult succeed(void)
{
	return CUDA_SUCCESS;
}

static CUgraphExec made(const struct graph *graph)
{
	CUgraphExec exec;

	assert_int_equal(cuGraphInstantiateWithFlags(&exec, (CUgraph)graph, 0), CUDA_SUCCESS);
	return exec;
}

static const struct node plain[] = {KERNEL_OF(2), KERNEL_OF(3), KERNEL_OF(1)};
static const struct graph row = GRAPH_OF(plain, ROW);
static const struct graph fork_ = GRAPH_OF(plain, .edges = 2, .from = {0, 0}, .to = {1, 2});

static void launches_ask_for_that(void **state)
{
	CUgraphExec few = made(&row), many = made(&fork_);
	unsigned n = begin(NEEDED);

	(void)state;
	assert_int_equal(cuGraphLaunch(few, STREAM(n, 1)), CUDA_SUCCESS);
	assert_shown(0, 3);
	assert_int_equal(cuGraphLaunch(many, STREAM(n, 1)), CUDA_SUCCESS);
	assert_shown(OWN, 0);
	end(n);
}

static void a_row_needs_as_much_as_its_largest_kernel(void **state)
{
	static const struct node copies[] = {KERNEL_OF(2),
					     {.type = CU_GRAPH_NODE_TYPE_MEMCPY},
					     {.type = CU_GRAPH_NODE_TYPE_HOST}};
	static const struct node one[] = {{CU_GRAPH_NODE_TYPE_KERNEL, .grid = {2, 3, 4}}};
	static const struct node children[] = {KERNEL_OF(1),
					       {CU_GRAPH_NODE_TYPE_GRAPH, .child = &fork_},
					       {CU_GRAPH_NODE_TYPE_GRAPH, .child = &row}};
	static const struct node many[] = {
		{CU_GRAPH_NODE_TYPE_KERNEL, .grid = {0xffffffff, 0xffffffff, 0xffffffff}}};

	(void)state;
	assert_int_equal(graph_blocks(made(&row)), 3);
	assert_int_equal(graph_blocks(made(&(struct graph)GRAPH_OF(copies, ROW))), 2);
	assert_int_equal(graph_blocks(made(&(struct graph)GRAPH_OF(one))), 24);
	assert_int_equal(graph_blocks(made(&(struct graph)GRAPH_OF(children, ROW))), 6);
	assert_int_equal(graph_blocks(made(&(struct graph)GRAPH_OF(many))), GRAPH_BLOCKS_MAX);
}

static void what_may_run_together_counts_together(void **state)
{
	(void)state;
	assert_int_equal(graph_blocks(made(&fork_)), 6);
	assert_int_equal(graph_blocks(made(&(struct graph)GRAPH_OF(plain))), 6);
	assert_int_equal(graph_blocks(made(&(struct graph)GRAPH_OF(plain, .early = true))), 6);
	/* Two rows, of which one has a node alone. */
	assert_int_equal(graph_blocks(made(&(struct graph)GRAPH_OF(plain, .edges = 1, .from = {0},
								   .to = {1}))),
			 6);
	/* Edges 0 -> 2, 1 -> 2. */
	assert_int_equal(graph_blocks(made(&(struct graph)GRAPH_OF(plain, .edges = 2,
								   .from = {0, 1}, .to = {2, 2}))),
			 6);
}

static void some_graphs_are_not_known(void **state)
{
	static const struct node cases[][1] = {
		{{CU_GRAPH_NODE_TYPE_KERNEL, .grid = {1, 1, 1}, .cooperative = true}},
		{{CU_GRAPH_NODE_TYPE_KERNEL, .grid = {1, 1, 1}, .updatable = true}},
		{{CU_GRAPH_NODE_TYPE_CONDITIONAL}},
	};
	static const struct node cluster[] = {
		{CU_GRAPH_NODE_TYPE_KERNEL, .grid = {2, 1, 1}, .cluster = 2}};
	static struct graph deep;
	static const struct node self[] = {{CU_GRAPH_NODE_TYPE_GRAPH, .child = &deep}};

	(void)state;
	for (size_t i = 0; i < countof(cases); i++)
		assert_int_equal(graph_blocks(made(&(struct graph)GRAPH_OF(cases[i]))), 0);
	assert_int_equal(graph_blocks(made(&(struct graph)GRAPH_OF(cluster))), GRAPH_BLOCKS_MAX);
	deep = (struct graph)GRAPH_OF(self);
	assert_int_equal(graph_blocks(made(&deep)), 0);
	assert_int_equal(graph_blocks((CUgraphExec)(uintptr_t)0x77), 0);
}

static void changes_are_seen(void **state)
{
	CUgraphExec exec = made(&row);
	CUgraphNode node = (CUgraphNode)plain;

	(void)state;
	assert_int_equal(cuGraphExecUpdate_v2(exec, (CUgraph)&fork_, NULL), CUDA_SUCCESS);
	assert_int_equal(graph_blocks(exec), 6);
	assert_int_equal(cuGraphExecKernelNodeSetParams_v2(exec, node, NULL), CUDA_SUCCESS);
	assert_int_equal(graph_blocks(exec), 0);
	exec = made(&row);
	assert_int_equal(graph_blocks(exec), 3);
	assert_int_equal(cuGraphExecNodeSetParams(exec, node, NULL), CUDA_SUCCESS);
	assert_int_equal(graph_blocks(exec), 0);
}

static void updates_ask_nothing_where_each_launch_needs_all(void **state)
{
	unsigned n = begin(NEEDED);
	CUgraphExec exec = made(&row);

	(void)state;
	assert_int_equal(cuGraphExecUpdate_v2(exec, (CUgraph)&fork_, NULL), CUDA_SUCCESS);
	assert_int_equal(graph_blocks(exec), 6);
	agent.control->yield = 0;
	assert_int_equal(cuGraphExecUpdate_v2(exec, (CUgraph)&fork_, NULL), CUDA_SUCCESS);
	assert_int_equal(graph_blocks(exec), 0);
	end(n);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(launches_ask_for_that),
		cmocka_unit_test(updates_ask_nothing_where_each_launch_needs_all),
		cmocka_unit_test(a_row_needs_as_much_as_its_largest_kernel),
		cmocka_unit_test(what_may_run_together_counts_together),
		cmocka_unit_test(some_graphs_are_not_known),
		cmocka_unit_test(changes_are_seen),
	};
	static const struct {
		enum hook_id id;
		void *function;
	} ours[] = {
		{HOOK_cuGraphGetNodes, nodes_of},
		{HOOK_cuGraphGetEdges, edges_of},
		{HOOK_cuGraphNodeGetType, type_of},
		{HOOK_cuGraphKernelNodeGetParams_v2, kernel_of},
		{HOOK_cuGraphKernelNodeGetAttribute, attribute_of},
		{HOOK_cuGraphChildGraphNodeGetGraph, child_of},
		{HOOK_cuGraphInstantiateWithFlags, instantiate},
		{HOOK_cuGraphExecUpdate_v2, succeed},
		{HOOK_cuGraphExecKernelNodeSetParams_v2, succeed},
		{HOOK_cuGraphExecNodeSetParams, succeed},
	};

	driver_load();
	for (size_t i = 0; i < countof(ours); i++)
		driver_hooks[ours[i].id].real = ours[i].function;
	return cmocka_run_group_tests(tests, agent_begin, agent_finish);
}
