/* Kernels with assertions that hold; at the end one that fails, which has to be the program's error
 * from then on. */
#include "program.cuh"

#include <cassert>

#define THREADS 128u

/* Squares by additions. */
__global__ void square(const uint32_t *from, uint32_t *to, uint32_t limit)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
	uint32_t sum = 0;

	assert(from[i] < limit);
	for (uint32_t k = 0; k < from[i]; k++)
		sum += 2 * k + 1;
	assert(sum == from[i] * from[i]);
	to[i] = sum;
}

/* The context is lost with it. */
static void check_failure(const device_array<uint32_t> &from, const device_array<uint32_t> &to)
{
	cudaError_t error;
	void *memory;

	square<<<1, THREADS>>>(from.data, to.data, 1);
	error = cudaDeviceSynchronize();
	if (error != cudaErrorAssert)
		fail("device-assert: wrong result, a failed assertion is %s",
		     cudaGetErrorName(error));
	error = cudaMalloc(&memory, 1);
	if (error != cudaErrorAssert)
		fail("device-assert: wrong result, then memory is %s", cudaGetErrorName(error));
}

int main(int argc, char **argv)
{
	program program("device-assert", argc, argv);
	unsigned n = THREADS * program.size(3, 4096), limit = program.size(40, 2000);
	std::vector<uint32_t> input(n), expected(n);
	device_array<uint32_t> from(n), to(n);

	for (unsigned i = 0; i < n; i++) {
		input[i] = mixed(i) % (limit - 1) + 1;
		expected[i] = input[i] * input[i];
	}
	from.set(input);
	while (program.goes_on()) {
		CHECK(cudaMemset(to.data, 0, n * sizeof(uint32_t)));
		square<<<n / THREADS, THREADS>>>(from.data, to.data, limit);
		CHECK(cudaGetLastError());
		program.check(to.get(), expected);
	}
	check_failure(from, to);
	return program.right();
}
