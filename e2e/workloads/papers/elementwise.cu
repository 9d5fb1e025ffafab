/* Kernels in which each thread computes its own elements and there is nothing between threads:
 * Triad (SHOC), nearest neighbour (Rodinia), Black-Scholes (NVIDIA's samples). */
#include "arithmetic.h"

extern "C" __global__ void triad(const float *a, const float *b, float *c, float factor, unsigned n)
{
	for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		c[i] = a[i] + factor * b[i];
}

/* How far each place is from @latitude, @longitude. */
extern "C" __global__ void nearest_distance(const float2 *places, float *distances, unsigned n,
					    float latitude, float longitude)
{
	unsigned i = blockIdx.y * gridDim.x * blockDim.x + blockIdx.x * blockDim.x + threadIdx.x;

	if (i >= n)
		return;
	float x = places[i].x - latitude, y = places[i].y - longitude;
	distances[i] = sqrtf(x * x + y * y);
}

/* The smallest distance and, of those that have it, the first place: floats that are not negative
 * are in the order of their bits. @best begins as all ones. */
extern "C" __global__ void nearest_pick(const float *distances, unsigned n, unsigned long long *best)
{
	__shared__ unsigned long long block_best;
	unsigned long long mine = ~0ull;

	if (threadIdx.x == 0)
		block_best = ~0ull;
	__syncthreads();
	for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
		unsigned long long key = (unsigned long long)__float_as_uint(distances[i]) << 32 | i;

		mine = min(mine, key);
	}
	atomicMin(&block_best, mine);
	__syncthreads();
	if (threadIdx.x == 0)
		atomicMin(best, block_best);
}

/* European options. */
extern "C" __global__ void black_scholes(float *call, float *put, const float *price,
					 const float *strike, const float *years, float rate,
					 float volatility, unsigned n)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		arith_black_scholes(&call[i], &put[i], price[i], strike[i], years[i], rate, volatility);
}
