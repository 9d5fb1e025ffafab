/* Linear algebra beside the tiled matrix product: a sparse matrix by a vector (SHOC's "vector" form)
 * and the layers of a small neural net. */

/* y = A x; a warp for each row of A, which is in compressed rows. Blocks are whole warps. */
extern "C" __global__ void sparse_multiply(const unsigned *row_start, const unsigned *columns,
					   const float *values, const float *x, float *y, unsigned rows)
{
	unsigned row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
	float sum = 0;

	if (row >= rows)
		return;
	for (unsigned k = row_start[row] + lane; k < row_start[row + 1]; k += 32)
		sum += values[k] * x[columns[k]];
	for (unsigned step = 16; step; step /= 2)
		sum += __shfl_down_sync(0xffffffffu, sum, step);
	if (lane == 0)
		y[row] = sum;
}

#define TILE 16

/* out = in weights + bias, negative ones 0 if @rectify; @count rows of @inputs, and of @outputs.
 * Blocks of TILE x TILE. */
extern "C" __global__ void net_layer(const float *in, const float *weights, const float *bias,
				     float *out, unsigned count, unsigned inputs, unsigned outputs,
				     unsigned rectify)
{
	__shared__ float tile[TILE][TILE + 1];
	unsigned column = blockIdx.x * TILE + threadIdx.x, row = blockIdx.y * TILE + threadIdx.y;
	float sum = column < outputs ? bias[column] : 0;

	for (unsigned k = 0; k < inputs; k += TILE) {
		unsigned limit = min(TILE, inputs - k);

		tile[threadIdx.y][threadIdx.x] =
			row < count && threadIdx.x < limit ? in[row * inputs + k + threadIdx.x] : 0;
		__syncthreads();
		if (column < outputs)
			for (unsigned i = 0; i < limit; i++)
				sum += tile[threadIdx.y][i] * weights[(k + i) * outputs + column];
		__syncthreads();
	}
	if (row < count && column < outputs)
		out[row * outputs + column] = rectify && sum < 0 ? 0 : sum;
}

/* The class of each row: the first of its largest values. A warp for each. */
extern "C" __global__ void net_classify(const float *scores, unsigned *classes, unsigned count,
					unsigned outputs)
{
	unsigned row = blockIdx.x * blockDim.y + threadIdx.y, best = threadIdx.x;

	if (row >= count)
		return;
	const float *score = scores + row * outputs;
	for (unsigned i = threadIdx.x; i < outputs; i += 32)
		if (score[i] > score[best])
			best = i;
	for (unsigned step = 16; step; step /= 2) {
		unsigned other = __shfl_xor_sync(0xffffffffu, best, step);

		if (best >= outputs || (other < outputs && (score[other] > score[best] ||
							    (score[other] == score[best] && other < best))))
			best = other;
	}
	if (threadIdx.x == 0)
		classes[row] = best;
}
