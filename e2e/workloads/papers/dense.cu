/* Dense matrices (Rodinia): LU decomposition in tiles, and a net that learns by back propagation. */
#include "dense.h"

/* The tile at the top left of what is left becomes L (with ones in its diagonal) and U. */
extern "C" __global__ void lud_diagonal(float *matrix, unsigned n, unsigned from)
{
	__shared__ float tile[DENSE_SIDE][DENSE_SIDE];
	unsigned x = threadIdx.x, y = threadIdx.y;
	float *place = matrix + (size_t)(from + y) * n + from + x;

	tile[y][x] = *place;
	__syncthreads();
	for (unsigned k = 0; k + 1 < DENSE_SIDE; k++) {
		if (y > k && x == k)
			tile[y][k] = tile[y][k] / tile[k][k];
		__syncthreads();
		if (y > k && x > k)
			tile[y][x] = tile[y][x] - tile[y][k] * tile[k][x];
		__syncthreads();
	}
	*place = tile[y][x];
}

/* The tiles to the right of it (blockIdx.y is 0), and below it. */
extern "C" __global__ void lud_perimeter(float *matrix, unsigned n, unsigned from)
{
	__shared__ float corner[DENSE_SIDE][DENSE_SIDE], tile[DENSE_SIDE][DENSE_SIDE];
	unsigned x = threadIdx.x, y = threadIdx.y, away = (blockIdx.x + 1) * DENSE_SIDE;
	bool right = blockIdx.y == 0;
	float *place = matrix + (size_t)(from + y + (right ? 0 : away)) * n + from + x + (right ? away : 0);

	corner[y][x] = matrix[(size_t)(from + y) * n + from + x];
	tile[y][x] = *place;
	__syncthreads();
	for (unsigned k = 0; k < DENSE_SIDE; k++) {
		if (!right && x == k)
			tile[y][k] = tile[y][k] / corner[k][k];
		__syncthreads();
		if (right && y > k)
			tile[y][x] = tile[y][x] - corner[y][k] * tile[k][x];
		if (!right && x > k)
			tile[y][x] = tile[y][x] - tile[y][k] * corner[k][x];
		__syncthreads();
	}
	*place = tile[y][x];
}

/* All others. */
extern "C" __global__ void lud_internal(float *matrix, unsigned n, unsigned from)
{
	__shared__ float left[DENSE_SIDE][DENSE_SIDE], above[DENSE_SIDE][DENSE_SIDE];
	unsigned x = threadIdx.x, y = threadIdx.y;
	size_t row = from + (blockIdx.y + 1) * DENSE_SIDE + y, column = from + (blockIdx.x + 1) * DENSE_SIDE + x;

	left[y][x] = matrix[row * n + from + x];
	above[y][x] = matrix[(size_t)(from + y) * n + column];
	__syncthreads();
	float value = matrix[row * n + column];

	for (unsigned k = 0; k < DENSE_SIDE; k++)
		value = value - left[y][k] * above[k][x];
	matrix[row * n + column] = value;
}

/* What each DENSE_SIDE nodes of the input add to the hidden nodes. Halves are added, then halves of
 * halves. */
extern "C" __global__ void net_forward(const float *in, const float *weights, float *parts)
{
	__shared__ float nodes[DENSE_SIDE], products[DENSE_SIDE][DENSE_SIDE];
	unsigned x = threadIdx.x, y = threadIdx.y, node = blockIdx.x * DENSE_SIDE + y;

	if (x == 0)
		nodes[y] = in[node];
	__syncthreads();
	products[y][x] = weights[node * DENSE_SIDE + x] * nodes[y];
	__syncthreads();
	for (unsigned half = DENSE_SIDE / 2; half; half /= 2) {
		if (y < half)
			products[y][x] += products[y + half][x];
		__syncthreads();
	}
	if (y == 0)
		parts[blockIdx.x * DENSE_SIDE + x] = products[0][x];
}

extern "C" __global__ void net_adjust(const float *in, const float *errors, float *weights, float *changes)
{
	unsigned x = threadIdx.x, node = blockIdx.x * DENSE_SIDE + threadIdx.y, i = node * DENSE_SIDE + x;
	float change = NET_RATE * errors[x] * in[node] + NET_MOMENTUM * changes[i];

	weights[i] = weights[i] + change;
	changes[i] = change;
}
