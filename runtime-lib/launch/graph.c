#include "launch/graph.h"

#include "client/level-binding.h"
#include "gates/need-auto.h"
#include "memory/memory.h"

#include "weir/base.h"
#include "weir/log.h"

#include <stdlib.h>

#define GRAPHS    1024u
#define BITS      16 /* of the blocks in an entry; the graph's handle is above them */
#define DEPTH_MAX 16u
#define UNKNOWN   UINT64_MAX

static _Atomic uint64_t graphs[GRAPHS];

static _Atomic uint64_t *entry_of(CUgraphExec graph)
{
	return &graphs[((uintptr_t)graph >> 4) * 0x9e3779b97f4a7c15u >> 54];
}

static void note(CUgraphExec graph, uint64_t blocks)
{
	if (blocks == UNKNOWN)
		blocks = 0;
	blocks = smaller(blocks, GRAPH_BLOCKS_MAX);
	atomic_store(entry_of(graph), (uint64_t)(uintptr_t)graph << BITS | blocks);
	log_debug("graph %p: %u blocks at the same time (0: not known)", (void *)graph,
		  (unsigned)blocks);
}

uint32_t graph_blocks(CUgraphExec graph)
{
	uint64_t entry = load_relaxed(entry_of(graph));

	return entry >> BITS == (uintptr_t)graph ? entry & GRAPH_BLOCKS_MAX : 0;
}

/* False: the driver does not say. */
static bool attribute(CUgraphNode node, CUkernelNodeAttrID id, CUkernelNodeAttrValue *value)
{
	return real(cuGraphKernelNodeGetAttribute)(node, id, value) == CUDA_SUCCESS;
}

static uint64_t blocks_of_kernel(CUgraphNode node)
{
	CUDA_KERNEL_NODE_PARAMS_v2 kernel;
	CUkernelNodeAttrValue value = {0};

	if (real(cuGraphKernelNodeGetParams_v2)(node, &kernel) != CUDA_SUCCESS ||
	    !attribute(node, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value) || value.cooperative)
		return UNKNOWN;
	if (attribute(node, CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE, &value) &&
	    value.deviceUpdatableKernelNode.deviceUpdatable)
		return UNKNOWN;
	/* A cluster finds no room on any free SMs. */
	if (attribute(node, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &value) && value.clusterDim.x &&
	    value.clusterDim.x * value.clusterDim.y * value.clusterDim.z != 1)
		return GRAPH_BLOCKS_MAX;
	return (uint64_t)kernel.gridDimX *
	       smaller((uint64_t)kernel.gridDimY * kernel.gridDimZ, GRAPH_BLOCKS_MAX);
}

static uint64_t blocks_of(CUgraph graph, unsigned depth);

static uint64_t blocks_of_node(CUgraphNode node, unsigned depth)
{
	CUgraphNodeType type;
	CUgraph child;

	if (real(cuGraphNodeGetType)(node, &type) != CUDA_SUCCESS ||
	    type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
		return UNKNOWN;
	if (type == CU_GRAPH_NODE_TYPE_KERNEL)
		return blocks_of_kernel(node);
	if (type != CU_GRAPH_NODE_TYPE_GRAPH)
		return 0;
	return real(cuGraphChildGraphNodeGetGraph)(node, &child) == CUDA_SUCCESS
		       ? blocks_of(child, depth + 1)
		       : UNKNOWN;
}

static int by_handle(const void *a, const void *b)
{
	const CUgraphNode *left = a, *right = b;

	return (*left > *right) - (*left < *right);
}

static bool all_differ(CUgraphNode *nodes, size_t n)
{
	qsort(nodes, n, sizeof(*nodes), by_handle);
	for (size_t i = 1; i < n; i++) {
		if (nodes[i - 1] == nodes[i])
			return false;
	}
	return true;
}

/* All @n nodes stand in one row. If a kernel may begin before the end of the one that it depends
 * on, the driver does not tell edges without their data. @room: for twice @n nodes. */
static bool is_row(CUgraph graph, size_t n, CUgraphNode *room)
{
	size_t edges = 0;

	if (real(cuGraphGetEdges)(graph, NULL, NULL, &edges) != CUDA_SUCCESS || edges != n - 1)
		return false;
	if (!edges)
		return true;
	return real(cuGraphGetEdges)(graph, room, room + n, &edges) == CUDA_SUCCESS &&
	       all_differ(room, edges) && all_differ(room + n, edges);
}

static uint64_t blocks_of(CUgraph graph, unsigned depth)
{
	uint64_t sum = 0, most = 0;
	size_t n = 0;

	if (depth == DEPTH_MAX || real(cuGraphGetNodes)(graph, NULL, &n) != CUDA_SUCCESS)
		return UNKNOWN;
	CUgraphNode *nodes = calloc(n + 1, 2 * sizeof(CUgraphNode));
	if (!nodes || real(cuGraphGetNodes)(graph, nodes, &n) != CUDA_SUCCESS)
		sum = UNKNOWN;
	for (size_t i = 0; i < n && sum != UNKNOWN; i++) {
		uint64_t blocks = blocks_of_node(nodes[i], depth);
		sum = saturating_add(sum, blocks);
		most = larger(most, blocks);
	}
	if (sum != UNKNOWN && n && is_row(graph, n, nodes))
		sum = most;
	free(nodes);
	return sum;
}

#define INSTANTIATES(name, parameters, arguments)                                        \
	MEMORY_CLAIMS(name, RECORD_GRAPH, memory_claim_graph(&claim, graph), parameters, \
		      arguments, if (!result) note(*out, blocks_of(graph, 0)))
#define WITH_LOG (CUgraphExec * out, CUgraph graph, CUgraphNode * error, char *log, size_t size)
#define WITH_PARAMETERS \
	(CUgraphExec * out, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS * parameters)
INSTANTIATES(cuGraphInstantiate, WITH_LOG, (out, graph, error, log, size))
INSTANTIATES(cuGraphInstantiate_v2, WITH_LOG, (out, graph, error, log, size))
INSTANTIATES(cuGraphInstantiateWithFlags,
	     (CUgraphExec * out, CUgraph graph, unsigned long long flags), (out, graph, flags))
INSTANTIATES(cuGraphInstantiateWithParams, WITH_PARAMETERS, (out, graph, parameters))
INSTANTIATES(cuGraphInstantiateWithParams_ptsz, WITH_PARAMETERS, (out, graph, parameters))

/* Whatever a launch is. */
static bool needs_all(struct client *client, const struct level_binding *binding)
{
	return !load_relaxed(&control_page(binding)->yield) ||
	       (need_is_auto(binding) && !load_relaxed(&need_auto_of(client)->met));
}

/* Asking about each node may take as long as the update, and a program may update a graph before
 * each launch. So it is done only where the answer matters. */
static uint64_t blocks_updated(CUgraph graph)
{
	struct client *client = driver_ready() ? client_here() : NULL;
	const struct level_binding *binding = client ? atomic_load(&client->binding) : NULL;

	return binding && needs_all(client, binding) ? UNKNOWN : blocks_of(graph, 0);
}

/* @then: what is known afterwards. */
#define CHANGES(name, parameters, arguments, then)      \
	EXPORT CUresult name parameters                 \
	{                                               \
		driver_ready();                         \
		CUresult result = real(name) arguments; \
                                                        \
		then;                                   \
		return result;                          \
	}
CHANGES(cuGraphExecUpdate,
	(CUgraphExec exec, CUgraph graph, CUgraphNode *node, CUgraphExecUpdateResult *told),
	(exec, graph, node, told), note(exec, result ? UNKNOWN : blocks_updated(graph)))
CHANGES(cuGraphExecUpdate_v2, (CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *told),
	(exec, graph, told), note(exec, result ? UNKNOWN : blocks_updated(graph)))
CHANGES(cuGraphExecKernelNodeSetParams,
	(CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *kernel),
	(exec, node, kernel), note(exec, UNKNOWN))
CHANGES(cuGraphExecKernelNodeSetParams_v2,
	(CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v2 *kernel),
	(exec, node, kernel), note(exec, UNKNOWN))
CHANGES(cuGraphExecChildGraphNodeSetParams, (CUgraphExec exec, CUgraphNode node, CUgraph child),
	(exec, node, child), note(exec, UNKNOWN))
CHANGES(cuGraphExecNodeSetParams, (CUgraphExec exec, CUgraphNode node, CUgraphNodeParams *params),
	(exec, node, params), note(exec, UNKNOWN))
