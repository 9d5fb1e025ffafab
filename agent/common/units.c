#include "weir/units.h"

#include <errno.h>
#include <string.h>

#include "weir/base.h"

#define MEMORY_MIN (2ull << 20)
#define MEMORY_MAX (1ull << 50)
/* One digit more, times a factor, still fits 128 bits. */
#define DIGITS_MAX (UINT64_MAX / 10 - 1)

bool number_parse(const char *text, uint64_t min, uint64_t max, uint64_t *out)
{
	char *end;

	/* strtoull() also takes signs and spaces. */
	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	unsigned long long number = strtoull(text, &end, 10);
	if (*end || errno || number < min || number > max)
		return false;
	*out = number;
	return true;
}

struct unit {
	const char *name;
	uint64_t factor;
};

/* NULL: too many digits. */
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

static bool parse(const char *text, const struct unit *units, size_t n, uint64_t min, uint64_t max,
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
		if (strcmp(at, units[i].name) != 0)
			continue;
		unsigned __int128 all = (unsigned __int128)value * units[i].factor / scale;
		if (all < min || all > max)
			return false;
		*out = (uint64_t)all;
		return true;
	}
	return false;
}

bool duration_parse(const char *text, uint64_t min, uint64_t max, uint64_t *ns)
{
	static const struct unit units[] = {
		{"ns", 1},         {"us", 1000},       {"ms", 1000000},
		{"s", 1000000000}, {"m", 60000000000}, {"h", 3600000000000},
	};

	return parse(text, units, countof(units), min, max, ns);
}

bool memory_parse(const char *text, uint64_t *bytes)
{
	static const struct unit units[] = {
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

	return parse(text, units, countof(units), MEMORY_MIN, MEMORY_MAX, bytes);
}
