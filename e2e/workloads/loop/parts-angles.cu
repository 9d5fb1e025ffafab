/* TPACF in parts. */
#include "../papers/angles.cuh"
#include "parts.cuh"

/* The counts in shared memory go to device memory at the end of each part, so that nothing has to be
 * saved when the kernel leaves. */
static __device__ void angle_part(const angle_work &work, const parts &p, unsigned n)
{
	unsigned block = n / p.segments, begin = n % p.segments * ANGLE_SEGMENT;
	unsigned end = min(begin + ANGLE_SEGMENT, work.nb);
	float4 mine = angle_point(work, block);

	angle_begin();
	for (begin = max(begin, angle_first(work, block)); begin < end; begin += ANGLE_THREADS)
		angle_tile(work, block, begin, mine);
	angle_end(work);
}

PORT(angle_pairs, ANGLE_THREADS, SM_THREADS, 1,
     (const float4 *a, const float4 *b, unsigned na, unsigned nb, const float *limits,
      unsigned long long *counts, int same),
     angle_part({a, b, na, nb, limits, counts, same}, p, n))
