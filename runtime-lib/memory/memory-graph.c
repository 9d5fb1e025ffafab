/* Graphs that allocate. The device takes their memory when they are launched, and may keep it until
 * it is trimmed. It counts from their instantiation on (launch/graph.c), as if nothing in a graph
 * were reused. */
#include "memory/memory-account.h"
#include "memory/memory.h"

#define STEP      (32ull << 20) /* by which the driver grows what graphs share */
#define DEPTH_MAX 16u
#define UNKNOWN   (1ull << 56) /* more than any GPU has */

/* Bytes that a graph allocates. @device: of its last node that does. */
static uint64_t allocated(CUgraph graph, CUdevice *device, unsigned depth);

static uint64_t allocated_by(CUgraphNode node, CUdevice *device, unsigned depth)
{
	CUDA_MEM_ALLOC_NODE_PARAMS parameters;
	CUgraphNodeType type;
	CUgraph child;

	if (real(cuGraphNodeGetType)(node, &type) != CUDA_SUCCESS)
		return 0;
	if (type == CU_GRAPH_NODE_TYPE_GRAPH &&
	    real(cuGraphChildGraphNodeGetGraph)(node, &child) == CUDA_SUCCESS)
		return allocated(child, device, depth + 1);
	if (type != CU_GRAPH_NODE_TYPE_MEM_ALLOC)
		return 0;
	if (real(cuGraphMemAllocNodeGetParams)(node, &parameters) != CUDA_SUCCESS ||
	    parameters.bytesize > UNKNOWN ||
	    (*device >= 0 && *device != parameters.poolProps.location.id))
		return UNKNOWN;
	*device = parameters.poolProps.location.id;
	return account_chunks(parameters.bytesize);
}

static uint64_t allocated(CUgraph graph, CUdevice *device, unsigned depth)
{
	uint64_t sum = 0;
	size_t n = 0;

	if (real(cuGraphGetNodes)(graph, NULL, &n) != CUDA_SUCCESS || !n)
		return 0;
	CUgraphNode *nodes = depth < DEPTH_MAX ? calloc(n, sizeof(*nodes)) : NULL;
	if (!nodes || real(cuGraphGetNodes)(graph, nodes, &n) != CUDA_SUCCESS)
		sum = UNKNOWN;
	for (size_t i = 0; i < n && sum < UNKNOWN; i++)
		sum += allocated_by(nodes[i], device, depth);
	free(nodes);
	return sum;
}

bool memory_claim_graph(struct memory_claim *claim, CUgraph graph)
{
	CUdevice device = -1;

	*claim = (struct memory_claim){0};
	if (!driver_ready())
		return true;
	uint64_t bytes = (allocated(graph, &device, 0) + STEP - 1) / STEP * STEP;
	if (!bytes)
		return true;
	struct ledger *ledger = device < 0 ? ledger_here() : ledger_of(device);
	if (!ledger || !ledger_counts(ledger))
		return true;
	if (bytes >= UNKNOWN || real(cuCtxGetCurrent)(&claim->context) != CUDA_SUCCESS)
		return false;
	claim->ledger = ledger;
	claim->size = bytes;
	return ledger_add_graph(ledger, bytes);
}

MEMORY_RELEASES(cuGraphExecDestroy, RECORD_GRAPH, graph, (CUgraphExec graph), (graph),
		if (known) ledger_settle(record.ledger, 0))
