#include "launch/reserve.h"

#include "gates/gate.h"
#include "preempt/rewrite.h"

#include "weir/log.h"

#include <stdlib.h>

unsigned reserve_launches;

void reserve_settings(void)
{
	const char *text = getenv("WEIR_RESERVE");

	reserve_launches = text ? (unsigned)smaller(strtoull(text, NULL, 10), RESERVE_LAUNCHES) : 0;
}

/* Nothing but this launch. */
static bool is_alone(const struct client *client)
{
	uint64_t outstanding = 0;

	stream_for_each (s, client)
		outstanding += stream_outstanding(s);
	return outstanding <= 1;
}

/* A gate and a continuation behind @last. */
static CUresult add_link(CUgraph graph, CUgraphNode *last,
			 const CUDA_BATCH_MEM_OP_NODE_PARAMS *gate,
			 const CUDA_KERNEL_NODE_PARAMS *kernel)
{
	CUgraphNode node;
	CUresult result = real(cuGraphAddBatchMemOpNode)(&node, graph, last, *last ? 1 : 0, gate);

	if (result == CUDA_SUCCESS)
		result = real(cuGraphAddKernelNode_v2)(last, graph, &node, 1, kernel);
	return result;
}

static CUgraphExec make(const CUDA_BATCH_MEM_OP_NODE_PARAMS *gate,
			const CUDA_KERNEL_NODE_PARAMS *kernel)
{
	CUgraphExec exec = NULL;
	CUgraphNode last = NULL;
	CUgraph graph;
	CUresult result = real(cuGraphCreate)(&graph, 0);

	if (result != CUDA_SUCCESS)
		return NULL;
	for (unsigned i = 0; i < RESERVE_LINKS && result == CUDA_SUCCESS; i++)
		result = add_link(graph, &last, gate, kernel);
	if (result == CUDA_SUCCESS)
		result = real(cuGraphInstantiateWithFlags)(&exec, graph, 0);
	real(cuGraphDestroy)(graph);
	if (result != CUDA_SUCCESS)
		log_limited(LOG_INFO, 3600, "the driver makes no graph of continuations (error %d)",
			    result);
	return result == CUDA_SUCCESS ? exec : NULL;
}

CUgraphExec reserve_make(struct stream *stream, CUgraphExec *graph,
			 const struct level_binding *binding, const struct kernel_call *call,
			 const struct launch_decision *decision, const unsigned grid[3],
			 void *packed)
{
	const struct launch_config *config = decision->config;
	size_t size = config->packed_size;
	void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
			 CU_LAUNCH_PARAM_END};
	const unsigned *block = call->geometry.block;
	CUstreamBatchMemOpParams waits[GATE_WAITS_MAX];
	CUDA_BATCH_MEM_OP_NODE_PARAMS gate = {
		.ctx = stream->client->context,
		.count = gate_waits(binding, gate_kind(decision->yields, decision->spatial), waits),
		.paramArray = waits,
	};
	CUDA_KERNEL_NODE_PARAMS kernel = {
		.func = config->rewritten->variants[config->form][config->build].function,
		.gridDimX = grid[0],
		.gridDimY = grid[1],
		.gridDimZ = grid[2],
		.blockDimX = block[0],
		.blockDimY = block[1],
		.blockDimZ = block[2],
		.sharedMemBytes = call->geometry.shared,
		.extra = extra,
	};

	if (!reserve_launches || !gate.count || (call->config && call->config->numAttrs) ||
	    atomic_load(&capture_count) || !is_alone(stream->client) ||
	    (*graph && real(cuStreamQuery)(stream->handle) != CUDA_SUCCESS))
		return NULL;
	if (*graph)
		real(cuGraphExecDestroy)(*graph);
	uint64_t begin = client_now();
	*graph = make(&gate, &kernel);
	log_debug("continuations in reserve: %u, in %llu us",
		  *graph ? reserve_launches * RESERVE_LINKS : 0,
		  (unsigned long long)(client_now() - begin) / 1000);
	return *graph;
}

uint32_t reserve_launch(CUgraphExec reserve, const struct stream *stream)
{
	uint32_t launched = 0;

	while (reserve && launched < reserve_launches &&
	       real(cuGraphLaunch)(reserve, stream->handle) == CUDA_SUCCESS)
		launched++;
	return launched * RESERVE_LINKS;
}
