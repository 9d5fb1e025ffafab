struct result {
	unsigned long long sum;
	unsigned maximum;
	unsigned odd; /* how many are odd */
};

/* Shuffles within a warp, shared memory between the warps of a block, atomics between blocks. The
 * block is a multiple of 32 threads, all of which take part in the shuffles. */
extern "C" __global__ void reduction(const unsigned *values, unsigned n, struct result *result)
{
	__shared__ unsigned long long sums[32];
	unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
	unsigned long long sum = 0;
	unsigned maximum = 0, odd = 0;

	for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
		sum += values[i];
		maximum = max(maximum, values[i]);
		odd += values[i] & 1;
	}
	for (unsigned step = 16; step; step /= 2) {
		sum += __shfl_down_sync(0xffffffffu, sum, step);
		maximum = max(maximum, __shfl_xor_sync(0xffffffffu, maximum, step));
		odd += __shfl_down_sync(0xffffffffu, odd, step);
	}
	if (lane == 0) {
		sums[warp] = sum;
		atomicMax(&result->maximum, maximum);
		atomicAdd(&result->odd, odd);
	}
	__syncthreads();
	if (warp != 0)
		return;
	sum = lane < blockDim.x / 32 ? sums[lane] : 0;
	for (unsigned step = 16; step; step /= 2)
		sum += __shfl_down_sync(0xffffffffu, sum, step);
	if (lane == 0)
		atomicAdd(&result->sum, sum);
}
