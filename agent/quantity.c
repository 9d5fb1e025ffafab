#include "quantity.h"

#include <string.h>

#include "weir/base.h"

#define MIN (2ull << 20)
#define MAX (1ull << 50)

static const struct {
	const char *name;
	uint64_t bytes;
} units[] = {
	{"", 1},
	{"k", 1000},
	{"M", 1000000},
	{"G", 1000000000},
	{"T", 1000000000000},
	{"Ki", 1ull << 10},
	{"Mi", 1ull << 20},
	{"Gi", 1ull << 30},
	{"Ti", 1ull << 40},
	{"Pi", 1ull << 50},
};

/* NULL: more digits than any amount has. */
static const char *read_digits(const char *at, uint64_t *value, uint64_t *scale)
{
	for (; *at >= '0' && *at <= '9'; at++) {
		if (*value > MAX || *scale > MAX)
			return NULL;
		*value = 10 * *value + (uint64_t)(*at - '0');
		*scale *= 10;
	}
	return at;
}

bool quantity_parse(const char *text, uint64_t *bytes)
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
		unsigned __int128 all = (unsigned __int128)value * units[i].bytes / scale;
		if (all < MIN || all > MAX)
			return false;
		*bytes = (uint64_t)all;
		return true;
	}
	return false;
}
