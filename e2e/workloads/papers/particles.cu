/* Particles: Lennard-Jones forces from lists of neighbours (SHOC's MD), forces within and between
 * boxes (Rodinia's LavaMD), and a particle filter that tracks an object in an image (Rodinia). */
#include "boxes.cuh"

/* The neighbours of atom i are list[k * atoms + i], so that threads read beside each other. */
extern "C" __global__ void md_forces(const float4 *position, const unsigned *list, float4 *force,
				     unsigned atoms, float cut_square)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
	float fx = 0, fy = 0, fz = 0, energy = 0;

	if (i >= atoms)
		return;
	float4 here = position[i];
	for (unsigned k = 0; k < MD_NEIGHBOURS; k++) {
		float4 there = position[list[k * atoms + i]];
		float x = here.x - there.x, y = here.y - there.y, z = here.z - there.z;
		float square = x * x + y * y + z * z;

		if (square < cut_square && square > 0) {
			float r2 = 1.0f / square, r6 = r2 * r2 * r2;
			float f = r2 * r6 * (48.0f * r6 - 24.0f);

			fx += x * f;
			fy += y * f;
			fz += z * f;
			energy += 4.0f * r6 * (r6 - 1.0f);
		}
	}
	force[i] = make_float4(fx, fy, fz, energy);
}

/* A block for each box. */
extern "C" __global__ void box_forces(const float4 *particles, float4 *force, float alpha)
{
	unsigned box = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
	float4 mine = particles[box * BOX_PARTICLES + threadIdx.x], sum = make_float4(0, 0, 0, 0);

	for (int around = 0; around < BOX_AROUND; around++) {
		int other = box_neighbour(blockIdx, gridDim, around);

		if (other >= 0)
			box_add(particles + other * BOX_PARTICLES, alpha, mine, sum);
	}
	force[box * BOX_PARTICLES + threadIdx.x] = sum;
}

/* Moves each particle at random and weighs it: how much the image around it looks like the object.
 * Weights are whole numbers, so that their sums do not depend on an order. */
extern "C" __global__ void filter_weigh(float2 *particles, unsigned *seeds, unsigned *weights,
					const unsigned char *image, unsigned n, int side, int frame)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i >= n)
		return;
	float2 at = particles[i];
	seeds[i] = arith_filter_move(&at.x, &at.y, seeds[i], side);
	particles[i] = at;
	weights[i] = arith_filter_weight(image + (size_t)frame * side * side, at.x, at.y, side);
}

/* sums[i] = weights[0] + .. + weights[i]; one block of 32 to 1024 threads. */
extern "C" __global__ void filter_sum(const unsigned *weights, unsigned long long *sums, unsigned n)
{
	__shared__ unsigned long long warps[32];
	unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
	unsigned long long before = 0;

	for (unsigned begin = 0; begin < n; begin += blockDim.x) {
		unsigned i = begin + threadIdx.x;
		unsigned long long sum = i < n ? weights[i] : 0;

		for (unsigned step = 1; step < 32; step *= 2) {
			unsigned long long left = __shfl_up_sync(0xffffffffu, sum, step);

			if (lane >= step)
				sum += left;
		}
		if (lane == 31)
			warps[warp] = sum;
		__syncthreads();
		for (unsigned w = 0; w < warp; w++)
			sum += warps[w];
		if (i < n)
			sums[i] = before + sum;
		for (unsigned w = 0; w < blockDim.x / 32; w++)
			before += warps[w];
		__syncthreads();
	}
}

/* New particles at the places of old ones, more often of heavy ones: systematic resampling. */
extern "C" __global__ void filter_resample(const float2 *particles, const unsigned long long *sums,
					   float2 *out, unsigned n)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x, low = 0, high = n - 1;

	if (i >= n)
		return;
	unsigned long long mark = sums[n - 1] / n * i;
	while (low < high) {
		unsigned middle = (low + high) / 2;

		if (sums[middle] > mark)
			high = middle;
		else
			low = middle + 1;
	}
	out[i] = particles[low];
}

/* Where the object is: the sum of all places, in 256ths of a pixel. @sum begins as 0. */
extern "C" __global__ void filter_estimate(const float2 *particles, unsigned long long *sum, unsigned n)
{
	__shared__ unsigned long long x, y;
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	if (threadIdx.x == 0)
		x = y = 0;
	__syncthreads();
	if (i < n) {
		atomicAdd(&x, (unsigned long long)(particles[i].x * 256));
		atomicAdd(&y, (unsigned long long)(particles[i].y * 256));
	}
	__syncthreads();
	if (threadIdx.x == 0) {
		atomicAdd(&sum[0], x);
		atomicAdd(&sum[1], y);
	}
}
