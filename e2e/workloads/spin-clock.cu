static __device__ unsigned long long now(void)
{
	unsigned long long ns;

	/* Of the whole GPU: a block may be carried on by another SM. */
	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
	return ns;
}

/* Watches the clock for @ns, and does nothing else (XSched's experiment). Each thread counts the
 * launches that it has been through. */
extern "C" __global__ void spin_clock(unsigned *launches, unsigned long long ns)
{
	unsigned long long begin = now();

	while (now() - begin < ns)
		;
	launches[blockIdx.x * blockDim.x + threadIdx.x]++;
}
