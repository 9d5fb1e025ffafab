/* Forces between boxes of particles (Rodinia's LavaMD): one box, of a whole block of threads. */
#pragma once

#include "arithmetic.h"
#include "particles.h"

/* Position and charge of the particles of box b are particles[b * BOX_PARTICLES ...]. The boxes are
 * a grid. The block may go on with another box at once. */
static __device__ void box_forces_at(const float4 *particles, float4 *force, float alpha, uint3 at, dim3 boxes)
{
	__shared__ float4 others[BOX_PARTICLES];
	int bx = at.x, by = at.y, bz = at.z;
	unsigned box = (bz * boxes.y + by) * boxes.x + bx;
	float4 mine = particles[box * BOX_PARTICLES + threadIdx.x], sum = make_float4(0, 0, 0, 0);

	for (int around = 0; around < BOX_AROUND; around++) {
		int x = bx + around % 3 - 1, y = by + around / 3 % 3 - 1, z = bz + around / 9 - 1;

		if (x < 0 || y < 0 || z < 0 || x >= boxes.x || y >= boxes.y || z >= boxes.z)
			continue;
		others[threadIdx.x] =
			particles[((z * boxes.y + y) * boxes.x + x) * BOX_PARTICLES + threadIdx.x];
		__syncthreads();
		for (int j = 0; j < BOX_PARTICLES; j++) {
			float dx = mine.x - others[j].x, dy = mine.y - others[j].y, dz = mine.z - others[j].z;
			float square = dx * dx + dy * dy + dz * dz;
			float v = others[j].w * arith_exp(-alpha * square), f = 2 * alpha * v;

			sum.x += f * dx;
			sum.y += f * dy;
			sum.z += f * dz;
			sum.w += v;
		}
		__syncthreads();
	}
	force[box * BOX_PARTICLES + threadIdx.x] = sum;
}

