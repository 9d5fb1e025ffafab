/* Nodes of each kind: the caller's description becomes `struct work`, and back. The same
 * description adds a node, changes it, and changes its copy in an executable graph. */
#include "simcuda/driver/graph.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* The context that a node names, or the current one. */
static CUresult context_of(struct context **out, CUcontext handle)
{
	return handle ? context_get(out, handle) : context_current(out);
}

static CUresult kernel_from(struct work *out, const CUDA_KERNEL_NODE_PARAMS_v2 *p)
{
	const unsigned grid[3] = {p->gridDimX, p->gridDimY, p->gridDimZ};
	const unsigned block[3] = {p->blockDimX, p->blockDimY, p->blockDimZ};
	CUfunction handle = p->func ? p->func : (CUfunction)p->kern;
	const struct function *f = handle_get(HANDLE_FUNCTION, handle);
	struct context *ctx;

	if (f && !p->ctx)
		ctx = f->module->ctx;
	else
		RETURN_IF(context_of(&ctx, p->ctx));
	return kernel_work(out, ctx, handle, grid, block, p->sharedMemBytes, p->kernelParams,
			   p->extra, false);
}

static CUresult copy_from(struct work *out, const CUDA_MEMCPY3D *p, CUcontext handle)
{
	struct context *ctx;

	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	RETURN_IF(context_of(&ctx, handle));
	return copy3d_work(out, ctx, p);
}

static CUresult set_from(struct work *out, const CUDA_MEMSET_NODE_PARAMS *p, CUcontext handle)
{
	struct context *ctx;

	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	RETURN_IF(context_of(&ctx, handle));
	return set_work(out, ctx, p->dst, p->pitch, p->elementSize, p->value, p->width, p->height);
}

static CUresult host_from(struct work *out, CUhostFn function, void *data)
{
	struct context *ctx;

	RETURN_IF(context_current(&ctx));
	if (!function)
		return CUDA_ERROR_INVALID_VALUE;
	*out = (struct work){
		.kind = WORK_HOST, .ctx = ctx, .host = {.function = function, .data = data}};
	return CUDA_SUCCESS;
}

static CUresult memops_from(struct work *out, const CUDA_BATCH_MEM_OP_NODE_PARAMS *p)
{
	struct context *ctx;

	RETURN_IF(context_of(&ctx, p->ctx));
	return memops_work(out, ctx, p->count, p->paramArray, p->flags);
}

static CUresult event_from(struct work *out, enum work_kind kind, CUevent event)
{
	const struct event *e = handle_get(HANDLE_EVENT, event);

	if (!e)
		return CUDA_ERROR_INVALID_VALUE;
	*out = (struct work){.kind = kind, .ctx = e->ctx, .event = event};
	return CUDA_SUCCESS;
}

static CUresult empty_from(struct work *out)
{
	struct context *ctx;

	RETURN_IF(context_current(&ctx));
	*out = (struct work){.kind = WORK_EMPTY, .ctx = ctx};
	return CUDA_SUCCESS;
}

static CUresult graph_from(struct work *out, CUgraph child)
{
	const struct graph *g = handle_get(HANDLE_GRAPH, child);
	struct work w;

	if (!g)
		return CUDA_ERROR_INVALID_VALUE;
	RETURN_IF(empty_from(&w));
	w.kind = WORK_GRAPH;
	w.graph = graph_copy(g);
	if (!w.graph)
		return CUDA_ERROR_OUT_OF_MEMORY;
	w.graph->child = true;
	if (!graph_sort(w.graph)) {
		work_deinit(&w);
		return CUDA_ERROR_INVALID_VALUE;
	}
	*out = w;
	return CUDA_SUCCESS;
}

/* Adds @w if @made is success. Takes over @w. */
static CUresult add(CUgraphNode *out, CUgraph graph, const CUgraphNode *deps, size_t n,
		    struct work *w, CUresult made)
{
	cleanup(freep) struct node **from = NULL;
	struct graph *g = handle_get(HANDLE_GRAPH, graph);
	struct node *node;

	if (made)
		return made;
	if (out && g && n <= g->n && (!n || deps))
		from = calloc(n + 1, sizeof(struct node *));
	if (!from || !graph_nodes(from, deps, n, g)) {
		work_deinit(w);
		return CUDA_ERROR_INVALID_VALUE;
	}
	RETURN_IF(graph_add(&node, g, w, from, n));
	*out = node->handle;
	return CUDA_SUCCESS;
}

/* Replaces the node's work by @w. */
static CUresult change(struct node *n, struct work *w, CUresult made)
{
	if (made)
		return made;
	if (!n || n->work.kind != w->kind) {
		work_deinit(w);
		return CUDA_ERROR_INVALID_VALUE;
	}
	work_deinit(&n->work);
	n->work = *w;
	return CUDA_SUCCESS;
}

static struct node *node_of(CUgraphNode handle)
{
	return handle_get(HANDLE_NODE, handle);
}

/* Each kind: add, change, change in an executable graph. @call makes the work of @params. */
#define NODE_KIND(add_name, set_name, exec_name, type, call)                                   \
	CUresult add_name(CUgraphNode *out, CUgraph graph, const CUgraphNode *deps, size_t n,  \
			  const type *params)                                                  \
	{                                                                                      \
		API_ENTER();                                                                   \
		struct work w;                                                                 \
                                                                                               \
		return add(out, graph, deps, n, &w, params ? call : CUDA_ERROR_INVALID_VALUE); \
	}                                                                                      \
	CUresult set_name(CUgraphNode node, const type *params)                                \
	{                                                                                      \
		API_ENTER();                                                                   \
		struct work w;                                                                 \
                                                                                               \
		return change(node_of(node), &w, params ? call : CUDA_ERROR_INVALID_VALUE);    \
	}                                                                                      \
	CUresult exec_name(CUgraphExec exec, CUgraphNode node, const type *params)             \
	{                                                                                      \
		API_ENTER();                                                                   \
		struct work w;                                                                 \
                                                                                               \
		return change(exec_node(exec, node), &w,                                       \
			      params ? call : CUDA_ERROR_INVALID_VALUE);                       \
	}

NODE_KIND(cuGraphAddKernelNode_v2, cuGraphKernelNodeSetParams_v2, cuGraphExecKernelNodeSetParams_v2,
	  CUDA_KERNEL_NODE_PARAMS_v2, kernel_from(&w, params))
NODE_KIND(cuGraphAddHostNode, cuGraphHostNodeSetParams, cuGraphExecHostNodeSetParams,
	  CUDA_HOST_NODE_PARAMS, host_from(&w, params->fn, params->userData))
NODE_KIND(cuGraphAddBatchMemOpNode, cuGraphBatchMemOpNodeSetParams,
	  cuGraphExecBatchMemOpNodeSetParams, CUDA_BATCH_MEM_OP_NODE_PARAMS,
	  memops_from(&w, params))

/* The same for kinds whose context is not in @type: a changed node has the current one. */
#define NODE_KIND_IN_CONTEXT(add_name, set_name, exec_name, type, from)                           \
	CUresult add_name(CUgraphNode *out, CUgraph graph, const CUgraphNode *deps, size_t n,     \
			  const type *params, CUcontext ctx)                                      \
	{                                                                                         \
		API_ENTER();                                                                      \
		struct work w;                                                                    \
                                                                                                  \
		return add(out, graph, deps, n, &w, from(&w, params, ctx));                       \
	}                                                                                         \
	CUresult set_name(CUgraphNode node, const type *params)                                   \
	{                                                                                         \
		API_ENTER();                                                                      \
		struct work w;                                                                    \
                                                                                                  \
		return change(node_of(node), &w, from(&w, params, NULL));                         \
	}                                                                                         \
	CUresult exec_name(CUgraphExec exec, CUgraphNode node, const type *params, CUcontext ctx) \
	{                                                                                         \
		API_ENTER();                                                                      \
		struct work w;                                                                    \
                                                                                                  \
		return change(exec_node(exec, node), &w, from(&w, params, ctx));                  \
	}

NODE_KIND_IN_CONTEXT(cuGraphAddMemcpyNode, cuGraphMemcpyNodeSetParams,
		     cuGraphExecMemcpyNodeSetParams, CUDA_MEMCPY3D, copy_from)
NODE_KIND_IN_CONTEXT(cuGraphAddMemsetNode, cuGraphMemsetNodeSetParams,
		     cuGraphExecMemsetNodeSetParams, CUDA_MEMSET_NODE_PARAMS, set_from)

/* The first version of the structure is the beginning of the second. */
static CUDA_KERNEL_NODE_PARAMS_v2 widen(const CUDA_KERNEL_NODE_PARAMS_v1 *params)
{
	CUDA_KERNEL_NODE_PARAMS_v2 wide = {0};

	memcpy(&wide, params, sizeof(*params));
	return wide;
}

CUresult cuGraphAddKernelNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *deps, size_t n,
			      const CUDA_KERNEL_NODE_PARAMS_v1 *params)
{
	CUDA_KERNEL_NODE_PARAMS_v2 wide = params ? widen(params) : (CUDA_KERNEL_NODE_PARAMS_v2){0};

	return cuGraphAddKernelNode_v2(out, graph, deps, n, params ? &wide : NULL);
}

CUresult cuGraphKernelNodeSetParams(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *params)
{
	CUDA_KERNEL_NODE_PARAMS_v2 wide = params ? widen(params) : (CUDA_KERNEL_NODE_PARAMS_v2){0};

	return cuGraphKernelNodeSetParams_v2(node, params ? &wide : NULL);
}

CUresult cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node,
					const CUDA_KERNEL_NODE_PARAMS_v1 *params)
{
	CUDA_KERNEL_NODE_PARAMS_v2 wide = params ? widen(params) : (CUDA_KERNEL_NODE_PARAMS_v2){0};

	return cuGraphExecKernelNodeSetParams_v2(exec, node, params ? &wide : NULL);
}

CUresult cuGraphAddEmptyNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *deps, size_t n)
{
	API_ENTER();
	struct work w;

	return add(out, graph, deps, n, &w, empty_from(&w));
}

static CUresult alloc_from(struct work *out, CUDA_MEM_ALLOC_NODE_PARAMS *p)
{
	struct context *ctx;

	RETURN_IF(context_current(&ctx));
	RETURN_IF(allocation_work(out, ctx, p->bytesize));
	p->dptr = out->alloc.memory;
	return CUDA_SUCCESS;
}

CUresult cuGraphAddMemAllocNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *deps, size_t n,
				CUDA_MEM_ALLOC_NODE_PARAMS *params)
{
	API_ENTER();
	struct work w;

	return add(out, graph, deps, n, &w,
		   params ? alloc_from(&w, params) : CUDA_ERROR_INVALID_VALUE);
}

CUresult cuGraphAddChildGraphNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *deps,
				  size_t n, CUgraph child)
{
	API_ENTER();
	struct work w;

	return add(out, graph, deps, n, &w, graph_from(&w, child));
}

CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraph child)
{
	API_ENTER();
	struct work w;

	return change(exec_node(exec, node), &w, graph_from(&w, child));
}

/* Its nodes can be asked for and changed, too. */
CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode handle, CUgraph *out)
{
	API_ENTER();
	struct node *n = node_of(handle);

	if (!n || n->work.kind != WORK_GRAPH || !out)
		return CUDA_ERROR_INVALID_VALUE;
	if (!n->work.graph->handle && !graph_give_handles(n->work.graph))
		return CUDA_ERROR_OUT_OF_MEMORY;
	*out = n->work.graph->handle;
	return CUDA_SUCCESS;
}

#define EVENT_KIND(add_name, get_name, set_name, exec_name, what)                             \
	CUresult add_name(CUgraphNode *out, CUgraph graph, const CUgraphNode *deps, size_t n, \
			  CUevent event)                                                      \
	{                                                                                     \
		API_ENTER();                                                                  \
		struct work w;                                                                \
                                                                                              \
		return add(out, graph, deps, n, &w, event_from(&w, what, event));             \
	}                                                                                     \
	CUresult get_name(CUgraphNode handle, CUevent *out)                                   \
	{                                                                                     \
		API_ENTER();                                                                  \
		const struct node *n = node_of(handle);                                       \
                                                                                              \
		if (!n || n->work.kind != what || !out)                                       \
			return CUDA_ERROR_INVALID_VALUE;                                      \
		*out = n->work.event;                                                         \
		return CUDA_SUCCESS;                                                          \
	}                                                                                     \
	CUresult set_name(CUgraphNode handle, CUevent event)                                  \
	{                                                                                     \
		API_ENTER();                                                                  \
		struct work w;                                                                \
                                                                                              \
		return change(node_of(handle), &w, event_from(&w, what, event));              \
	}                                                                                     \
	CUresult exec_name(CUgraphExec exec, CUgraphNode handle, CUevent event)               \
	{                                                                                     \
		API_ENTER();                                                                  \
		struct work w;                                                                \
                                                                                              \
		return change(exec_node(exec, handle), &w, event_from(&w, what, event));      \
	}

EVENT_KIND(cuGraphAddEventRecordNode, cuGraphEventRecordNodeGetEvent,
	   cuGraphEventRecordNodeSetEvent, cuGraphExecEventRecordNodeSetEvent, WORK_RECORD)
EVENT_KIND(cuGraphAddEventWaitNode, cuGraphEventWaitNodeGetEvent, cuGraphEventWaitNodeSetEvent,
	   cuGraphExecEventWaitNodeSetEvent, WORK_WAIT)

static CUresult any_from(struct work *w, CUgraphNodeParams *p)
{
	switch (p->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL: {
		CUDA_KERNEL_NODE_PARAMS_v2 kernel;

		static_assert(sizeof(kernel) == sizeof(p->kernel), "the same but for the name");
		memcpy(&kernel, &p->kernel, sizeof(kernel));
		return kernel_from(w, &kernel);
	}
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		return copy_from(w, &p->memcpy.copyParams, p->memcpy.copyCtx);
	case CU_GRAPH_NODE_TYPE_MEMSET: {
		CUDA_MEMSET_NODE_PARAMS set;

		memcpy(&set, &p->memset, sizeof(set));
		return set_from(w, &set, p->memset.ctx);
	}
	case CU_GRAPH_NODE_TYPE_HOST:
		return host_from(w, p->host.fn, p->host.userData);
	case CU_GRAPH_NODE_TYPE_GRAPH:
		return graph_from(w, p->graph.graph);
	case CU_GRAPH_NODE_TYPE_EMPTY:
		return empty_from(w);
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
		return event_from(w, WORK_WAIT, p->eventWait.event);
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
		return event_from(w, WORK_RECORD, p->eventRecord.event);
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: {
		CUDA_BATCH_MEM_OP_NODE_PARAMS ops;

		static_assert(sizeof(ops) == sizeof(p->memOp), "the same but for the name");
		memcpy(&ops, &p->memOp, sizeof(ops));
		return memops_from(w, &ops);
	}
	case CU_GRAPH_NODE_TYPE_MEM_ALLOC: {
		CUDA_MEM_ALLOC_NODE_PARAMS alloc = {.bytesize = p->alloc.bytesize};
		CUresult r = alloc_from(w, &alloc);

		p->alloc.dptr = alloc.dptr;
		return r;
	}
	default:
		return CUDA_ERROR_NOT_SUPPORTED;
	}
}

CUresult cuGraphAddNode_v2(CUgraphNode *out, CUgraph graph, const CUgraphNode *deps,
			   const CUgraphEdgeData *edges, size_t n, CUgraphNodeParams *params)
{
	API_ENTER();
	struct work w;

	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	if (!edges_plain(edges, n))
		return CUDA_ERROR_NOT_SUPPORTED;
	return add(out, graph, deps, n, &w, any_from(&w, params));
}

CUresult cuGraphAddNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *deps, size_t n,
			CUgraphNodeParams *params)
{
	return cuGraphAddNode_v2(out, graph, deps, NULL, n, params);
}

CUresult cuGraphNodeSetParams(CUgraphNode node, CUgraphNodeParams *params)
{
	API_ENTER();
	struct work w;

	return change(node_of(node), &w, params ? any_from(&w, params) : CUDA_ERROR_INVALID_VALUE);
}

CUresult cuGraphExecNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams *params)
{
	API_ENTER();
	struct work w;

	return change(exec_node(exec, node), &w,
		      params ? any_from(&w, params) : CUDA_ERROR_INVALID_VALUE);
}
