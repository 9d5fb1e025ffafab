/* Making graphs by hand and looking at them. Nodes of each kind are in node.c. */
#include "simcuda/driver/graph.h"

#include <stdlib.h>
#include <string.h>

static CUresult get(struct graph **out, CUgraph handle)
{
	*out = handle_get(HANDLE_GRAPH, handle);
	return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult get_node(struct node **out, CUgraphNode handle)
{
	*out = handle_get(HANDLE_NODE, handle);
	return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Only full dependencies: after all of a node's work. */
bool edges_plain(const CUgraphEdgeData *edges, size_t n)
{
	for (size_t i = 0; edges && i < n; i++)
		if (edges[i].from_port || edges[i].to_port || edges[i].type)
			return false;
	return true;
}

CUresult cuGraphCreate(CUgraph *out, unsigned int flags)
{
	API_ENTER();
	struct graph *g;

	if (!out || flags)
		return CUDA_ERROR_INVALID_VALUE;
	g = graph_new();
	if (!g || !graph_give_handles(g)) {
		graph_free(g);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*out = g->handle;
	return CUDA_SUCCESS;
}

CUresult cuGraphDestroy(CUgraph handle)
{
	API_ENTER();
	struct graph *g;

	RETURN_IF(get(&g, handle));
	if (g->child || capture_uses(g)) /* owned by its node, or by an open capture */
		return CUDA_ERROR_INVALID_VALUE;
	graph_free(g);
	return CUDA_SUCCESS;
}

CUresult cuGraphClone(CUgraph *out, CUgraph handle)
{
	API_ENTER();
	struct graph *g, *copy;

	RETURN_IF(get(&g, handle));
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	copy = graph_copy(g);
	if (copy)
		copy->child = false;
	if (!copy || !graph_give_handles(copy)) {
		graph_free(copy);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*out = copy->handle;
	return CUDA_SUCCESS;
}

CUresult cuGraphNodeFindInClone(CUgraphNode *out, CUgraphNode original, CUgraph clone)
{
	API_ENTER();
	struct graph *g;
	const struct node *n;

	RETURN_IF(get(&g, clone));
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	n = graph_find_origin(g, original);
	if (!n || !n->handle)
		return CUDA_ERROR_INVALID_VALUE;
	*out = n->handle;
	return CUDA_SUCCESS;
}

CUresult cuGraphDestroyNode(CUgraphNode handle)
{
	API_ENTER();
	struct node *n;

	RETURN_IF(get_node(&n, handle));
	if (n->graph->child || capture_uses(n->graph))
		return CUDA_ERROR_INVALID_VALUE;
	graph_remove(n);
	return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetType(CUgraphNode handle, CUgraphNodeType *out)
{
	static const CUgraphNodeType types[WORK_KINDS] = {
		[WORK_EMPTY] = CU_GRAPH_NODE_TYPE_EMPTY,
		[WORK_KERNEL] = CU_GRAPH_NODE_TYPE_KERNEL,
		[WORK_COPY] = CU_GRAPH_NODE_TYPE_MEMCPY,
		[WORK_SET] = CU_GRAPH_NODE_TYPE_MEMSET,
		[WORK_HOST] = CU_GRAPH_NODE_TYPE_HOST,
		[WORK_MEMOPS] = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP,
		[WORK_RECORD] = CU_GRAPH_NODE_TYPE_EVENT_RECORD,
		[WORK_WAIT] = CU_GRAPH_NODE_TYPE_WAIT_EVENT,
		[WORK_FREE] = CU_GRAPH_NODE_TYPE_MEM_FREE,
		[WORK_ALLOC] = CU_GRAPH_NODE_TYPE_MEM_ALLOC,
		[WORK_GRAPH] = CU_GRAPH_NODE_TYPE_GRAPH,
	};
	API_ENTER();
	struct node *n;

	RETURN_IF(get_node(&n, handle));
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	*out = types[n->work.kind];
	return CUDA_SUCCESS;
}

/* Returns a list: only its length if the caller gives no room, else the entries that fit, and zeros
 * in the rest of the room. */
struct list {
	CUgraphNode *nodes, *to;
	CUgraphEdgeData *edges;
	size_t room, n;
};

static void list_add(struct list *l, const struct node *node, const struct node *to)
{
	size_t i = l->n++;

	if (i >= l->room)
		return;
	if (l->nodes)
		l->nodes[i] = node->handle;
	if (l->to)
		l->to[i] = to->handle;
	if (l->edges)
		memset(&l->edges[i], 0, sizeof(l->edges[i]));
}

static CUresult list_end(const struct list *l, size_t *n)
{
	for (size_t i = l->n; i < l->room; i++) {
		if (l->nodes)
			l->nodes[i] = NULL;
		if (l->to)
			l->to[i] = NULL;
	}
	*n = l->nodes && l->room < l->n ? l->room : l->n;
	return CUDA_SUCCESS;
}

CUresult cuGraphGetNodes(CUgraph handle, CUgraphNode *nodes, size_t *n)
{
	API_ENTER();
	struct graph *g;
	struct list l = {.nodes = nodes};

	RETURN_IF(get(&g, handle));
	if (!n)
		return CUDA_ERROR_INVALID_VALUE;
	l.room = nodes ? *n : 0;
	for (const struct node *node = g->first; node; node = node->next)
		list_add(&l, node, NULL);
	return list_end(&l, n);
}

CUresult cuGraphGetRootNodes(CUgraph handle, CUgraphNode *nodes, size_t *n)
{
	API_ENTER();
	struct graph *g;
	struct list l = {.nodes = nodes};

	RETURN_IF(get(&g, handle));
	if (!n)
		return CUDA_ERROR_INVALID_VALUE;
	l.room = nodes ? *n : 0;
	for (const struct node *node = g->first; node; node = node->next)
		if (!node->n_from)
			list_add(&l, node, NULL);
	return list_end(&l, n);
}

CUresult cuGraphGetEdges_v2(CUgraph handle, CUgraphNode *from, CUgraphNode *to,
			    CUgraphEdgeData *edges, size_t *n)
{
	API_ENTER();
	struct graph *g;
	struct list l = {.nodes = from, .to = to, .edges = edges};

	RETURN_IF(get(&g, handle));
	if (!n || !from != !to)
		return CUDA_ERROR_INVALID_VALUE;
	l.room = from ? *n : 0;
	for (const struct node *node = g->first; node; node = node->next)
		for (size_t i = 0; i < node->n_from; i++)
			list_add(&l, node->from[i], node);
	return list_end(&l, n);
}

CUresult cuGraphGetEdges(CUgraph handle, CUgraphNode *from, CUgraphNode *to, size_t *n)
{
	return cuGraphGetEdges_v2(handle, from, to, NULL, n);
}

CUresult cuGraphNodeGetDependencies_v2(CUgraphNode handle, CUgraphNode *nodes,
				       CUgraphEdgeData *edges, size_t *n)
{
	API_ENTER();
	struct node *node;
	struct list l = {.nodes = nodes, .edges = edges};

	RETURN_IF(get_node(&node, handle));
	if (!n)
		return CUDA_ERROR_INVALID_VALUE;
	l.room = nodes ? *n : 0;
	for (size_t i = 0; i < node->n_from; i++)
		list_add(&l, node->from[i], NULL);
	return list_end(&l, n);
}

CUresult cuGraphNodeGetDependencies(CUgraphNode handle, CUgraphNode *nodes, size_t *n)
{
	return cuGraphNodeGetDependencies_v2(handle, nodes, NULL, n);
}

CUresult cuGraphNodeGetDependentNodes_v2(CUgraphNode handle, CUgraphNode *nodes,
					 CUgraphEdgeData *edges, size_t *n)
{
	API_ENTER();
	struct node *node;
	struct list l = {.nodes = nodes, .edges = edges};

	RETURN_IF(get_node(&node, handle));
	if (!n)
		return CUDA_ERROR_INVALID_VALUE;
	l.room = nodes ? *n : 0;
	for (const struct node *other = node->graph->first; other; other = other->next)
		if (node_depends(other, node))
			list_add(&l, other, NULL);
	return list_end(&l, n);
}

CUresult cuGraphNodeGetDependentNodes(CUgraphNode handle, CUgraphNode *nodes, size_t *n)
{
	return cuGraphNodeGetDependentNodes_v2(handle, nodes, NULL, n);
}

/* Both ends of an edge, in the same graph. */
static CUresult get_ends(struct node **from, struct node **to, const struct graph *g, CUgraphNode a,
			 CUgraphNode b)
{
	RETURN_IF(get_node(from, a));
	RETURN_IF(get_node(to, b));
	return (*from)->graph == g && (*to)->graph == g && *from != *to ? CUDA_SUCCESS
									: CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphAddDependencies_v2(CUgraph handle, const CUgraphNode *from, const CUgraphNode *to,
				   const CUgraphEdgeData *edges, size_t n)
{
	API_ENTER();
	struct graph *g;
	struct node *a, *b;

	RETURN_IF(get(&g, handle));
	if (n && (!from || !to))
		return CUDA_ERROR_INVALID_VALUE;
	if (!edges_plain(edges, n))
		return CUDA_ERROR_NOT_SUPPORTED;
	for (size_t i = 0; i < n; i++) {
		RETURN_IF(get_ends(&a, &b, g, from[i], to[i]));
		if (node_depends(b, a))
			return CUDA_ERROR_INVALID_VALUE;
	}
	for (size_t i = 0; i < n; i++) {
		RETURN_IF(get_ends(&a, &b, g, from[i], to[i]));
		if (!node_connect(b, a))
			return CUDA_ERROR_OUT_OF_MEMORY;
	}
	return CUDA_SUCCESS;
}

CUresult cuGraphAddDependencies(CUgraph handle, const CUgraphNode *from, const CUgraphNode *to,
				size_t n)
{
	return cuGraphAddDependencies_v2(handle, from, to, NULL, n);
}

CUresult cuGraphRemoveDependencies_v2(CUgraph handle, const CUgraphNode *from,
				      const CUgraphNode *to, const CUgraphEdgeData *edges, size_t n)
{
	API_ENTER();
	struct graph *g;
	struct node *a, *b;

	(void)edges;
	RETURN_IF(get(&g, handle));
	if (n && (!from || !to))
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < n; i++) {
		RETURN_IF(get_ends(&a, &b, g, from[i], to[i]));
		if (!node_disconnect(b, a))
			return CUDA_ERROR_INVALID_VALUE;
	}
	return CUDA_SUCCESS;
}

CUresult cuGraphRemoveDependencies(CUgraph handle, const CUgraphNode *from, const CUgraphNode *to,
				   size_t n)
{
	return cuGraphRemoveDependencies_v2(handle, from, to, NULL, n);
}
