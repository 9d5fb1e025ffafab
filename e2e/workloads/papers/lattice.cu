/* Flow in a cube with walls in it, by the lattice Boltzmann method (Parboil). */
#include "lattice.h"

/* One step: particles collide, and stream to the neighbours. Direction d of cell i is at
 * [d * cells + i]. */
extern "C" __global__ void lattice_stream_collide(const float *in, const unsigned char *walls, float *out, int side)
{
	unsigned cells = side * side * side, i = blockIdx.x * blockDim.x + threadIdx.x;
	int x = i % side, y = i / side % side, z = i / side / side;
	struct lattice_cell cell;

	if (i >= cells)
		return;
#pragma unroll
	for (unsigned d = 0; d < LATTICE_DIRECTIONS; d++)
		cell.f[d] = in[d * cells + i];
	cell = lattice_collide(cell, walls[i]);
#pragma unroll
	for (unsigned d = 0; d < LATTICE_DIRECTIONS; d++)
		out[d * cells + lattice_reached(x, y, z, d, side)] = cell.f[d];
}
