#include "simcuda/ptx/execute/half.h"

#include <math.h>
#include <string.h>

double ptx_from_f16(uint16_t bits)
{
	int exponent = bits >> 10 & 31;
	double mantissa = bits & 1023, value;

	if (exponent == 31)
		value = mantissa != 0 ? NAN : INFINITY;
	else if (exponent == 0)
		value = ldexp(mantissa, -24);
	else
		value = ldexp(mantissa + 1024, exponent - 25);
	return bits & 0x8000 ? -value : value;
}

double ptx_from_bf16(uint16_t bits)
{
	uint32_t wide = (uint32_t)bits << 16;
	float value;

	memcpy(&value, &wide, sizeof(value));
	return value;
}

/* Is the magnitude @whole + @fraction rounded away from zero? */
static bool rounds_up(uint64_t whole, double fraction, bool negative, enum ptx_round round)
{
	switch (round) {
	case PTX_RN:
		return fraction > 0.5 || (fraction == 0.5 && (whole & 1));
	case PTX_RNA:
		return fraction >= 0.5;
	case PTX_RM:
		return negative && fraction > 0;
	case PTX_RP:
		return !negative && fraction > 0;
	case PTX_RZ:
		break;
	}
	return false;
}

/* @value in a format of @mantissa explicit bits below @exponent bits. */
static uint32_t narrow(double value, int mantissa, int exponent, enum ptx_round round)
{
	uint32_t infinity = ((1u << exponent) - 1) << mantissa;
	bool negative = signbit(value);
	uint32_t sign = (uint32_t)negative << (mantissa + exponent);
	int bias = (1 << (exponent - 1)) - 1, at;

	if (isnan(value))
		return (1u << (mantissa + exponent)) - 1;
	if (isinf(value))
		return sign | infinity;
	if (value == 0)
		return sign;

	frexp(value, &at);
	at -= 1; /* |value| is in [2^at, 2^(at + 1)) */
	bool subnormal = at < 1 - bias;
	if (subnormal)
		at = 1 - bias;
	if (at > bias)
		at = bias + 1;
	double scaled = ldexp(fabs(value), mantissa - at);
	if (scaled > ldexp(1, mantissa + 2))
		scaled = ldexp(1, mantissa + 2);
	uint64_t whole = (uint64_t)scaled;
	whole += rounds_up(whole, scaled - (double)whole, negative, round);

	uint64_t bits =
		subnormal ? whole : ((uint64_t)(at + bias) << mantissa) + whole - (1u << mantissa);
	if (bits < infinity)
		return sign | (uint32_t)bits;
	bool to_infinity = round == PTX_RN || round == PTX_RNA || (round == PTX_RM && negative) ||
			   (round == PTX_RP && !negative);
	return sign | (to_infinity ? infinity : infinity - 1);
}

uint16_t ptx_to_f16(double value, enum ptx_round round)
{
	return (uint16_t)narrow(value, 10, 5, round);
}

uint16_t ptx_to_bf16(double value, enum ptx_round round)
{
	return (uint16_t)narrow(value, 7, 8, round);
}

uint32_t ptx_to_tf32(double value, enum ptx_round round)
{
	return isnan(value) ? 0x7fffffff : narrow(value, 10, 8, round) << 13;
}

double ptx_fma_odd(double a, double b, double c)
{
	double product = a * b, sum = product + c;
	uint64_t bits;

	if (!isfinite(sum))
		return sum;
	/* The exact rounding error of the sum. */
	double part = sum - product;
	double lost = (product - (sum - part)) + (c - part);
	memcpy(&bits, &sum, sizeof(bits));
	if (lost == 0 || (bits & 1))
		return sum;
	/* Rounds to the odd neighbour, in the direction of the error. */
	return nextafter(sum, lost > 0 ? INFINITY : -INFINITY);
}

double ptx_integer_odd(uint64_t magnitude)
{
	if (magnitude >> 53)
		magnitude = (magnitude & ~0x7ffULL) | (uint64_t)((magnitude & 0x7ff) != 0) << 11;
	return (double)magnitude;
}
