/* The lattice Boltzmann method: the host's side. */
#include <stdlib.h>
#include <string.h>

#include <weir/base.h>

#include "lattice.h"
#include "papers.h"

#define STEPS    4
#define WALLS_OF 10u /* cells, one is of a wall */

struct flow {
	const float *in;
	const unsigned char *walls;
	float *out;
	int side;
};

static void flow_plane(void *context, size_t z)
{
	const struct flow *flow = context;
	size_t plane = (size_t)flow->side * (size_t)flow->side, cells = plane * (size_t)flow->side;

	for (size_t k = 0; k < plane; k++) {
		size_t i = z * plane + k;
		int x = (int)k % flow->side, y = (int)k / flow->side;
		struct lattice_cell cell;

		for (unsigned d = 0; d < LATTICE_DIRECTIONS; d++)
			cell.f[d] = flow->in[d * cells + i];
		cell = lattice_collide(cell, flow->walls[i]);
		for (unsigned d = 0; d < LATTICE_DIRECTIONS; d++)
			flow->out[d * cells + lattice_reached(x, y, (int)z, d, flow->side)] =
				cell.f[d];
	}
}

void plan_lattice(struct plan *plan, uint32_t side)
{
	size_t cells = (size_t)side * side * side, values = cells * LATTICE_DIRECTIONS;
	struct buffer *walls = plan_buffer(plan, cells);
	struct buffer *buffers[2] = {plan_buffer(plan, values * sizeof(float)),
				     plan_buffer(plan, values * sizeof(float))};
	cleanup(freep) float *before = workload_alloc(values * sizeof(float));
	unsigned char *wall = buffer_input(walls);
	float *start = buffer_start(buffers[0]), *after = buffer_want(buffers[STEPS % 2]);
	struct flow flow = {before, wall, after, (int)side};

	for (size_t i = 0; i < cells; i++)
		wall[i] = random_below(&plan->random, WALLS_OF) == 0;
	random_floats(&plan->random, start, values, 0.04f, 0.06f);
	memcpy(before, start, values * sizeof(float));
	for (unsigned step = 0; step < STEPS; step++) {
		in_parallel(side, flow_plane, &flow);
		if (step + 1 < STEPS)
			memcpy(before, after, values * sizeof(float));
		plan_launch(plan, "lattice_stream_collide", shape_line(cells, LATTICE_THREADS),
			    ARGUMENT(buffers[step % 2]->device), ARGUMENT(walls->device),
			    ARGUMENT(buffers[(step + 1) % 2]->device), ARGUMENT(side));
	}
}
