/* What stencil.cu and its host share. */
#pragma once

#include "arithmetic.h"

#define CUBE_X 32
#define CUBE_Y 4

/* From pairs of neighbours. */
BOTH float stencil_value(float here, float up_down, float north_south, float west_east)
{
	return 0.4f * here + 0.1f * (up_down + north_south + west_east);
}
