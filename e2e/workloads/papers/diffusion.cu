/* Diffusion on a plane: speckles are removed from a picture (Rodinia's SRAD, with and without tiles in
 * shared memory), and a chip gets warm (hotspot). */
#include "diffusion.h"

/* A picture of values from 0 to 255 becomes one of values from 1 to e. */
extern "C" __global__ void speckle_extract(const float *in, float *out, unsigned n)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		out[i] = arith_exp(in[i] / 255);
}

/* Adds to @sums. */
extern "C" __global__ void speckle_sums(const float *picture, unsigned long long *sums, unsigned n)
{
	__shared__ unsigned long long parts[2][256];
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
	float value = i < n ? picture[i] : 0;

	parts[0][threadIdx.x] = (unsigned long long)(value * DIFFUSION_SCALE);
	parts[1][threadIdx.x] = (unsigned long long)(value * value * DIFFUSION_SCALE);
	__syncthreads();
	for (unsigned half = blockDim.x / 2; half; half /= 2) {
		if (threadIdx.x < half) {
			parts[0][threadIdx.x] += parts[0][threadIdx.x + half];
			parts[1][threadIdx.x] += parts[1][threadIdx.x + half];
		}
		__syncthreads();
	}
	if (threadIdx.x < 2)
		atomicAdd(&sums[threadIdx.x], parts[threadIdx.x][0]);
}

static __device__ struct slopes slopes_at(const float *picture, int x, int y, int side)
{
	float value = picture[y * side + x];
	struct slopes s = {picture[max(y - 1, 0) * side + x] - value, picture[min(y + 1, side - 1) * side + x] - value,
			   picture[y * side + max(x - 1, 0)] - value, picture[y * side + min(x + 1, side - 1)] - value};

	return s;
}

extern "C" __global__ void speckle_coefficients(const float *picture, const unsigned long long *sums,
						float *coefficients, int side)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i >= side * side)
		return;
	float noise = diffusion_noise(sums[0], sums[1], side * side);

	coefficients[i] = diffusion_coefficient(picture[i], slopes_at(picture, i % side, i / side, side), noise);
}

extern "C" __global__ void speckle_update(const float *picture, const float *coefficients, float *out, int side)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x, x = i % side, y = i / side;

	if (i >= side * side)
		return;
	out[i] = diffusion_step(picture[i], slopes_at(picture, x, y, side), coefficients[i],
				coefficients[min(y + 1, side - 1) * side + x],
				coefficients[y * side + min(x + 1, side - 1)]);
}

extern "C" __global__ void speckle_compress(const float *in, float *out, unsigned n)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		out[i] = arith_log(in[i]) * 255;
}

/* As speckle_coefficients(), with a tile and its rim in shared memory. */
extern "C" __global__ void speckle_tile(const float *picture, const unsigned long long *sums, float *coefficients,
					int side)
{
	__shared__ float tile[DIFFUSION_SIDE + 2][DIFFUSION_SIDE + 2];
	int left = blockIdx.x * DIFFUSION_SIDE - 1, top = blockIdx.y * DIFFUSION_SIDE - 1;
	int x = left + 1 + threadIdx.x, y = top + 1 + threadIdx.y;

	for (int row = threadIdx.y; row < DIFFUSION_SIDE + 2; row += DIFFUSION_SIDE)
		for (int column = threadIdx.x; column < DIFFUSION_SIDE + 2; column += DIFFUSION_SIDE)
			tile[row][column] = picture[min(max(top + row, 0), side - 1) * side +
						    min(max(left + column, 0), side - 1)];
	__syncthreads();
	if (x >= side || y >= side)
		return;
	const float *here = &tile[threadIdx.y + 1][threadIdx.x + 1];
	struct slopes s = {here[-(DIFFUSION_SIDE + 2)] - here[0], here[DIFFUSION_SIDE + 2] - here[0],
			   here[-1] - here[0], here[1] - here[0]};

	coefficients[y * side + x] = diffusion_coefficient(here[0], s, diffusion_noise(sums[0], sums[1], side * side));
}

/* @steps of heat in one launch. A block computes the places that it can know: from each side @steps
 * of them are lost. */
extern "C" __global__ void heat(const float *power, const float *in, float *out, int side, int steps)
{
	__shared__ float now[DIFFUSION_SIDE][DIFFUSION_SIDE], next[DIFFUSION_SIDE][DIFFUSION_SIDE];
	int wide = DIFFUSION_SIDE - 2 * steps, tx = threadIdx.x, ty = threadIdx.y;
	int x = blockIdx.x * wide - steps + tx, y = blockIdx.y * wide - steps + ty;
	bool inside = x >= 0 && x < side && y >= 0 && y < side;
	float warms = inside ? power[y * side + x] : 0;
	/* Beyond the chip's rim it is as warm as at the rim. */
	int north = y > 0 ? max(ty - 1, 0) : ty, south = y < side - 1 ? min(ty + 1, DIFFUSION_SIDE - 1) : ty;
	int west = x > 0 ? max(tx - 1, 0) : tx, east = x < side - 1 ? min(tx + 1, DIFFUSION_SIDE - 1) : tx;

	now[ty][tx] = inside ? in[y * side + x] : 0;
	__syncthreads();
	for (int step = 0; step < steps; step++) {
		next[ty][tx] = heat_step(now[ty][tx], now[north][tx], now[south][tx], now[ty][west], now[ty][east],
					 warms);
		__syncthreads();
		now[ty][tx] = next[ty][tx];
		__syncthreads();
	}
	if (inside && tx >= steps && tx < steps + wide && ty >= steps && ty < steps + wide)
		out[y * side + x] = now[ty][tx];
}
