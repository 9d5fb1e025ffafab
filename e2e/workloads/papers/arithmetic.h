/* Arithmetic that the device and the CPU must do alike, to the last bit: only operations that IEEE
 * 754 rounds correctly, in a fixed order, compiled without contraction on both sides
 * (-fmad=false, -ffp-contract=off). The libraries' exp, log and the like differ between the two. */
#pragma once

#ifdef __CUDACC__
#define BOTH static __device__ inline
#else
#include <math.h>
#include <stdint.h>
#include <string.h>
#define BOTH static inline
#endif

BOTH float arith_from_bits(unsigned bits)
{
#ifdef __CUDACC__
	return __uint_as_float(bits);
#else
	float value;

	memcpy(&value, &bits, sizeof(value));
	return value;
#endif
}

BOTH unsigned arith_bits(float value)
{
#ifdef __CUDACC__
	return __float_as_uint(value);
#else
	unsigned bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
#endif
}

/* e^x to about 1e-6, for -80 < x < 80; 0 below. */
BOTH float arith_exp(float x)
{
	float scaled = x * 1.44269504f;
	int whole = (int)(scaled + (scaled < 0 ? -0.5f : 0.5f));
	float r = x - (float)whole * 0.693359375f + (float)whole * 2.12194440e-4f;
	float p = 1.0f / 720;

	if (x < -80)
		return 0;
	p = p * r + 1.0f / 120;
	p = p * r + 1.0f / 24;
	p = p * r + 1.0f / 6;
	p = p * r + 0.5f;
	p = p * r + 1.0f;
	p = p * r + 1.0f;
	return p * arith_from_bits((unsigned)(whole + 127) << 23);
}

/* The natural logarithm of a normal number > 0, to about 1e-6. */
BOTH float arith_log(float x)
{
	unsigned bits = arith_bits(x);
	int exponent = (int)(bits >> 23) - 127;
	float m = arith_from_bits((bits & 0x7fffff) | 0x3f800000);

	if (m > 1.41421356f) {
		m = m * 0.5f;
		exponent++;
	}
	/* ln m = 2 artanh s */
	float s = (m - 1) / (m + 1), s2 = s * s;
	float p = 1.0f / 9;

	p = p * s2 + 1.0f / 7;
	p = p * s2 + 1.0f / 5;
	p = p * s2 + 1.0f / 3;
	p = p * s2 + 1.0f;
	return 2 * s * p + (float)exponent * 0.693147181f;
}

/* The cumulative normal distribution (Abramowitz and Stegun 26.2.17). */
BOTH float arith_normal(float d)
{
	float size = d < 0 ? -d : d;
	float k = 1 / (1 + 0.2316419f * size);
	float p = 1.330274429f;

	p = p * k + -1.821255978f;
	p = p * k + 1.781477937f;
	p = p * k + -0.356563782f;
	p = p * k + 0.319381530f;
	p = p * k * 0.39894228f * arith_exp(-0.5f * size * size);
	return d > 0 ? 1 - p : p;
}

BOTH void arith_black_scholes(float *call, float *put, float price, float strike, float years,
			      float rate, float volatility)
{
	float spread = volatility * sqrtf(years);
	float d1 = (arith_log(price / strike) + (rate + 0.5f * volatility * volatility) * years) /
		   spread;
	float d2 = d1 - spread;
	float n1 = arith_normal(d1), n2 = arith_normal(d2);
	float later = strike * arith_exp(-rate * years);

	*call = price * n1 - later * n2;
	*put = later * (1 - n2) - price * (1 - n1);
}

/* The next of a generator's numbers. */
BOTH unsigned arith_step(unsigned x)
{
	return x * 1664525u + 1013904223u;
}

/* A particle of the filter takes a random step, and stays at least 2 away from the rim of a square
 * of @side. Returns the new seed. */
BOTH unsigned arith_filter_move(float *x, float *y, unsigned seed, int side)
{
	float limit = (float)(side - 3);

	seed = arith_step(seed);
	*x = *x + (float)(seed >> 16) / 65536 * 4 - 2;
	seed = arith_step(seed);
	*y = *y + (float)(seed >> 16) / 65536 * 4 - 2;
	*x = *x < 2 ? 2 : *x > limit ? limit : *x;
	*y = *y < 2 ? 2 : *y > limit ? limit : *y;
	return seed;
}

/* The weight of a particle: 1 to 2^20, large where 5 x 5 pixels are bright. */
BOTH unsigned arith_filter_weight(const unsigned char *image, float x, float y, int side)
{
	int column = (int)x, row = (int)y, sum = 0;

	for (int k = 0; k < 25; k++)
		sum += image[(row + k / 5 - 2) * side + column + k % 5 - 2];
	return (unsigned)(arith_exp((float)(sum - 25 * 255) / 400) * (1 << 20)) + 1;
}
