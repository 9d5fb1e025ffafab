/* Searches: breadth first through a graph, and for the key that has a given MD5 (SHOC). */
#include "md5.h"

/* Vertices at distance @level make their neighbours that nobody has seen (~0) be at the next one.
 * @found: how many those are. */
extern "C" __global__ void graph_level(const unsigned *first, const unsigned *edges, unsigned *distance,
				       unsigned vertices, unsigned level, unsigned *found)
{
	__shared__ unsigned block_found;
	unsigned v = blockIdx.x * blockDim.x + threadIdx.x;

	if (threadIdx.x == 0)
		block_found = 0;
	__syncthreads();
	if (v < vertices && distance[v] == level)
		for (unsigned e = first[v]; e < first[v + 1]; e++)
			if (distance[edges[e]] == ~0u && atomicCAS(&distance[edges[e]], ~0u, level + 1) == ~0u)
				atomicAdd(&block_found, 1);
	__syncthreads();
	if (threadIdx.x == 0 && block_found)
		atomicAdd(&found[level], block_found);
}

struct md5_result {
	unsigned index; /* of the key; ~0 */
	struct md5 digest;
	unsigned tried;
};

/* Every thread tries @each keys. */
extern "C" __global__ void md5_search(const struct md5 *wanted, unsigned keys, unsigned each,
				      struct md5_result *result)
{
	unsigned stride = gridDim.x * blockDim.x, tried = 0, words[16];

	for (unsigned k = 0; k < each; k++) {
		unsigned index = k * stride + blockIdx.x * blockDim.x + threadIdx.x;

		if (index >= keys)
			break;
		md5_key(words, index);
		struct md5 digest = md5_of(words);
		if (digest.word[0] == wanted->word[0] && digest.word[1] == wanted->word[1] &&
		    digest.word[2] == wanted->word[2] && digest.word[3] == wanted->word[3]) {
			result->index = index;
			result->digest = digest;
		}
		tried++;
	}
	for (unsigned step = 16; step; step /= 2)
		tried += __shfl_down_sync(0xffffffffu, tried, step);
	if (threadIdx.x % 32 == 0)
		atomicAdd(&result->tried, tried);
}
