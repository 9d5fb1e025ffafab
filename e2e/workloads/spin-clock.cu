static __device__ unsigned long long now(void)
{
	unsigned long long ns;

	/* The clock of the whole GPU: another SM may continue a block. */
	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
	return ns;
}

/* Watches the clock for @ns and does nothing else (XSched's experiment). Each thread counts its
 * launches. */
extern "C" __global__ void spin_clock(unsigned *launches, unsigned long long ns)
{
	unsigned long long begin = now();

	while (now() - begin < ns)
		;
	launches[blockIdx.x * blockDim.x + threadIdx.x]++;
}
