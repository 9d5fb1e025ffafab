/* Fields that many sources make: what fields.cu and its host share, to the last bit alike. */
#pragma once

#include "arithmetic.h"

#define BIN_SIDE      8 /* points along an edge of a bin; the cutoff is as long */
#define BIN_ATOMS     8
#define BIN_DEPTH     2                      /* of a block of threads */
#define BIN_STEPS     (BIN_SIDE / BIN_DEPTH) /* points of a thread */
#define SAMPLES       256                    /* in constant memory at a time */
#define FIELD_THREADS 256

/* The potential that @charge adds at a distance whose square is @square; none in its own place. */
BOTH float field_potential(float charge, float square)
{
	const float cutoff = (float)(BIN_SIDE * BIN_SIDE);
	float left = 1 - square / cutoff;

	return square > 0 && square < cutoff ? charge * (1 / sqrtf(square)) * left * left : 0;
}

/* sin(2 pi @turns) to about 1e-5. */
BOTH float field_sine(float turns)
{
	float whole = (float)(int)(turns + (turns < 0 ? -0.5f : 0.5f)), t = turns - whole;
	/* -0.25 <= t <= 0.25 */
	t = t > 0.25f ? 0.5f - t : t < -0.25f ? -0.5f - t : t;
	float x = t * 6.28318531f, square = x * x;
	float p = 1.0f / 362880;

	p = p * square - 1.0f / 5040;
	p = p * square + 1.0f / 120;
	p = p * square - 1.0f / 6;
	p = p * square + 1;
	return p * x;
}
