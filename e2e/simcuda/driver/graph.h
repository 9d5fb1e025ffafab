/* Graphs: nodes of work and their order. They are built by hand or captured, then copied into an
 * executable that can be launched. */
#pragma once

#include "simcuda/driver/exec.h"

struct node {
	CUgraphNode handle;
	struct graph *graph;
	struct node *next;
	struct work work;
	struct node **from; /* the nodes before it */
	size_t n_from;
	CUgraphNode origin; /* in a copy: the node that it is a copy of */
	struct node *twin;  /* scratch of graph_copy(): the copy */
	bool placed;        /* scratch of graph_sort() and of capture */
	struct op *op;      /* scratch of a launch; counted */
	bool disabled;
	void *shown; /* cuGraphKernelNodeGetParams() and the like point into it */
};

struct graph {
	CUgraph handle; /* null: inside an executable, or of a child node before it is asked for */
	struct node *first, *last;
	size_t n;
	bool child; /* of a node: not the caller's to destroy */
};

struct exec {
	CUgraphExec handle;
	struct graph *graph; /* in order */
	struct op *last;     /* end of the last launch; counted */
	unsigned long long flags;
	struct device *device; /* null: it has allocated nothing yet */
	uint64_t allocated;
};

struct graph *graph_new(void);
void graph_free(struct graph *g);
struct graph *graph_copy(const struct graph *g); /* with no handles */
bool graph_give_handles(struct graph *g);
/* Takes @work over. */
CUresult graph_add(struct node **out, struct graph *g, struct work *work, struct node *const *from,
		   size_t n_from);
void graph_remove(struct node *n);
/* Sorts the nodes topologically. False: there is a cycle. */
bool graph_sort(struct graph *g);
/* The nodes behind @handles. False: one is not a node of @g. */
bool graph_nodes(struct node **out, const CUgraphNode *handles, size_t n, const struct graph *g);
struct node *graph_find_origin(const struct graph *g, CUgraphNode origin);

/* The node's copy in an executable; null: it has none. */
struct node *exec_node(CUgraphExec exec, CUgraphNode handle);
bool edges_plain(const CUgraphEdgeData *edges, size_t n);
bool capture_uses(const struct graph *g);

/* graph/allocation.c */
CUresult allocation_work(struct work *out, struct context *ctx, size_t size);
CUresult allocations_take(struct exec *e, struct device *d); /* at a launch */
void allocations_leave(struct exec *e);

void node_free(struct node *n);
bool node_depends(const struct node *n, const struct node *on);
bool node_connect(struct node *n, struct node *from); /* false: no memory */
bool node_disconnect(struct node *n, const struct node *from);
