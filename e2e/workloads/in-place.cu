// A kernel whose blocks do as the host's word says: work, wait where they are, or save what they hold and leave. A block
// tells the host which order it has seen last. The low two bits of an order say what to do.
#define WORKS  0
#define WAITS  1
#define LEAVES 2
#define MASK   3u
#define PERIOD 1000 // steps between two looks

extern "C" __global__ void in_place(const volatile unsigned *order, volatile unsigned *seen, unsigned *save, unsigned *state,
				    unsigned words)
{
	extern __shared__ unsigned held[];
	__shared__ unsigned told;
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x, x = state[i], last = 0;
	unsigned *own = save + (size_t)blockIdx.x * words;

	for (unsigned w = threadIdx.x; w < words; w += blockDim.x)
		held[w] = own[w];
	do {
#pragma unroll 1
		for (unsigned k = 0; k < PERIOD; k++)
			x = x * 1664525u + 1013904223u;
		if (threadIdx.x == 0) {
			do {
				told = *order;
				if (told != last)
					seen[blockIdx.x] = last = told;
				if ((told & MASK) == WAITS)
					__nanosleep(200);
			} while ((told & MASK) == WAITS);
		}
		__syncthreads();
		last = told;
		__syncthreads();
	} while ((last & MASK) != LEAVES);
	for (unsigned w = threadIdx.x; w < words; w += blockDim.x)
		own[w] = held[w];
	state[i] = x;
}
