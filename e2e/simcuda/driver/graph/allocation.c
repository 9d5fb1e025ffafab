/* Memory that graphs allocate. A node has its addresses from the start. The GPU's memory is taken
 * when a graph is launched for the first time, out of what destroyed graphs have left first, and
 * stays the graph's until it is destroyed. What is left then is trimmed. */
#include "simcuda/driver/graph.h"

#include <string.h>

CUresult allocation_work(struct work *out, struct context *ctx, size_t size)
{
	struct work w = {.kind = WORK_ALLOC, .ctx = ctx, .alloc = {.size = size}};

	RETURN_IF(memory_new(&w.alloc.memory, ctx, size, RANGE_GRAPH, 0));
	*out = w;
	return CUDA_SUCCESS;
}

static uint64_t needed(const struct graph *g)
{
	uint64_t sum = 0;

	for (const struct node *n = g->first; n; n = n->next) {
		if (n->work.kind == WORK_ALLOC)
			sum += n->work.alloc.size;
		else if (n->work.kind == WORK_GRAPH)
			sum += needed(n->work.graph);
	}
	return sum;
}

CUresult allocations_take(struct exec *e, struct device *d)
{
	uint64_t need = e->device ? 0 : needed(e->graph);
	uint64_t spare = d->graph_reserved - d->graph_used;
	uint64_t more = need > spare ? need - spare : 0;

	if (!need)
		return CUDA_SUCCESS;
	if (machine_charge(&sim.machine, d->gpu, more))
		return CUDA_ERROR_OUT_OF_MEMORY;
	e->device = d;
	e->allocated = need;
	d->graph_reserved += more;
	d->graph_used += need;
	return CUDA_SUCCESS;
}

void allocations_leave(struct exec *e)
{
	if (e->device)
		e->device->graph_used -= e->allocated;
}

CUresult cuDeviceGraphMemTrim(CUdevice dev)
{
	API_ENTER();
	struct device *d;

	RETURN_IF(device_get(&d, dev));
	machine_refund(&sim.machine, d->gpu, d->graph_reserved - d->graph_used);
	d->graph_reserved = d->graph_used;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetGraphMemAttribute(CUdevice dev, CUgraphMem_attribute attribute, void *out)
{
	API_ENTER();
	struct device *d;

	RETURN_IF(device_get(&d, dev));
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	if (attribute != CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT &&
	    attribute != CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT)
		return CUDA_ERROR_NOT_SUPPORTED;
	*(cuuint64_t *)out =
		attribute == CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT ? d->graph_used : d->graph_reserved;
	return CUDA_SUCCESS;
}

CUresult cuGraphMemAllocNodeGetParams(CUgraphNode handle, CUDA_MEM_ALLOC_NODE_PARAMS *out)
{
	API_ENTER();
	const struct node *n = handle_get(HANDLE_NODE, handle);

	if (!n || n->work.kind != WORK_ALLOC || !out)
		return CUDA_ERROR_INVALID_VALUE;
	memset(out, 0, sizeof(*out));
	out->poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
	out->poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	out->poolProps.location.id = (int)n->work.ctx->device->index;
	out->bytesize = n->work.alloc.size;
	out->dptr = n->work.alloc.memory;
	return CUDA_SUCCESS;
}
