/* data[i] = generator^delay(data[i]) * multiply + add: steps do not commute, so a wrong order gives
 * wrong words; the delay makes an operation that does not wait for it start too early. */
extern "C" __global__ void step(unsigned *data, unsigned words, unsigned multiply, unsigned add,
				unsigned delay)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i >= words)
		return;
	unsigned x = data[i];
#pragma unroll 1
	for (unsigned k = 0; k < delay; k++)
		x = x * 1664525u + 1013904223u;
	data[i] = x * multiply + add;
}

/* Every block takes the words of the next block, which works only if all blocks are there at once:
 * a cooperative launch. @arrived must be 0. */
extern "C" __global__ void rotate(unsigned *data, unsigned *arrived)
{
	unsigned n = gridDim.x * blockDim.x, i = blockIdx.x * blockDim.x + threadIdx.x;
	unsigned x = data[(i + blockDim.x) % n];

	__threadfence();
	__syncthreads();
	if (threadIdx.x == 0) {
		atomicAdd(arrived, 1);
		while (*(volatile unsigned *)arrived < gridDim.x)
			;
	}
	__syncthreads();
	data[i] = x;
}
