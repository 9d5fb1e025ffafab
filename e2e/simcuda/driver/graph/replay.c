/* Executable graphs: a copy in order, and at each launch one op for each node. Launches of one
 * executable come one after the other. */
#include "simcuda/driver/graph.h"

#include <stdlib.h>
#include <string.h>

static void exec_free(struct exec *e)
{
	handle_free(e->handle);
	allocations_leave(e);
	graph_free(e->graph);
	op_unref(e->last);
	free(e);
}

/* All graphs inside are put in order. False: there is a cycle. */
static bool sort_all(struct graph *g)
{
	if (!graph_sort(g))
		return false;
	for (const struct node *n = g->first; n; n = n->next)
		if (n->work.kind == WORK_GRAPH && !sort_all(n->work.graph))
			return false;
	return true;
}

static CUresult instantiate(CUgraphExec *out, CUgraph graph, unsigned long long flags)
{
	const struct graph *g = handle_get(HANDLE_GRAPH, graph);
	struct exec *e;

	if (!out || !g ||
	    flags & ~(unsigned long long)(CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH |
					  CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |
					  CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY))
		return CUDA_ERROR_INVALID_VALUE;
	e = calloc(1, sizeof(*e));
	if (!e)
		return CUDA_ERROR_OUT_OF_MEMORY;
	e->flags = flags;
	e->graph = graph_copy(g);
	e->handle = e->graph ? handle_new(HANDLE_EXEC, e) : NULL;
	if (!e->handle || !sort_all(e->graph)) {
		CUresult r = e->handle ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_OUT_OF_MEMORY;

		exec_free(e);
		return r;
	}
	*out = e->handle;
	return CUDA_SUCCESS;
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *out, CUgraph graph, unsigned long long flags)
{
	API_ENTER();

	return instantiate(out, graph, flags);
}

CUresult cuGraphInstantiate_v2(CUgraphExec *out, CUgraph graph, CUgraphNode *error_node, char *log,
			       size_t size)
{
	API_ENTER();

	if (error_node)
		*error_node = NULL;
	if (log && size)
		log[0] = '\0';
	return instantiate(out, graph, 0);
}

CUresult cuGraphInstantiate(CUgraphExec *out, CUgraph graph, CUgraphNode *error_node, char *log,
			    size_t size)
{
	return cuGraphInstantiate_v2(out, graph, error_node, log, size);
}

CUresult cuGraphInstantiateWithParams(CUgraphExec *out, CUgraph graph,
				      CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
	API_ENTER();
	CUresult r;

	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	r = instantiate(out, graph, params->flags);
	params->hErrNode_out = NULL;
	params->result_out = r ? CUDA_GRAPH_INSTANTIATE_ERROR : CUDA_GRAPH_INSTANTIATE_SUCCESS;
	return r;
}

/* A launch that runs goes on: ops have their own copies. */
CUresult cuGraphExecDestroy(CUgraphExec handle)
{
	API_ENTER();
	struct exec *e = handle_get(HANDLE_EXEC, handle);

	if (!e)
		return CUDA_ERROR_INVALID_VALUE;
	exec_free(e);
	return CUDA_SUCCESS;
}

CUresult cuGraphExecGetFlags(CUgraphExec handle, cuuint64_t *out)
{
	API_ENTER();
	const struct exec *e = handle_get(HANDLE_EXEC, handle);

	if (!e || !out)
		return CUDA_ERROR_INVALID_VALUE;
	*out = e->flags;
	return CUDA_SUCCESS;
}

/* Does this graph do anything in a context that is gone? */
static bool all_live(const struct graph *g)
{
	for (const struct node *n = g->first; n; n = n->next)
		if (!context_lives(n->work.ctx) ||
		    (n->work.kind == WORK_GRAPH && !all_live(n->work.graph)))
			return false;
	return true;
}

static void drop_ops(struct graph *g)
{
	for (struct node *n = g->first; n; n = n->next) {
		op_unref(n->op);
		n->op = NULL;
	}
}

/* Memory that a graph allocates is its own and stays, so that each launch finds it again. */
static bool nothing_to_do(const struct node *n)
{
	const struct work *w = &n->work;

	if (n->disabled || w->kind == WORK_FREE || w->kind == WORK_GRAPH)
		return true;
	return w->kind == WORK_COPY && (!w->copy.width || !w->copy.rows || !w->copy.slices);
}

static struct op *node_op(const struct node *n)
{
	struct work w = {.kind = WORK_EMPTY, .ctx = n->work.ctx};

	if (!nothing_to_do(n) && !work_clone(&w, &n->work))
		return NULL;
	return op_new(&w);
}

static void order_node(const struct node *n, struct op *op, struct op *begin)
{
	if (!n->n_from)
		op_after(op, begin);
	for (size_t i = 0; i < n->n_from; i++)
		op_after(op, n->from[i]->op);
}

/* A recorded event points to this launch's op. A wait is for the event's record at launch. */
static void tie_event(const struct node *n, struct op *op)
{
	struct event *e = handle_get(HANDLE_EVENT, n->work.event);

	if (!e)
		return;
	if (n->work.kind == WORK_WAIT) {
		op_after(op, e->op);
		return;
	}
	capture_forget_event(e);
	op_unref(e->op);
	e->op = op_ref(op);
}

static struct op *replay(struct graph *g, struct context *ctx, struct op *begin);

/* The op that stands for a node when it is done; counted. Null: no memory. */
static struct op *replay_node(struct node *n, struct op *begin)
{
	struct op *op = node_op(n), *end;

	if (!op)
		return NULL;
	order_node(n, op, begin);
	if ((n->work.kind == WORK_RECORD || n->work.kind == WORK_WAIT) && !n->disabled)
		tie_event(n, op);
	op_submit(op);
	if (n->work.kind != WORK_GRAPH || n->disabled)
		return op;
	end = replay(n->work.graph, n->work.ctx, op);
	op_unref(op);
	return end;
}

/* One op for each node, all after @begin, and one after all of them, which is returned; counted. */
static struct op *replay(struct graph *g, struct context *ctx, struct op *begin)
{
	struct work mark = {.kind = WORK_EMPTY, .ctx = ctx};
	struct op *end = op_new(&mark);

	op_after(end, begin);
	for (struct node *n = g->first; end && n; n = n->next) {
		n->op = replay_node(n, begin);
		if (!n->op) {
			context_fault(ctx, CUDA_ERROR_OUT_OF_MEMORY);
			break;
		}
		op_after(end, n->op);
	}
	drop_ops(g);
	if (end)
		op_submit(end);
	return end;
}

static CUresult capture_launch(struct stream *s, const struct exec *e)
{
	struct work w = {.kind = WORK_GRAPH, .ctx = s->ctx, .graph = graph_copy(e->graph)};

	if (!w.graph)
		return CUDA_ERROR_OUT_OF_MEMORY;
	w.graph->child = true;
	return capture_add(s, &w);
}

CUresult cuGraphLaunch(CUgraphExec handle, CUstream stream)
{
	API_ENTER();
	cleanup(op_unrefp) struct op *begin = NULL;
	struct exec *e = handle_get(HANDLE_EXEC, handle);
	struct work mark = {.kind = WORK_EMPTY};
	struct stream *s;
	struct op *end;

	if (!e)
		return CUDA_ERROR_INVALID_VALUE;
	RETURN_IF(stream_get(&s, stream));
	if (!all_live(e->graph))
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	if (s->capture)
		return capture_launch(s, e);
	if (s->legacy)
		RETURN_IF(capture_legacy(s->ctx));
	RETURN_IF(allocations_take(e, s->ctx->device));
	mark.ctx = s->ctx;
	begin = op_new(&mark);
	if (!begin)
		return CUDA_ERROR_OUT_OF_MEMORY;
	stream_order(s, begin);
	op_after(begin, e->last);
	op_submit(begin);
	end = replay(e->graph, s->ctx, begin);
	if (!end)
		return CUDA_ERROR_OUT_OF_MEMORY;
	stream_append(s, end);
	op_unref(e->last);
	e->last = end;
	return s->ctx->fault;
}

CUresult cuGraphUpload(CUgraphExec handle, CUstream stream)
{
	API_ENTER();
	struct stream *s;

	if (!handle_get(HANDLE_EXEC, handle))
		return CUDA_ERROR_INVALID_VALUE;
	return stream_get(&s, stream);
}

struct node *exec_node(CUgraphExec exec, CUgraphNode handle)
{
	const struct exec *e = handle_get(HANDLE_EXEC, exec);

	return e && handle ? graph_find_origin(e->graph, handle) : NULL;
}

CUresult cuGraphNodeSetEnabled(CUgraphExec exec, CUgraphNode handle, unsigned int enabled)
{
	API_ENTER();
	struct node *n = exec_node(exec, handle);

	if (!n ||
	    (n->work.kind != WORK_KERNEL && n->work.kind != WORK_COPY && n->work.kind != WORK_SET))
		return CUDA_ERROR_INVALID_VALUE;
	n->disabled = !enabled;
	return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetEnabled(CUgraphExec exec, CUgraphNode handle, unsigned int *enabled)
{
	API_ENTER();
	const struct node *n = exec_node(exec, handle);

	if (!n || !enabled)
		return CUDA_ERROR_INVALID_VALUE;
	*enabled = !n->disabled;
	return CUDA_SUCCESS;
}

/* May the nodes of @from replace those of @to, one by one? */
static CUgraphExecUpdateResult comparable(const struct graph *to, const struct graph *from)
{
	const struct node *a = to->first, *b = from->first;

	if (to->n != from->n)
		return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
	for (; a; a = a->next, b = b->next) {
		if (a->work.kind != b->work.kind)
			return CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
		if (a->n_from != b->n_from)
			return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
	}
	return CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

/* Nodes of the executable keep the names they had. */
static void keep_names(struct graph *to, const struct graph *from)
{
	const struct node *b = from->first;

	for (struct node *a = to->first; a && b; a = a->next, b = b->next) {
		a->origin = b->origin;
		a->disabled = b->disabled;
	}
}

CUresult cuGraphExecUpdate_v2(CUgraphExec handle, CUgraph graph, CUgraphExecUpdateResultInfo *info)
{
	API_ENTER();
	struct exec *e = handle_get(HANDLE_EXEC, handle);
	const struct graph *g = handle_get(HANDLE_GRAPH, graph);
	struct graph *copy;

	if (!e || !g || !info)
		return CUDA_ERROR_INVALID_VALUE;
	memset(info, 0, sizeof(*info));
	copy = graph_copy(g);
	if (!copy)
		return CUDA_ERROR_OUT_OF_MEMORY;
	info->result = sort_all(copy) ? comparable(e->graph, copy) : CU_GRAPH_EXEC_UPDATE_ERROR;
	if (info->result) {
		graph_free(copy);
		return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
	}
	keep_names(copy, e->graph);
	graph_free(e->graph);
	e->graph = copy;
	return CUDA_SUCCESS;
}

CUresult cuGraphExecUpdate(CUgraphExec handle, CUgraph graph, CUgraphNode *error_node,
			   CUgraphExecUpdateResult *result)
{
	CUgraphExecUpdateResultInfo info = {0};
	CUresult r = cuGraphExecUpdate_v2(handle, graph, &info);

	if (error_node)
		*error_node = NULL;
	if (result)
		*result = info.result;
	return r;
}
