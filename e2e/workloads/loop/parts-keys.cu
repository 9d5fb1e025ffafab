/* Hybrid sort in parts. */
#include "../papers/buckets.cuh"
#include "parts.cuh"

PORT(bucket_count, BUCKET_PASS, SM_THREADS, KEYS_CHUNK,
     (const float *keys, unsigned *counts, unsigned *slots, unsigned keys_n, unsigned buckets),
     bucket_count_of(n, keys, counts, slots, keys_n, buckets))

PORT(bucket_scatter, BUCKET_PASS, SM_THREADS, KEYS_CHUNK,
     (const float *keys, const unsigned *starts, const unsigned *slots, float *out, unsigned keys_n,
      unsigned buckets),
     bucket_scatter_of(n, keys, starts, slots, out, keys_n, buckets))

static __device__ void bucket_part(unsigned bucket, float *keys, const unsigned *starts, const unsigned *counts)
{
	extern __shared__ float memory[];

	bucket_merge_of(bucket, memory, keys, starts, counts);
}

PORT(bucket_merge, BUCKET_THREADS, SM_THREADS, 1,
     (float *keys, const unsigned *starts, const unsigned *counts),
     bucket_part(n, keys, starts, counts))
