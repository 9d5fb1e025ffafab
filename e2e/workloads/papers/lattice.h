/* The lattice Boltzmann method in three dimensions with 19 directions (as Parboil's LBM): what the
 * device and the CPU do with one cell, to the last bit alike. */
#pragma once

#include "arithmetic.h"

#define LATTICE_DIRECTIONS 19
#define LATTICE_RELAX      1.9f
#define LATTICE_THREADS    128

#ifdef __CUDACC__
#define UNROLLED _Pragma("unroll")
#else
#define UNROLLED
#endif

struct lattice_cell {
	float f[LATTICE_DIRECTIONS];
};

/* Of direction @d along x, y or z (@axis 0, 1, 2): -1, 0 or 1. */
BOTH int lattice_step(unsigned d, unsigned axis)
{
	const signed char steps[LATTICE_DIRECTIONS][3] = {
		{0, 0, 0},  {1, 0, 0},   {-1, 0, 0},  {0, 1, 0},   {0, -1, 0},
		{0, 0, 1},  {0, 0, -1},  {1, 1, 0},   {-1, -1, 0}, {1, -1, 0},
		{-1, 1, 0}, {1, 0, 1},   {-1, 0, -1}, {1, 0, -1},  {-1, 0, 1},
		{0, 1, 1},  {0, -1, -1}, {0, 1, -1},  {0, -1, 1}};

	return steps[d][axis];
}

BOTH unsigned lattice_opposite(unsigned d)
{
	return d == 0 ? 0 : d % 2 ? d + 1 : d - 1;
}

/* Particles in a cell bounce off each other; in a cell of a wall (@wall) they go back. */
BOTH struct lattice_cell lattice_collide(struct lattice_cell in, int wall)
{
	float density = 0, speed[3] = {0, 0, 0}, square = 0;
	struct lattice_cell out;

	UNROLLED
	for (unsigned d = 0; d < LATTICE_DIRECTIONS; d++) {
		density += in.f[d];
		UNROLLED
		for (unsigned axis = 0; axis < 3; axis++)
			speed[axis] += in.f[d] * (float)lattice_step(d, axis);
	}
	UNROLLED
	for (unsigned axis = 0; axis < 3; axis++) {
		speed[axis] = speed[axis] / density;
		square += speed[axis] * speed[axis];
	}
	UNROLLED
	for (unsigned d = 0; d < LATTICE_DIRECTIONS; d++) {
		float weight = d == 0 ? 1.0f / 3 : d < 7 ? 1.0f / 18 : 1.0f / 36;
		float along = 0;

		UNROLLED
		for (unsigned axis = 0; axis < 3; axis++)
			along += speed[axis] * (float)lattice_step(d, axis);
		float rest =
			weight * density * (1 + 3 * along + 4.5f * along * along - 1.5f * square);

		out.f[d] = wall ? in.f[lattice_opposite(d)]
				: (1 - LATTICE_RELAX) * in.f[d] + LATTICE_RELAX * rest;
	}
	return out;
}

/* The cell that particles of direction @d of cell @x, @y, @z reach. The cube of @side has no rim.
 */
BOTH unsigned lattice_reached(int x, int y, int z, unsigned d, int side)
{
	x = (x + lattice_step(d, 0) + side) % side;
	y = (y + lattice_step(d, 1) + side) % side;
	z = (z + lattice_step(d, 2) + side) % side;
	return (unsigned)((z * side + y) * side + x);
}
