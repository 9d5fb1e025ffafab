#include "scheduler/gpu/spatial.h"

void spatial_add(struct spatial_look *look, uint8_t level, bool says_whole, bool yields)
{
	look->silent |= (uint8_t)(!says_whole << level);
	look->yields |= (uint8_t)(yields << level);
}

bool spatial_allows(const struct spatial_look *look, uint8_t level)
{
	uint8_t above = (uint8_t)(0xfe << level);

	return !(look->silent & above) && (look->yields & above);
}
