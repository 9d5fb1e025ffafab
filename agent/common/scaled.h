/* A number with a unit behind it, in the smallest unit. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct scale {
	const char *unit;
	uint64_t factor;
};

/* Digits, perhaps a point and more digits, and one of the @n units; no sign, no blank. Fractions of
 * the smallest unit are cut off. False: it is something else, or more than @max. */
bool scaled_parse(const char *text, const struct scale *scales, size_t n, uint64_t max,
		  uint64_t *out);
