/* What the tests of captures and of graphs share. */
#pragma once

#include "driver-test.h"

static inline CUgraphExec instantiate(CUgraph graph)
{
	CUgraphExec exec;

	ok(cuGraphInstantiate(&exec, graph, 0));
	return exec;
}

static inline size_t node_count(CUgraph graph)
{
	size_t n = 0;

	ok(cuGraphGetNodes(graph, NULL, &n));
	return n;
}

static inline CUgraphNodeType type_of(CUgraph graph, size_t i)
{
	CUgraphNode nodes[16];
	CUgraphNodeType type;
	size_t n = countof(nodes);

	ok(cuGraphGetNodes(graph, nodes, &n));
	assert_true(i < n);
	ok(cuGraphNodeGetType(nodes[i], &type));
	return type;
}
