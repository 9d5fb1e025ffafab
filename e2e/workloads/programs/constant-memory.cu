/* A filter whose coefficients are in constant memory and change between launches. */
#include "program.cuh"

#define THREADS 256u
#define TAPS    16u
#define FILTERS 8u

__constant__ uint32_t taps[TAPS];
__device__ uint32_t filtered; /* values so far, of all launches */

__global__ void filter(const uint32_t *from, uint32_t *to, unsigned n)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
	uint32_t sum = to[i];

	for (unsigned k = 0; k < TAPS; k++)
		sum += taps[k] * from[(i + k) % n];
	to[i] = sum;
	if (!threadIdx.x)
		atomicAdd(&filtered, blockDim.x);
}

static std::vector<uint32_t> taps_of(unsigned filter)
{
	std::vector<uint32_t> values(TAPS);

	for (unsigned k = 0; k < TAPS; k++)
		values[k] = mixed(filter * TAPS + k);
	return values;
}

int main(int argc, char **argv)
{
	program program("constant-memory", argc, argv);
	unsigned n = THREADS * program.size(3, 1024);
	std::vector<uint32_t> input(n), expected(n), zeros(n);
	device_array<uint32_t> from(n), to(n);
	uint32_t zero = 0, count;

	for (unsigned i = 0; i < n; i++)
		input[i] = mixed(i);
	for (unsigned f = 0; f < FILTERS; f++) {
		std::vector<uint32_t> values = taps_of(f);

		for (unsigned i = 0; i < n; i++)
			for (unsigned k = 0; k < TAPS; k++)
				expected[i] += values[k] * input[(i + k) % n];
	}
	from.set(input);
	while (program.goes_on()) {
		to.set(zeros);
		CHECK(cudaMemcpyToSymbol(filtered, &zero, sizeof(zero)));
		for (unsigned f = 0; f < FILTERS; f++) {
			std::vector<uint32_t> values = taps_of(f);

			CHECK(cudaMemcpyToSymbol(taps, values.data(), TAPS * sizeof(uint32_t)));
			filter<<<n / THREADS, THREADS>>>(from.data, to.data, n);
		}
		CHECK(cudaGetLastError());
		CHECK(cudaMemcpyFromSymbol(&count, filtered, sizeof(count)));
		if (count != FILTERS * n)
			fail("constant-memory: wrong result, %u values were filtered", count);
		program.check(to.get(), expected);
	}
	return program.right();
}
