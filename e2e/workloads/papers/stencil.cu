/* A 7-point stencil in a cube (Parboil). */
#include "stencil.h"

/* One step; the rim stays as it is. A block goes up through all planes of its columns. */
extern "C" __global__ void stencil_7(const float *in, float *out, int side)
{
	__shared__ float plane[CUBE_Y][CUBE_X];
	int tx = threadIdx.x, ty = threadIdx.y, x = blockIdx.x * CUBE_X + tx, y = blockIdx.y * CUBE_Y + ty;
	bool inside = x < side && y < side, inner = inside && x > 0 && x < side - 1 && y > 0 && y < side - 1;
	size_t i = (size_t)y * side + x, step = (size_t)side * side;
	float below = inside ? in[i] : 0, here = inside ? in[i + step] : 0;

	if (inside)
		out[i] = below;
	for (int z = 1; z < side - 1; z++) {
		float above, value = here;

		i += step;
		above = inside ? in[i + step] : 0;
		plane[ty][tx] = here;
		__syncthreads();
		if (inner) {
			float west = tx > 0 ? plane[ty][tx - 1] : in[i - 1];
			float east = tx < CUBE_X - 1 ? plane[ty][tx + 1] : in[i + 1];
			float north = ty > 0 ? plane[ty - 1][tx] : in[i - side];
			float south = ty < CUBE_Y - 1 ? plane[ty + 1][tx] : in[i + side];

			value = stencil_value(here, above + below, north + south, west + east);
		}
		if (inside)
			out[i] = value;
		__syncthreads();
		below = here;
		here = above;
	}
	if (inside)
		out[i + step] = here;
}
