/* Kernels over rows and planes, with neighbours' values in shared memory: path finder (Rodinia), the
 * 9-point stencil (SHOC), separable convolution (NVIDIA's samples). */
#include "grid.h"

/* The cheapest way to each place of row @first + @rows - 1 from the costs @in of reaching the row
 * before @first, going straight down or diagonally. A block computes the places that it can know:
 * from the left and the right @rows of them are lost. */
extern "C" __global__ void path_find(const int *wall, const int *in, int *out, int columns, int first,
				     int rows)
{
	__shared__ int costs[2][PATH_THREADS];
	int wide = PATH_THREADS - 2 * rows, x = threadIdx.x;
	int column = blockIdx.x * wide - rows + x;
	bool inside = column >= 0 && column < columns;
	int now = 0;

	costs[0][x] = inside ? in[column] : 0x3fffffff;
	__syncthreads();
	for (int row = 0; row < rows; row++) {
		int best = costs[now][x];

		if (x > 0)
			best = min(best, costs[now][x - 1]);
		if (x < PATH_THREADS - 1)
			best = min(best, costs[now][x + 1]);
		costs[!now][x] = inside ? best + wall[(first + row) * columns + column] : 0x3fffffff;
		now = !now;
		__syncthreads();
	}
	if (inside && x >= rows && x < rows + wide)
		out[column] = costs[now][x];
}

/* One step; the rim stays as it is. */
extern "C" __global__ void stencil_9(const float *in, float *out, int width, int height, float centre,
				     float straight, float diagonal)
{
	__shared__ float tile[STENCIL_Y + 2][STENCIL_X + 2];
	int left = blockIdx.x * STENCIL_X - 1, top = blockIdx.y * STENCIL_Y - 1;
	int column = left + threadIdx.x + 1, row = top + threadIdx.y + 1;

	for (int y = threadIdx.y; y < STENCIL_Y + 2; y += STENCIL_Y)
		for (int x = threadIdx.x; x < STENCIL_X + 2; x += STENCIL_X) {
			int from_x = min(max(left + x, 0), width - 1);
			int from_y = min(max(top + y, 0), height - 1);

			tile[y][x] = in[from_y * width + from_x];
		}
	__syncthreads();
	if (column >= width || row >= height)
		return;
	const float *above = &tile[threadIdx.y][threadIdx.x], *here = &tile[threadIdx.y + 1][threadIdx.x];
	const float *below = &tile[threadIdx.y + 2][threadIdx.x];
	float value = here[1];

	if (column > 0 && column < width - 1 && row > 0 && row < height - 1)
		value = centre * here[1] + straight * (above[1] + here[0] + here[2] + below[1]) +
			diagonal * (above[0] + above[2] + below[0] + below[2]);
	out[row * width + column] = value;
}

__constant__ float filter[FILTER_TAPS];

/* Beyond the rim everything is 0. */
static __device__ float pixel(const float *in, int x, int y, int width, int height)
{
	return x >= 0 && x < width && y >= 0 && y < height ? in[y * width + x] : 0;
}

extern "C" __global__ void convolve_rows(const float *in, float *out, int width, int height)
{
	__shared__ float line[ROW_Y][ROW_X * STEPS + 2 * FILTER_RADIUS];
	int left = blockIdx.x * ROW_X * STEPS, y = blockIdx.y * ROW_Y + threadIdx.y;

	for (int x = threadIdx.x; x < ROW_X * STEPS + 2 * FILTER_RADIUS; x += ROW_X)
		line[threadIdx.y][x] = pixel(in, left + x - FILTER_RADIUS, y, width, height);
	__syncthreads();
	for (int step = 0; step < STEPS; step++) {
		int x = threadIdx.x + step * ROW_X;
		float sum = 0;

#pragma unroll
		for (int k = 0; k < FILTER_TAPS; k++)
			sum += filter[k] * line[threadIdx.y][x + k];
		if (left + x < width && y < height)
			out[y * width + left + x] = sum;
	}
}

extern "C" __global__ void convolve_columns(const float *in, float *out, int width, int height)
{
	__shared__ float lines[COLUMN_Y * STEPS + 2 * FILTER_RADIUS][COLUMN_X + 1];
	int top = blockIdx.y * COLUMN_Y * STEPS, x = blockIdx.x * COLUMN_X + threadIdx.x;

	for (int y = threadIdx.y; y < COLUMN_Y * STEPS + 2 * FILTER_RADIUS; y += COLUMN_Y)
		lines[y][threadIdx.x] = pixel(in, x, top + y - FILTER_RADIUS, width, height);
	__syncthreads();
	for (int step = 0; step < STEPS; step++) {
		int y = threadIdx.y + step * COLUMN_Y;
		float sum = 0;

#pragma unroll
		for (int k = 0; k < FILTER_TAPS; k++)
			sum += filter[k] * lines[y + k][threadIdx.x];
		if (x < width && top + y < height)
			out[(top + y) * width + x] = sum;
	}
}
