/* The structure of graphs: nodes, edges, copies, order. */
#include "simcuda/driver/graph.h"

#include <stdlib.h>
#include <string.h>

struct graph *graph_new(void)
{
	return calloc(1, sizeof(struct graph));
}

void node_free(struct node *n)
{
	handle_free(n->handle);
	work_deinit(&n->work);
	free(n->from);
	free(n->shown);
	op_unref(n->op);
	free(n);
}

void graph_free(struct graph *g)
{
	if (!g)
		return;
	while (g->first) {
		struct node *n = g->first;

		g->first = n->next;
		node_free(n);
	}
	handle_free(g->handle);
	free(g);
}

bool graph_give_handles(struct graph *g)
{
	g->handle = handle_new(HANDLE_GRAPH, g);
	if (!g->handle)
		return false;
	for (struct node *n = g->first; n; n = n->next) {
		n->handle = handle_new(HANDLE_NODE, n);
		if (!n->handle)
			return false;
	}
	return true;
}

static void append(struct graph *g, struct node *n)
{
	n->graph = g;
	n->next = NULL;
	if (g->last)
		g->last->next = n;
	else
		g->first = n;
	g->last = n;
	g->n++;
}

bool node_depends(const struct node *n, const struct node *on)
{
	for (size_t i = 0; i < n->n_from; i++)
		if (n->from[i] == on)
			return true;
	return false;
}

bool node_connect(struct node *n, struct node *from)
{
	struct node **grown = realloc(n->from, (n->n_from + 1) * sizeof(struct node *));

	if (!grown)
		return false;
	n->from = grown;
	n->from[n->n_from++] = from;
	return true;
}

CUresult graph_add(struct node **out, struct graph *g, struct work *work, struct node *const *from,
		   size_t n_from)
{
	struct node *n = calloc(1, sizeof(*n));

	if (!n) {
		work_deinit(work);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	n->work = *work;
	memset(work, 0, sizeof(*work));
	for (size_t i = 0; i < n_from; i++) {
		if (node_depends(n, from[i]))
			continue;
		if (!node_connect(n, from[i])) {
			node_free(n);
			return CUDA_ERROR_OUT_OF_MEMORY;
		}
	}
	if (g->handle) {
		n->handle = handle_new(HANDLE_NODE, n);
		if (!n->handle) {
			node_free(n);
			return CUDA_ERROR_OUT_OF_MEMORY;
		}
	}
	append(g, n);
	*out = n;
	return CUDA_SUCCESS;
}

static struct node *copy_node(const struct node *from)
{
	struct node *n = calloc(1, sizeof(*n));

	if (!n)
		return NULL;
	n->from = malloc((from->n_from + 1) * sizeof(struct node *));
	if (!n->from || !work_clone(&n->work, &from->work)) {
		free(n->from);
		free(n);
		return NULL;
	}
	n->n_from = from->n_from;
	n->disabled = from->disabled;
	n->origin = from->handle ? from->handle : from->origin;
	return n;
}

struct graph *graph_copy(const struct graph *g)
{
	struct graph *copy = graph_new();

	if (copy)
		copy->child = g->child;
	for (struct node *n = g->first; copy && n; n = n->next) {
		n->twin = copy_node(n);
		if (!n->twin) {
			graph_free(copy);
			return NULL;
		}
		append(copy, n->twin);
	}
	for (struct node *n = g->first; copy && n; n = n->next)
		for (size_t i = 0; i < n->n_from; i++)
			n->twin->from[i] = n->from[i]->twin;
	return copy;
}

static bool free_to_go(const struct node *n)
{
	for (size_t i = 0; i < n->n_from; i++)
		if (!n->from[i]->placed)
			return false;
	return true;
}

bool graph_sort(struct graph *g)
{
	struct node *left = g->first, **at;

	g->first = g->last = NULL;
	g->n = 0;
	for (struct node *n = left; n; n = n->next)
		n->placed = false;
	/* A list that is in order already is done in one round. */
	for (bool moved = true; left && moved;) {
		moved = false;
		for (at = &left; *at;) {
			struct node *n = *at;

			if (!free_to_go(n)) {
				at = &n->next;
				continue;
			}
			*at = n->next;
			n->placed = true;
			append(g, n);
			moved = true;
		}
	}
	while (left) { /* a cycle: its nodes still belong to the graph */
		struct node *n = left;

		left = n->next;
		append(g, n);
		if (!left)
			return false;
	}
	return true;
}

bool node_disconnect(struct node *n, const struct node *from)
{
	for (size_t i = 0; i < n->n_from; i++) {
		if (n->from[i] != from)
			continue;
		n->from[i] = n->from[--n->n_from];
		return true;
	}
	return false;
}

void graph_remove(struct node *gone)
{
	struct graph *g = gone->graph;
	struct node *before = NULL;

	for (struct node *n = g->first; n; n = n->next) {
		if (n->next == gone)
			before = n;
		node_disconnect(n, gone);
	}
	if (before)
		before->next = gone->next;
	else
		g->first = gone->next;
	if (g->last == gone)
		g->last = before;
	g->n--;
	node_free(gone);
}

struct node *graph_find_origin(const struct graph *g, CUgraphNode origin)
{
	for (struct node *n = g->first; n; n = n->next) {
		struct node *inner;

		if (n->origin == origin)
			return n;
		inner = n->work.kind == WORK_GRAPH ? graph_find_origin(n->work.graph, origin)
						   : NULL;
		if (inner)
			return inner;
	}
	return NULL;
}

bool graph_nodes(struct node **out, const CUgraphNode *handles, size_t n, const struct graph *g)
{
	for (size_t i = 0; i < n; i++) {
		out[i] = handle_get(HANDLE_NODE, handles[i]);
		if (!out[i] || out[i]->graph != g)
			return false;
	}
	return true;
}
