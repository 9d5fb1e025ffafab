/* Forces between boxes of particles (Rodinia's LavaMD): one box, of a whole block of threads. */
#pragma once

#include "arithmetic.h"
#include "particles.h"

/* Box @around of those around box @at, and itself, in a grid of @boxes. -1: there is none. */
static __device__ int box_neighbour(uint3 at, dim3 boxes, int around)
{
	int x = (int)at.x + around % 3 - 1, y = (int)at.y + around / 3 % 3 - 1, z = (int)at.z + around / 9 - 1;

	if (x < 0 || y < 0 || z < 0 || x >= boxes.x || y >= boxes.y || z >= boxes.z)
		return -1;
	return (z * boxes.y + y) * boxes.x + x;
}

/* Adds to @sum the forces of the particles of a box on that of the thread. The block may go on at once with
 * another box. Position and charge of a particle are a float4. */
static __device__ __forceinline__ void box_add(const float4 *particles, float alpha, float4 mine, float4 &sum)
{
	__shared__ float4 others[BOX_PARTICLES];

	others[threadIdx.x] = particles[threadIdx.x];
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
