// Kernels whose blocks differ in length: each makes the number of steps that the host gives it. A block
// has much state: 16 KiB of shared memory and 16 values per thread.
#define THREADS 256
#define VALUES  16

static __device__ void make_steps(unsigned *out, const unsigned *steps)
{
	__shared__ unsigned tile[VALUES * THREADS];
	unsigned thread = threadIdx.x, n = steps[blockIdx.x], value[VALUES], sum = 0;

	for (int k = 0; k < VALUES; k++) {
		value[k] = blockIdx.x * THREADS + thread + k;
		tile[k * THREADS + thread] = value[k];
	}
	__syncthreads();
	for (unsigned i = 0; i < n; i++) {
#pragma unroll
		for (int k = 0; k < VALUES; k++)
			value[k] = value[k] * 1664525u + 1013904223u + k;
	}
	for (int k = 0; k < VALUES; k++)
		sum += value[k] ^ tile[k * THREADS + THREADS - 1 - thread];
	/* nvcc does so for an address that it knows to be the same in all threads; a form's is not. */
	for (int lanes = 16; lanes; lanes /= 2)
		sum ^= __shfl_xor_sync(~0u, sum, lanes);
	if (thread % 32 == 0)
		atomicXor(&out[blockIdx.x], sum);
}

extern "C" __global__ void mixed_rare(unsigned *out, const unsigned *steps)
{
	make_steps(out, steps);
}

extern "C" __global__ void mixed_tail(unsigned *out, const unsigned *steps)
{
	make_steps(out, steps);
}
