/* Ports of compute kernels to event loops: LavaMD, TPACF, hybrid sort, suffix matching. Each is the
 * work of the original kernel (../papers), in parts. */
#include "../papers/angles.cuh"
#include "../papers/boxes.cuh"
#include "../papers/buckets.cuh"
#include "../papers/suffix.cuh"
#include "parts.cuh"

/* Not inlined: so its inner loop is that of the original kernel. Beside the loop's own values, one more
 * instruction of 101 is needed. */
static __device__ __noinline__ void box_part(const float4 *particles, float4 *force, float alpha, const parts &p,
					     unsigned n)
{
	uint3 at = {n % p.grid[0], n / p.grid[0] % p.grid[1], n / p.grid[0] / p.grid[1]};

	box_forces_at(particles, force, alpha, at, dim3(p.grid[0], p.grid[1], p.grid[2]));
}

PORT(box_forces, BOX_THREADS, 1, (const float4 *particles, float4 *force, float alpha), box_part(particles, force, alpha, p, n))

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

PORT(angle_pairs, ANGLE_THREADS, 1,
     (const float4 *a, const float4 *b, unsigned na, unsigned nb, const float *limits,
      unsigned long long *counts, int same),
     angle_part({a, b, na, nb, limits, counts, same}, p, n))

PORT(bucket_count, BUCKET_PASS, KEYS_CHUNK, (const float *keys, unsigned *counts, unsigned *slots, unsigned keys_n, unsigned buckets),
     bucket_count_of(n, keys, counts, slots, keys_n, buckets))

PORT(bucket_scatter, BUCKET_PASS, KEYS_CHUNK,
     (const float *keys, const unsigned *starts, const unsigned *slots, float *out, unsigned keys_n,
      unsigned buckets),
     bucket_scatter_of(n, keys, starts, slots, out, keys_n, buckets))

static __device__ void bucket_part(unsigned bucket, float *keys, const unsigned *starts, const unsigned *counts)
{
	extern __shared__ float memory[];

	bucket_merge_of(bucket, memory, keys, starts, counts);
}

PORT(bucket_merge, BUCKET_THREADS, 1, (float *keys, const unsigned *starts, const unsigned *counts), bucket_part(n, keys, starts, counts))

static __device__ void suffix_part(const suffix_work &work, const parts &p, unsigned n)
{
	unsigned from = n % p.segments * SUFFIX_SEGMENT;

	for (unsigned i = 0; i < SUFFIX_SEGMENT; i++)
		suffix_matches(work, n / p.segments, from + i);
}

PORT(suffix_match, SUFFIX_THREADS, SUFFIX_CHUNK,
     (const unsigned char *text, const unsigned *array, unsigned text_n, const unsigned char *queries,
      unsigned *results, unsigned count),
     suffix_part({text, array, text_n, queries, results, count}, p, n))
