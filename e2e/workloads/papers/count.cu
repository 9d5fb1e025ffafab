/* Counting: the histogram of bytes (NVIDIA's samples) and the two-point angular correlation of points
 * on a sphere (Parboil's TPACF). */
#include "count.h"

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

/* The number of pairs of a point of @a and one of @b by the angle between them: bin k has cosines up
 * to limits[k], which fall, and above limits[k + 1]. @same: @a is @b, and each pair counts once. A
 * block compares ANGLE_THREADS points with all others. */
extern "C" __global__ void angle_pairs(const float4 *a, const float4 *b, unsigned na, unsigned nb,
				       const float *limits, unsigned long long *counts, int same)
{
	__shared__ unsigned bins[ANGLE_BINS];
	__shared__ float4 others[ANGLE_THREADS];
	unsigned i = blockIdx.x * ANGLE_THREADS + threadIdx.x;
	float4 mine = i < na ? a[i] : make_float4(0, 0, 0, 0);

	if (threadIdx.x < ANGLE_BINS)
		bins[threadIdx.x] = 0;
	for (unsigned begin = same ? blockIdx.x * ANGLE_THREADS : 0; begin < nb; begin += ANGLE_THREADS) {
		__syncthreads();
		if (begin + threadIdx.x < nb)
			others[threadIdx.x] = b[begin + threadIdx.x];
		__syncthreads();
		for (unsigned j = 0; j < ANGLE_THREADS && begin + j < nb && i < na; j++) {
			float cosine = mine.x * others[j].x + mine.y * others[j].y + mine.z * others[j].z;
			unsigned low = 0, high = ANGLE_BINS;

			if (same && begin + j <= i)
				continue;
			while (high - low > 1) {
				unsigned middle = (low + high) / 2;

				if (cosine <= limits[middle])
					low = middle;
				else
					high = middle;
			}
			atomicAdd(&bins[low], 1);
		}
	}
	__syncthreads();
	if (threadIdx.x < ANGLE_BINS)
		atomicAdd(&counts[threadIdx.x], (unsigned long long)bins[threadIdx.x]);
}
