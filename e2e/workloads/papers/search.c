/* Breadth-first search and MD5 search: the host's side. */
#include <stdlib.h>
#include <string.h>

#include <weir/base.h>

#include "md5.h"
#include "papers.h"

#define EDGES_MAX 12 /* of a vertex, less 1 */
#define LEVELS    64

/* A ring, so that all is connected, with random edges: few steps lead from anywhere to anywhere. */
static uint32_t fill_graph(struct random *random, uint32_t *first, uint32_t *edges,
			   uint32_t vertices)
{
	uint32_t n = 0;

	for (uint32_t v = 0; v < vertices; v++) {
		uint32_t count = random_below(random, EDGES_MAX);

		first[v] = n;
		edges[n++] = (v + 1) % vertices;
		while (count--)
			edges[n++] = random_below(random, vertices);
	}
	return first[vertices] = n;
}

/* How far each vertex is from vertex 0; the number of vertices at each distance, less one. Returns
 * the largest distance. */
static uint32_t walk(const uint32_t *first, const uint32_t *edges, uint32_t *distance,
		     uint32_t *found, uint32_t vertices)
{
	cleanup(freep) uint32_t *queue = workload_alloc(vertices * sizeof(*queue));
	uint32_t head = 0, tail = 0;

	memset(distance, 0xff, vertices * sizeof(*distance));
	distance[0] = 0;
	queue[tail++] = 0;
	while (head < tail) {
		uint32_t v = queue[head++];

		for (uint32_t e = first[v]; e < first[v + 1]; e++) {
			if (distance[edges[e]] != UINT32_MAX)
				continue;
			distance[edges[e]] = distance[v] + 1;
			if (distance[v] < LEVELS)
				found[distance[v]]++;
			queue[tail++] = edges[e];
		}
	}
	return distance[queue[tail - 1]];
}

void plan_graph(struct plan *plan, uint32_t vertices)
{
	struct buffer *firsts = plan_buffer(plan, (vertices + 1) * sizeof(uint32_t));
	struct buffer *edges = plan_buffer(plan, (size_t)vertices * EDGES_MAX * sizeof(uint32_t));
	struct buffer *distances = plan_buffer(plan, vertices * sizeof(uint32_t));
	struct buffer *found = plan_buffer(plan, LEVELS * sizeof(uint32_t));
	uint32_t *first = buffer_input(firsts), *edge = buffer_input(edges);
	uint32_t *start = buffer_start(distances), *want_found = buffer_want(found);
	uint32_t *want = buffer_want(distances), levels;

	memset(edge, 0, edges->bytes);
	fill_graph(&plan->random, first, edge, vertices);
	memset(start, 0xff, distances->bytes);
	start[0] = 0;
	buffer_zeros(found);
	memset(want_found, 0, found->bytes);
	levels = walk(first, edge, want, want_found, vertices);
	if (levels >= LEVELS)
		workload_fail("graph: %u levels", levels);
	for (uint32_t level = 0; level < levels; level++)
		plan_launch(plan, "graph_level", shape_line(vertices, 256),
			    ARGUMENT(firsts->device), ARGUMENT(edges->device),
			    ARGUMENT(distances->device), ARGUMENT(vertices), ARGUMENT(level),
			    ARGUMENT(found->device));
}

/* As in search.cu. */
struct md5_result {
	uint32_t index;
	struct md5 digest;
	uint32_t tried;
};

void plan_md5(struct plan *plan, uint32_t keys)
{
	const uint32_t each = 8, block = 128;
	struct buffer *wanted = plan_buffer(plan, sizeof(struct md5));
	struct buffer *found = plan_buffer(plan, sizeof(struct md5_result));
	struct md5_result *start = buffer_start(found), *want = buffer_want(found);
	uint32_t words[16];

	want->index = random_below(&plan->random, keys);
	want->tried = keys;
	md5_key(words, want->index);
	want->digest = md5_of(words);
	memcpy(buffer_input(wanted), &want->digest, sizeof(want->digest));
	*start = (struct md5_result){.index = UINT32_MAX};
	plan_launch(plan, "md5_search", shape_line(keys / each + 1, block),
		    ARGUMENT(wanted->device), ARGUMENT(keys), ARGUMENT(each),
		    ARGUMENT(found->device));
}
