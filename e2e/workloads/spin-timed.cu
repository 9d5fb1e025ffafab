static __device__ unsigned long long now(void)
{
	unsigned long long ns;

	/* The clock of the whole GPU: another SM runs the last block. */
	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
	return ns;
}

/* spin() of spin.cu. @times: when the first block began, and when the last one to end ended.
 * @ended: blocks that have ended; 0 again at the end. */
extern "C" __global__ void spin_timed(unsigned *state, unsigned iterations, unsigned *ended,
				      unsigned long long *times)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x, x = state[i];

	if (i == 0)
		times[0] = now();
#pragma unroll 1
	for (unsigned k = 0; k < iterations; k++)
		x = x * 1664525u + 1013904223u;
	state[i] = x;
	__syncthreads();
	if (threadIdx.x || atomicAdd(ended, 1) != gridDim.x - 1)
		return;
	*ended = 0;
	times[1] = now();
}
