#include "duration.h"

#include <string.h>

#include "weir/base.h"

static const struct {
	const char *name;
	uint64_t ns;
} units[] = {
	{"ns", 1},         {"us", 1000},       {"ms", 1000000},
	{"s", 1000000000}, {"m", 60000000000}, {"h", 3600000000000},
};

static const char *read_digits(const char *at, uint64_t *value, uint64_t *scale)
{
	for (; *at >= '0' && *at <= '9'; at++) {
		if (*value > DURATION_MAX / 10)
			return NULL;
		*value = 10 * *value + (uint64_t)(*at - '0');
		*scale *= 10;
	}
	return at;
}

bool duration_parse(const char *text, uint64_t *out)
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
	for (size_t i = 0; i < countof(units); i++) {
		if (strcmp(at, units[i].name) != 0)
			continue;
		unsigned __int128 ns = (unsigned __int128)value * units[i].ns / scale;
		if (ns > DURATION_MAX)
			return false;
		*out = (uint64_t)ns;
		return true;
	}
	return false;
}
