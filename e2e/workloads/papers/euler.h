/* The Euler equations of a gas in finite volumes, explicit in time (as Rodinia's CFD): what the
 * device and the CPU do with one element, to the last bit alike. Elements have four faces. */
#pragma once

#include "arithmetic.h"

#define EULER_FACES     4
#define EULER_VARIABLES 5 /* density, momentum in x, y and z, energy */
#define EULER_WALL      (-1)
#define EULER_FAR       (-2)
#define EULER_GAMMA     1.4f

struct euler_state {
	float v[EULER_VARIABLES];
};

/* Variable k of element i is at [k * n + i]. */
BOTH struct euler_state euler_load(const float *variables, unsigned n, unsigned i)
{
	struct euler_state s;

	for (unsigned k = 0; k < EULER_VARIABLES; k++)
		s.v[k] = variables[k * n + i];
	return s;
}

BOTH float euler_pressure(struct euler_state s)
{
	float square = s.v[1] * s.v[1] + s.v[2] * s.v[2] + s.v[3] * s.v[3];

	return (EULER_GAMMA - 1) * (s.v[4] - 0.5f * square / s.v[0]);
}

/* How fast a wave goes at most. */
BOTH float euler_speed(struct euler_state s)
{
	float square = s.v[1] * s.v[1] + s.v[2] * s.v[2] + s.v[3] * s.v[3];

	return sqrtf(square) / s.v[0] + sqrtf(EULER_GAMMA * euler_pressure(s) / s.v[0]);
}

BOTH float euler_step_factor(struct euler_state s, float volume)
{
	return 0.25f * sqrtf(volume) / euler_speed(s);
}

/* What flows through a face with the normal @x, @y, @z (its length: the area) in state @s. */
BOTH struct euler_state euler_flow(struct euler_state s, float x, float y, float z)
{
	float p = euler_pressure(s), through = (s.v[1] * x + s.v[2] * y + s.v[3] * z) / s.v[0];
	struct euler_state f;

	f.v[0] = s.v[0] * through;
	f.v[1] = s.v[1] * through + p * x;
	f.v[2] = s.v[2] * through + p * y;
	f.v[3] = s.v[3] * through + p * z;
	f.v[4] = (s.v[4] + p) * through;
	return f;
}

/* Adds to @sum the flux (Rusanov's) from @here to @there. */
BOTH void euler_face(struct euler_state *sum, struct euler_state here, struct euler_state there,
		     float x, float y, float z)
{
	struct euler_state a = euler_flow(here, x, y, z), b = euler_flow(there, x, y, z);
	float fast = euler_speed(here), other = euler_speed(there);
	float damp = (fast > other ? fast : other) * sqrtf(x * x + y * y + z * z);

	for (unsigned k = 0; k < EULER_VARIABLES; k++)
		sum->v[k] += 0.5f * (a.v[k] + b.v[k]) - 0.5f * damp * (there.v[k] - here.v[k]);
}

/* The fluxes out of element @i. Faces k of element i are at [k * n + i]; a normal's parts at
 * [(3 * k + part) * n + i]. */
BOTH struct euler_state euler_flux(const float *variables, const int *neighbours,
				   const float *normals, unsigned n, unsigned i,
				   struct euler_state far)
{
	struct euler_state here = euler_load(variables, n, i), sum = {{0, 0, 0, 0, 0}};

	for (unsigned k = 0; k < EULER_FACES; k++) {
		int to = neighbours[k * n + i];
		float x = normals[(3 * k) * n + i], y = normals[(3 * k + 1) * n + i];
		float z = normals[(3 * k + 2) * n + i];

		if (to >= 0) {
			euler_face(&sum, here, euler_load(variables, n, (unsigned)to), x, y, z);
		} else if (to == EULER_FAR) {
			euler_face(&sum, here, far, x, y, z);
		} else {
			float p = euler_pressure(here);

			sum.v[1] += p * x;
			sum.v[2] += p * y;
			sum.v[3] += p * z;
		}
	}
	return sum;
}
