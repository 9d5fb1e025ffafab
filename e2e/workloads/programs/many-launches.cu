/* Thousands of launches of 2 us, each of which needs the one before it. */
#include "program.cuh"

#define THREADS 128u

__global__ void mix_in(uint32_t *values, uint32_t k)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	values[i] = values[i] * 5 + k;
}

int main(int argc, char **argv)
{
	program program("many-launches", argc, argv);
	unsigned n = program.size(2, 32) * THREADS, launches = program.size(400, 20000);
	std::vector<uint32_t> input(n), expected;
	device_array<uint32_t> values(n);

	for (unsigned i = 0; i < n; i++)
		input[i] = mixed(i);
	expected = input;
	for (uint32_t k = 0; k < launches; k++)
		for (uint32_t &value : expected)
			value = value * 5 + k;
	while (program.goes_on()) {
		values.set(input);
		for (uint32_t k = 0; k < launches; k++)
			mix_in<<<n / THREADS, THREADS>>>(values.data, k);
		CHECK(cudaGetLastError());
		program.check(values.get(), expected);
	}
	return program.right();
}
