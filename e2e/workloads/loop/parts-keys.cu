/* Hybrid sort in parts, of one piece each. */
#include "../papers/buckets.cuh"
#include "parts.cuh"

/* NAME_split and NAME_loop, whose blocks draw @chunk parts at a time. @part: the work of part `n`. All
 * originals have 32 registers or fewer. A loop without a bound would have more, and fewer of its blocks
 * would fit on an SM. */
#define PORT(name, threads, chunk, parameters, part)                                  \
	SPLIT_PORT(name, parameters, part)                                            \
	extern "C" __global__ void __launch_bounds__(threads, SM_THREADS / (threads)) \
		name##_loop(weir::loop_args args, UNPACK parameters, parts p)         \
	{                                                                             \
		loop_over<chunk, nothing>(                                            \
			args, p, [=](weir::loop &, unsigned n, nothing &) { part; }, [] {}); \
	}

PORT(bucket_count, BUCKET_PASS, KEYS_CHUNK,
     (const float *keys, unsigned *counts, unsigned *slots, unsigned keys_n, unsigned buckets),
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

PORT(bucket_merge, BUCKET_THREADS, 1,
     (float *keys, const unsigned *starts, const unsigned *counts),
     bucket_part(n, keys, starts, counts))
