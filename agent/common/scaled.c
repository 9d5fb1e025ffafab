#include "common/scaled.h"

#include <string.h>

/* No more than the product with a factor has room for. */
#define DIGITS_MAX (UINT64_MAX / 10 - 1)

/* NULL: more digits than any number needs. */
static const char *read_digits(const char *at, uint64_t *value, uint64_t *scale)
{
	for (; *at >= '0' && *at <= '9'; at++) {
		if (*value > DIGITS_MAX || *scale > DIGITS_MAX)
			return NULL;
		*value = 10 * *value + (uint64_t)(*at - '0');
		*scale *= 10;
	}
	return at;
}

bool scaled_parse(const char *text, const struct scale *scales, size_t n, uint64_t max,
		  uint64_t *out)
{
	uint64_t value = 0, digits = 1, scale = 1;
	const char *at = read_digits(text, &value, &digits);

	if (!at || at == text)
		return false;
	if (*at == '.') {
		const char *fraction = at + 1;
		at = read_digits(fraction, &value, &scale);
		if (!at || at == fraction)
			return false;
	}
	for (size_t i = 0; i < n; i++) {
		if (strcmp(at, scales[i].unit) != 0)
			continue;
		unsigned __int128 all = (unsigned __int128)value * scales[i].factor / scale;
		if (all > max)
			return false;
		*out = (uint64_t)all;
		return true;
	}
	return false;
}
