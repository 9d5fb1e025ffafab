/* Comparison of pictures on the device. */
#pragma once

#include "images.h"

namespace images
{

#define IMAGE_WORDS (IMAGE_BYTES / 4 / 32) /* of a picture, for each lane of a warp */

static __device__ unsigned difference(unsigned a, unsigned b)
{
	return __dp4a(a, a, __dp4a(b, b, 0u)) - 2 * __dp4a(a, b, 0u);
}

static __device__ unsigned warp_sum(unsigned value)
{
	for (unsigned step = 16; step; step /= 2)
		value += __shfl_xor_sync(0xffffffffu, value, step);
	return value;
}

/* Compares @queries with @n pictures, whose numbers begin at @first. A warp takes a picture at a time;
 * its lane q keeps the best match of query q. @best is in memory that all blocks may use. */
static __device__ void compare(const uint8_t *queries, unsigned queries_n, const uint8_t *pictures, unsigned n,
			       unsigned first, image_match *best)
{
	unsigned lane = threadIdx.x % 32, warps = blockDim.x / 32;
	const unsigned *asked = reinterpret_cast<const unsigned *>(queries);
	image_match mine = IMAGE_NONE;

	for (unsigned i = threadIdx.x / 32; i < n; i += warps) {
		const unsigned *words = reinterpret_cast<const unsigned *>(pictures + size_t(i) * IMAGE_BYTES);
		unsigned picture[IMAGE_WORDS];

		for (unsigned k = 0; k < IMAGE_WORDS; k++)
			picture[k] = words[k * 32 + lane];
		for (unsigned q = 0; q < queries_n; q++) {
			const unsigned *query = asked + q * (IMAGE_BYTES / 4);
			unsigned sum = 0;

			for (unsigned k = 0; k < IMAGE_WORDS; k++)
				sum += difference(picture[k], query[k * 32 + lane]);
			sum = warp_sum(sum);
			image_match match = image_match(sum) << 32 | (first + i);
			if (lane == q && match < mine)
				mine = match;
		}
	}
	if (lane < queries_n)
		atomicMin(&best[lane], mine);
}

}
