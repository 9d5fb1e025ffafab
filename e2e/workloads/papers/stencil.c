/* The 7-point stencil in a cube: the host's side. */
#include <stdlib.h>
#include <string.h>

#include <weir/base.h>

#include "papers.h"
#include "stencil.h"

#define STEPS 3

struct cube {
	const float *in;
	float *out;
	size_t side;
};

static void cube_plane(void *context, size_t z)
{
	const struct cube *cube = context;
	size_t side = cube->side, step = side * side;

	memcpy(cube->out + z * step, cube->in + z * step, step * sizeof(float));
	if (z == 0 || z == side - 1)
		return;
	for (size_t y = 1; y + 1 < side; y++)
		for (size_t x = 1; x + 1 < side; x++) {
			const float *here = &cube->in[z * step + y * side + x];

			cube->out[z * step + y * side + x] =
				stencil_value(here[0], here[step] + *(here - step),
					      *(here - side) + here[side], here[-1] + here[1]);
		}
}

void plan_stencil_cube(struct plan *plan, uint32_t side)
{
	size_t n = (size_t)side * side * side;
	struct buffer *buffers[2] = {plan_buffer(plan, n * sizeof(float)),
				     plan_buffer(plan, n * sizeof(float))};
	cleanup(freep) float *before = workload_alloc(n * sizeof(float));
	float *start = buffer_start(buffers[0]), *after = buffer_want(buffers[STEPS % 2]);

	random_floats(&plan->random, start, n, 0, 1);
	memcpy(before, start, n * sizeof(float));
	for (unsigned step = 0; step < STEPS; step++) {
		in_parallel(side, cube_plane, &(struct cube){before, after, side});
		memcpy(before, after, n * sizeof(float));
		plan_launch(plan, "stencil_7", shape_plane(side, side, CUBE_X, CUBE_Y),
			    ARGUMENT(buffers[step % 2]->device),
			    ARGUMENT(buffers[(step + 1) % 2]->device), ARGUMENT(side));
	}
}
