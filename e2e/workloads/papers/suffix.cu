/* Longest matches of queries in a text (Rodinia's MUMmerGPU). */
#include "suffix.cuh"

extern "C" __global__ void suffix_match(const unsigned char *text, const unsigned *array, unsigned n,
					const unsigned char *queries, unsigned *results, unsigned count)
{
	const suffix_work work = {text, array, n, queries, results, count};

	for (unsigned from = 0; from < SUFFIX_QUERY; from++)
		suffix_matches(work, blockIdx.x, from);
}
