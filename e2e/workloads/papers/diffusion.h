/* Diffusion on a plane: what diffusion.cu and its host share, to the last bit alike. */
#pragma once

#include "arithmetic.h"

#define DIFFUSION_SIDE     16   /* of a block of threads */
#define DIFFUSION_STRENGTH 0.5f /* of a step */
#define DIFFUSION_SCALE    65536
#define HEAT_STEPS         4 /* that a launch does at most */

/* The differences to the four neighbours. */
struct slopes {
	float north, south, west, east;
};

/* From the sums of a picture's values and their squares, times DIFFUSION_SCALE: how much it varies
 * where it is noise alone. */
BOTH float diffusion_noise(unsigned long long sum, unsigned long long squares, unsigned n)
{
	float mean = (float)sum / DIFFUSION_SCALE / (float)n;
	float variance = (float)squares / DIFFUSION_SCALE / (float)n - mean * mean;

	return variance / (mean * mean);
}

/* How much diffuses through a place: 1 within a surface, 0 at an edge. */
BOTH float diffusion_coefficient(float value, struct slopes s, float noise)
{
	float steep = (s.north * s.north + s.south * s.south + s.west * s.west + s.east * s.east) /
		      (value * value);
	float bent = (s.north + s.south + s.west + s.east) / value;
	float part = 1 + 0.25f * bent;
	float varies = (0.5f * steep - 0.0625f * (bent * bent)) / (part * part);
	float c = 1 / (1 + (varies - noise) / (noise * (1 + noise)));

	return c < 0 ? 0 : c > 1 ? 1 : c;
}

/* The coefficients here, to the south and to the east. */
BOTH float diffusion_step(float value, struct slopes s, float here, float south, float east)
{
	float flow = here * s.north + south * s.south + here * s.west + east * s.east;

	return value + 0.25f * DIFFUSION_STRENGTH * flow;
}

/* Heat in a place of a chip after a step (as Rodinia's hotspot). @power: that becomes heat there.
 */
BOTH float heat_step(float value, float north, float south, float west, float east, float power)
{
	float along = (south + north - 2 * value) * 0.1f, across = (east + west - 2 * value) * 0.1f;

	return value + 0.5f * (power + along + across + (80 - value) * 0.01f);
}
