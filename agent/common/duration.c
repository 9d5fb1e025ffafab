#include "common/duration.h"

#include "common/scaled.h"

#include "weir/base.h"

static const struct scale units[] = {
	{"ns", 1},         {"us", 1000},       {"ms", 1000000},
	{"s", 1000000000}, {"m", 60000000000}, {"h", 3600000000000},
};

bool duration_parse(const char *text, uint64_t *out)
{
	return scaled_parse(text, units, countof(units), DURATION_MAX, out);
}
