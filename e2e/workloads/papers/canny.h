/* Shared by canny.cu and its host. */
#pragma once

#define CANNY_SIDE 16 /* of a block */

#define EDGE_NONE   0
#define EDGE_WEAK   1
#define EDGE_STRONG 2

#define WEAK_FROM   60
#define STRONG_FROM 160
