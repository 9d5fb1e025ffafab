/* Suffix matching in parts. */
#include "../papers/suffix.cuh"
#include "parts.cuh"

static __device__ void suffix_part(const suffix_work &work, const parts &p, unsigned n)
{
	unsigned from = n % p.segments * SUFFIX_SEGMENT;

	for (unsigned i = 0; i < SUFFIX_SEGMENT; i++)
		suffix_matches(work, n / p.segments, from + i);
}

PORT(suffix_match, SUFFIX_THREADS, SUFFIX_SM_THREADS, SUFFIX_CHUNK,
     (const unsigned char *text, const unsigned *array, unsigned text_n, const unsigned char *queries,
      unsigned *results, unsigned count),
     suffix_part({text, array, text_n, queries, results, count}, p, n))
