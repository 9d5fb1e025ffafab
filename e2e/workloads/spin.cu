/* One step of a linear congruential generator. @n of them have a closed form, so the host knows the
 * exact result of a kernel of any length (spin.c). */
static __device__ unsigned step(unsigned x)
{
	return x * 1664525u + 1013904223u;
}

/* Every thread advances its word by @iterations steps. A kernel that is lost, run twice or started
 * too early leaves wrong words. */
extern "C" __global__ void spin(unsigned *state, unsigned iterations)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x, x = state[i];

#pragma unroll 1
	for (unsigned k = 0; k < iterations; k++)
		x = step(x);
	state[i] = x;
}

/* The same with state inside the block: after each @period steps every thread hands its word to its
 * left neighbour, through shared memory and two barriers. @iterations: a multiple of @period. */
extern "C" __global__ void spin_exchange(unsigned *state, unsigned iterations, unsigned period)
{
	extern __shared__ unsigned words[];
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x, x = state[i];

	for (unsigned done = 0; done < iterations; done += period) {
#pragma unroll 1
		for (unsigned k = 0; k < period; k++)
			x = step(x);
		words[threadIdx.x] = x;
		__syncthreads();
		x = words[threadIdx.x + 1 < blockDim.x ? threadIdx.x + 1 : 0];
		__syncthreads();
	}
	state[i] = x;
}

extern "C" __global__ void empty(void)
{
}
