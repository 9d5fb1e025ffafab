/* Dynamic parallelism: each kernel halves its range and launches a kernel for each half, until
 * ranges are short enough to be summed up. */
#include "program.cuh"

#define LEAF 256u

__global__ void sum_range(unsigned begin, unsigned n, unsigned long long *sum)
{
	if (n > LEAF) {
		if (threadIdx.x < 2)
			sum_range<<<1, LEAF>>>(begin + threadIdx.x * (n / 2), n / 2, sum);
		return;
	}
	for (unsigned i = threadIdx.x; i < n; i += blockDim.x)
		atomicAdd(sum, (unsigned long long)mixed(begin + i) * (begin + i));
}

int main(int argc, char **argv)
{
	program program("dynamic-parallelism", argc, argv);
	unsigned n = LEAF * program.size(4, 512);
	std::vector<unsigned long long> expected(1);
	device_array<unsigned long long> sum(1);

	for (unsigned i = 0; i < n; i++)
		expected[0] += (unsigned long long)mixed(i) * i;
	while (program.goes_on()) {
		CHECK(cudaMemset(sum.data, 0, sizeof(unsigned long long)));
		sum_range<<<1, LEAF>>>(0, n, sum.data);
		CHECK(cudaGetLastError());
		CHECK(cudaDeviceSynchronize());
		program.check(sum.get(), expected);
	}
	return program.right();
}
