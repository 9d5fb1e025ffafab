/* Comparison of pictures on the device. */
#pragma once

#include "images.h"

namespace images
{

#define IMAGE_WORDS (IMAGE_BYTES / 4 / 32) /* of a picture, for each lane of a warp */

/* The sums of four values over the warp: lane i gets that of values[i / 8]. Half of what a lane has is of
 * use to others, so a sum takes a third of the exchanges that it takes by itself. */
static __device__ unsigned warp_sums(const unsigned (&values)[IMAGE_TILE])
{
	bool upper = threadIdx.x & 16, odd = threadIdx.x & 8;
	unsigned even_sum = (upper ? values[2] : values[0]) +
			    __shfl_xor_sync(0xffffffffu, upper ? values[0] : values[2], 16);
	unsigned odd_sum = (upper ? values[3] : values[1]) +
			   __shfl_xor_sync(0xffffffffu, upper ? values[1] : values[3], 16);
	unsigned sum = (odd ? odd_sum : even_sum) + __shfl_xor_sync(0xffffffffu, odd ? even_sum : odd_sum, 8);

	for (unsigned step = 4; step; step /= 2)
		sum += __shfl_xor_sync(0xffffffffu, sum, step);
	return sum;
}

/* The least one of the lanes whose numbers are equal, modulo 8. */
static __device__ image_match warp_best(image_match mine)
{
	for (unsigned step = 16; step >= 8; step /= 2)
		mine = min(mine, __shfl_xor_sync(0xffffffffu, mine, step));
	return mine;
}

/* Compares @queries with @n pictures, whose numbers begin at @first. A warp takes IMAGE_TILE pictures
 * at a time, so that a word of a query is read once for all of them; behind the last picture it takes
 * that again. Its lane i keeps the best of queries i % 8 and i % 8 + 8 for picture i / 8 of each tile.
 * @best is in memory that all blocks may use.
 *
 * The sum of (a - b)^2 is that of a^2, which is the same for all queries, and of b^2 - 2ab. */
static __device__ void compare(const uint8_t *queries, unsigned queries_n, const uint8_t *pictures, unsigned n,
			       unsigned first, image_match *best)
{
	unsigned lane = threadIdx.x % 32, step = blockDim.x / 32 * IMAGE_TILE;
	const unsigned *asked = reinterpret_cast<const unsigned *>(queries);
	image_match low = IMAGE_NONE, high = IMAGE_NONE;

	for (unsigned at = threadIdx.x / 32 * IMAGE_TILE; at < n; at += step) {
		unsigned tile[IMAGE_TILE][IMAGE_WORDS], squares[IMAGE_TILE] = {};

		for (unsigned i = 0; i < IMAGE_TILE; i++) {
			const unsigned *words = reinterpret_cast<const unsigned *>(
				pictures + size_t(min(at + i, n - 1)) * IMAGE_BYTES);

			for (unsigned k = 0; k < IMAGE_WORDS; k++) {
				tile[i][k] = words[k * 32 + lane];
				squares[i] = __dp4a(tile[i][k], tile[i][k], squares[i]);
			}
		}
		unsigned own = warp_sums(squares);
		for (unsigned q = 0; q < queries_n; q++) {
			const unsigned *query = asked + q * (IMAGE_BYTES / 4);
			unsigned square = 0, products[IMAGE_TILE] = {}, terms[IMAGE_TILE];

			for (unsigned k = 0; k < IMAGE_WORDS; k++) {
				unsigned word = query[k * 32 + lane];

				square = __dp4a(word, word, square);
				for (unsigned i = 0; i < IMAGE_TILE; i++)
					products[i] = __dp4a(tile[i][k], word, products[i]);
			}
			for (unsigned i = 0; i < IMAGE_TILE; i++)
				terms[i] = square - 2 * products[i];
			image_match match = image_match(own + warp_sums(terms)) << 32 |
					    (first + min(at + lane / 8, n - 1));
			if (q == lane % 8)
				low = min(low, match);
			else if (q == lane % 8 + 8)
				high = min(high, match);
		}
	}
	low = warp_best(low);
	high = warp_best(high);
	if (lane < queries_n)
		atomicMin(&best[lane], lane < 8 ? low : high);
}

}
