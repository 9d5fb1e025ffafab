/* Prefix sums and sorting: scan and radix sort of pairs (SHOC), hybrid sort: buckets, then a merge
 * sort of each (Rodinia). */
#include "buckets.cuh"

/* The sum of the values of the threads before this one; @total: of all of the block's. */
static __device__ unsigned sum_before(unsigned value, unsigned *total)
{
	__shared__ unsigned warps[32];
	unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, sum = value;

	for (unsigned step = 1; step < 32; step *= 2) {
		unsigned left = __shfl_up_sync(0xffffffffu, sum, step);

		if (lane >= step)
			sum += left;
	}
	if (lane == 31)
		warps[warp] = sum;
	__syncthreads();
	*total = 0;
	for (unsigned w = 0; w < blockDim.x / 32; w++) {
		if (w == warp)
			sum += *total;
		*total += warps[w];
	}
	__syncthreads();
	return sum - value;
}

/* out[i] = the sum of the values before i in its tile; @sums: of each tile. */
extern "C" __global__ void scan_tiles(const unsigned *in, unsigned *out, unsigned *sums, unsigned n)
{
	unsigned begin = blockIdx.x * SCAN_TILE + threadIdx.x * SCAN_EACH;
	unsigned values[SCAN_EACH], mine = 0, total;

	for (unsigned k = 0; k < SCAN_EACH; k++) {
		values[k] = begin + k < n ? in[begin + k] : 0;
		mine += values[k];
	}
	unsigned sum = sum_before(mine, &total);
	for (unsigned k = 0; k < SCAN_EACH; k++) {
		if (begin + k < n)
			out[begin + k] = sum;
		sum += values[k];
	}
	if (threadIdx.x == 0)
		sums[blockIdx.x] = total;
}

extern "C" __global__ void scan_add(unsigned *out, const unsigned *before, unsigned n)
{
	unsigned begin = blockIdx.x * SCAN_TILE, end = min(begin + SCAN_TILE, n);

	for (unsigned i = begin + threadIdx.x; i < end; i += SCAN_THREADS)
		out[i] += before[blockIdx.x];
}

/* counts[digit * tiles + tile]: how many keys of the tile have this digit. */
extern "C" __global__ void radix_count(const uint2 *pairs, unsigned *counts, unsigned n, unsigned shift)
{
	__shared__ unsigned digits[RADIX_DIGITS];
	unsigned begin = blockIdx.x * RADIX_TILE, end = min(begin + RADIX_TILE, n);

	if (threadIdx.x < RADIX_DIGITS)
		digits[threadIdx.x] = 0;
	__syncthreads();
	for (unsigned i = begin + threadIdx.x; i < end; i += RADIX_THREADS)
		atomicAdd(&digits[pairs[i].x >> shift & (RADIX_DIGITS - 1)], 1);
	__syncthreads();
	if (threadIdx.x < RADIX_DIGITS)
		counts[threadIdx.x * gridDim.x + blockIdx.x] = digits[threadIdx.x];
}

/* Pairs go where @starts, the sums of the counts, say; equal digits keep their order. */
extern "C" __global__ void radix_scatter(const uint2 *pairs, const unsigned *starts, uint2 *out,
					 unsigned n, unsigned shift)
{
	__shared__ unsigned next[RADIX_DIGITS], counts[RADIX_THREADS / 32][RADIX_DIGITS];
	unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;

	if (threadIdx.x < RADIX_DIGITS)
		next[threadIdx.x] = starts[threadIdx.x * gridDim.x + blockIdx.x];
	for (unsigned round = 0; round < RADIX_TILE; round += RADIX_THREADS) {
		unsigned i = blockIdx.x * RADIX_TILE + round + threadIdx.x;
		uint2 pair = i < n ? pairs[i] : make_uint2(0, 0);
		/* Those beyond the end have a digit of their own. */
		unsigned digit = i < n ? pair.x >> shift & (RADIX_DIGITS - 1) : RADIX_DIGITS;
		unsigned same = __match_any_sync(0xffffffffu, digit);
		unsigned rank = __popc(same & ((1u << lane) - 1));

		if (lane < RADIX_DIGITS)
			counts[warp][lane] = 0;
		__syncwarp();
		if (rank == 0 && i < n)
			counts[warp][digit] = __popc(same);
		__syncthreads();
		if (i < n) {
			unsigned at = next[digit] + rank;

			for (unsigned w = 0; w < warp; w++)
				at += counts[w][digit];
			out[at] = pair;
		}
		__syncthreads();
		if (threadIdx.x < RADIX_DIGITS)
			for (unsigned w = 0; w < RADIX_THREADS / 32; w++)
				next[threadIdx.x] += counts[w][threadIdx.x];
		__syncthreads();
	}
}

extern "C" __global__ void bucket_count(const float *keys, unsigned *counts, unsigned *slots, unsigned n,
					unsigned buckets)
{
	bucket_count_of(blockIdx.x, keys, counts, slots, n, buckets);
}

extern "C" __global__ void bucket_scatter(const float *keys, const unsigned *starts,
					  const unsigned *slots, float *out, unsigned n, unsigned buckets)
{
	bucket_scatter_of(blockIdx.x, keys, starts, slots, out, n, buckets);
}

/* With dynamic shared memory for 2 * BUCKET_MOST keys. */
extern "C" __global__ void bucket_merge(float *keys, const unsigned *starts, const unsigned *counts)
{
	extern __shared__ float memory[];

	bucket_merge_of(blockIdx.x, memory, keys, starts, counts);
}
