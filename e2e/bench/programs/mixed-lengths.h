/* A benchmark of two kernels whose blocks last between 5 us and 5 ms on an H200. In mixed_rare, one
 * block in 4096 is the longest, and all others are the shortest. In mixed_tail, blocks of each
 * length take about the same time together, so there are many short ones. At the end of both grids
 * all blocks are short. */
#pragma once

#include "plan.h"

extern const struct benchmark mixed_lengths;
