/* What dense.cu and its host share. */
#pragma once

#define DENSE_SIDE 16 /* of a tile; also the hidden nodes of the net */

#define NET_RATE     0.3f
#define NET_MOMENTUM 0.3f
