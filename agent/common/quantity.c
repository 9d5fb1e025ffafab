#include "common/quantity.h"

#include "common/scaled.h"

#include "weir/base.h"

#define MIN (2ull << 20)
#define MAX (1ull << 50)

static const struct scale units[] = {
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

bool quantity_parse(const char *text, uint64_t *bytes)
{
	uint64_t value;

	if (!scaled_parse(text, units, countof(units), MAX, &value) || value < MIN)
		return false;
	*bytes = value;
	return true;
}
