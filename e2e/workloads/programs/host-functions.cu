/* A chain through a stream: a kernel, a copy to the host, a host function that changes the values,
 * a copy back, and so on. Each link needs the one before it. */
#include "program.cuh"

#define THREADS 256u

__global__ void triple(uint32_t *values)
{
	values[blockIdx.x * blockDim.x + threadIdx.x] *= 3;
}

struct chain {
	uint32_t *values; /* pinned */
	unsigned n, calls;
};

static void CUDART_CB add_calls(void *data)
{
	chain *chain = static_cast<struct chain *>(data);

	chain->calls++;
	for (unsigned i = 0; i < chain->n; i++)
		chain->values[i] += chain->calls;
}

int main(int argc, char **argv)
{
	program program("host-functions", argc, argv);
	unsigned n = THREADS * program.size(2, 64), links = program.size(10, 100);
	std::vector<uint32_t> input(n), expected;
	device_array<uint32_t> values(n);
	chain chain = {nullptr, n, 0};
	cudaStream_t stream;

	CHECK(cudaMallocHost(&chain.values, n * sizeof(uint32_t)));
	CHECK(cudaStreamCreate(&stream));
	for (unsigned i = 0; i < n; i++)
		input[i] = mixed(i);
	expected = input;
	for (unsigned k = 0; k < links; k++)
		for (uint32_t &value : expected)
			value = value * 3 + k + 1;
	while (program.goes_on()) {
		values.set(input);
		chain.calls = 0;
		for (unsigned k = 0; k < links; k++) {
			triple<<<n / THREADS, THREADS, 0, stream>>>(values.data);
			CHECK(cudaMemcpyAsync(chain.values, values.data, n * sizeof(uint32_t),
					      cudaMemcpyDeviceToHost, stream));
			CHECK(cudaLaunchHostFunc(stream, add_calls, &chain));
			CHECK(cudaMemcpyAsync(values.data, chain.values, n * sizeof(uint32_t),
					      cudaMemcpyHostToDevice, stream));
		}
		CHECK(cudaGetLastError());
		CHECK(cudaStreamSynchronize(stream));
		program.check(values.get(), expected);
	}
	CHECK(cudaStreamDestroy(stream));
	CHECK(cudaFreeHost(chain.values));
	return program.right();
}
