/* Counting: the histogram of bytes (NVIDIA's samples) and the two-point angular correlation of points
 * on a sphere (Parboil's TPACF). */
#include "angles.cuh"

/* A histogram for each warp, in shared memory; their sums are the block's part. */
extern "C" __global__ void histogram_256(const unsigned *words, unsigned *parts, unsigned n)
{
	__shared__ unsigned counts[HISTOGRAM_WARPS][HISTOGRAM_BINS];
	unsigned *mine = counts[threadIdx.x / 32];

	for (unsigned i = threadIdx.x; i < HISTOGRAM_WARPS * HISTOGRAM_BINS; i += HISTOGRAM_THREADS)
		counts[0][i] = 0;
	__syncthreads();
	for (unsigned i = blockIdx.x * HISTOGRAM_THREADS + threadIdx.x; i < n;
	     i += gridDim.x * HISTOGRAM_THREADS) {
		unsigned word = words[i];

		for (unsigned shift = 0; shift < 32; shift += 8)
			atomicAdd(&mine[word >> shift & 255], 1);
	}
	__syncthreads();
	for (unsigned bin = threadIdx.x; bin < HISTOGRAM_BINS; bin += HISTOGRAM_THREADS) {
		unsigned sum = 0;

		for (unsigned w = 0; w < HISTOGRAM_WARPS; w++)
			sum += counts[w][bin];
		parts[blockIdx.x * HISTOGRAM_BINS + bin] = sum;
	}
}

/* A block for each bin. */
extern "C" __global__ void histogram_merge(const unsigned *parts, unsigned *histogram, unsigned count)
{
	__shared__ unsigned sums[MERGE_THREADS];
	unsigned sum = 0;

	for (unsigned i = threadIdx.x; i < count; i += MERGE_THREADS)
		sum += parts[i * HISTOGRAM_BINS + blockIdx.x];
	sums[threadIdx.x] = sum;
	for (unsigned step = MERGE_THREADS / 2; step; step /= 2) {
		__syncthreads();
		if (threadIdx.x < step)
			sums[threadIdx.x] += sums[threadIdx.x + step];
	}
	if (threadIdx.x == 0)
		histogram[blockIdx.x] = sums[0];
}

extern "C" __global__ void angle_pairs(const float4 *a, const float4 *b, unsigned na, unsigned nb,
				       const float *limits, unsigned long long *counts, int same)
{
	const angle_work work = {a, b, na, nb, limits, counts, same};

	angle_begin();
	angle_segment(work, blockIdx.x, blockIdx.y);
	angle_end(work);
}
