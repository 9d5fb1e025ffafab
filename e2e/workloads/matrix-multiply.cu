#define TILE 16

/* c = a b, all n x n and row-major, n any number; blocks of TILE x TILE threads. */
extern "C" __global__ void matrix_multiply(const float *a, const float *b, float *c, unsigned n)
{
	__shared__ float tile_a[TILE][TILE], tile_b[TILE][TILE];
	unsigned column = blockIdx.x * TILE + threadIdx.x, row = blockIdx.y * TILE + threadIdx.y;
	float sum = 0;

	for (unsigned k = 0; k < n; k += TILE) {
		unsigned ka = k + threadIdx.x, kb = k + threadIdx.y;

		tile_a[threadIdx.y][threadIdx.x] = row < n && ka < n ? a[row * n + ka] : 0;
		tile_b[threadIdx.y][threadIdx.x] = column < n && kb < n ? b[kb * n + column] : 0;
		__syncthreads();
		for (unsigned i = 0; i < TILE; i++)
			sum += tile_a[threadIdx.y][i] * tile_b[i][threadIdx.x];
		__syncthreads();
	}
	if (row < n && column < n)
		c[row * n + column] = sum;
}
