/* What grid.cu and its host share. */
#pragma once

#define PATH_THREADS 256
#define PATH_ROWS    20 /* that a launch goes down at most */

#define STENCIL_X 32
#define STENCIL_Y 8

#define FILTER_RADIUS 8
#define FILTER_TAPS   (2 * FILTER_RADIUS + 1)
#define ROW_X         16 /* a block's threads; each computes STEPS pixels in the filter's direction */
#define ROW_Y         4
#define COLUMN_X      16
#define COLUMN_Y      8
#define STEPS         8
