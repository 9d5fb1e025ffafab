/* Stream-ordered memory: each step of two streams allocates its result, frees its input, and hands
 * memory from one stream to the other behind an event. */
#include "program.cuh"

#define THREADS 256u
#define STREAMS 2u

__global__ void fill(uint32_t *to, uint32_t seed)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	to[i] = mixed(i + seed);
}

__global__ void add(const uint32_t *from, uint32_t *to, uint32_t k)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	to[i] = from[i] * 3 + k;
}

static uint32_t *allocated(unsigned n, cudaStream_t stream)
{
	uint32_t *data;

	CHECK(cudaMallocAsync(&data, n * sizeof(uint32_t), stream));
	return data;
}

int main(int argc, char **argv)
{
	program program("async-alloc", argc, argv);
	unsigned blocks = program.size(2, 2048), n = blocks * THREADS,
		 steps = program.size(20, 200);
	std::vector<uint32_t> expected(n);
	uint64_t keep = UINT64_MAX; /* the pool gives nothing back to the GPU at synchronisations */
	cudaStream_t streams[STREAMS];
	cudaEvent_t done;
	cudaMemPool_t pool;

	CHECK(cudaDeviceGetDefaultMemPool(&pool, 0));
	CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep));
	for (cudaStream_t &stream : streams)
		CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CHECK(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
	for (unsigned i = 0; i < n; i++) {
		expected[i] = mixed(i + 7);
		for (uint32_t k = 0; k < steps; k++)
			expected[i] = expected[i] * 3 + k;
	}
	while (program.goes_on()) {
		std::vector<uint32_t> result(n);
		uint32_t *data = allocated(n, streams[0]);
		cudaStream_t last = streams[(steps - 1) % STREAMS];

		fill<<<blocks, THREADS, 0, streams[0]>>>(data, 7);
		CHECK(cudaEventRecord(done, streams[0]));
		for (uint32_t k = 0; k < steps; k++) {
			cudaStream_t stream = streams[k % STREAMS];
			uint32_t *next = allocated(n, stream);

			CHECK(cudaStreamWaitEvent(stream, done, 0));
			add<<<blocks, THREADS, 0, stream>>>(data, next, k);
			CHECK(cudaFreeAsync(data, stream));
			CHECK(cudaEventRecord(done, stream));
			data = next;
		}
		CHECK(cudaGetLastError());
		CHECK(cudaMemcpyAsync(result.data(), data, n * sizeof(uint32_t),
				      cudaMemcpyDeviceToHost, last));
		CHECK(cudaFreeAsync(data, last));
		CHECK(cudaStreamSynchronize(last));
		program.check(result, expected);
	}
	CHECK(cudaEventDestroy(done));
	for (cudaStream_t stream : streams)
		CHECK(cudaStreamDestroy(stream));
	return program.right();
}
