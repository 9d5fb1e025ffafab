/* Four threads launch into streams of their own: each counts the bytes of its own data, with a
 * table in shared memory, part after part. */
#include "program.cuh"

#include <thread>

#define HOST_THREADS 4u
#define THREADS      256u
#define BINS         256u
#define PARTS        16u

__global__ void count_bytes(const uint32_t *data, unsigned n, unsigned *bins)
{
	__shared__ unsigned own[BINS];

	own[threadIdx.x] = 0;
	__syncthreads();
	for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		for (unsigned shift = 0; shift < 32; shift += 8)
			atomicAdd(&own[data[i] >> shift & 0xff], 1);
	__syncthreads();
	atomicAdd(&bins[threadIdx.x], own[threadIdx.x]);
}

static void count(unsigned blocks, const std::vector<uint32_t> *data, std::vector<unsigned> *out)
{
	device_array<uint32_t> on_device(data->size());
	device_array<unsigned> bins(BINS);
	unsigned part = (unsigned)data->size() / PARTS;
	cudaStream_t stream;

	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CHECK(cudaMemcpyAsync(on_device.data, data->data(), data->size() * sizeof(uint32_t),
			      cudaMemcpyHostToDevice, stream));
	CHECK(cudaMemsetAsync(bins.data, 0, BINS * sizeof(unsigned), stream));
	for (unsigned k = 0; k < PARTS; k++)
		count_bytes<<<blocks, THREADS, 0, stream>>>(on_device.data + k * part, part,
							    bins.data);
	CHECK(cudaGetLastError());
	CHECK(cudaMemcpyAsync(out->data(), bins.data, BINS * sizeof(unsigned),
			      cudaMemcpyDeviceToHost, stream));
	CHECK(cudaStreamSynchronize(stream));
	CHECK(cudaStreamDestroy(stream));
}

int main(int argc, char **argv)
{
	program program("four-threads", argc, argv);
	unsigned blocks = program.size(2, 264), n = PARTS * program.size(512, 1 << 18);
	std::vector<uint32_t> data[HOST_THREADS];
	std::vector<unsigned> expected(HOST_THREADS * BINS);

	for (unsigned t = 0; t < HOST_THREADS; t++) {
		data[t].resize(n);
		for (unsigned i = 0; i < n; i++) {
			data[t][i] = mixed(t * n + i) & mixed(i);
			for (unsigned shift = 0; shift < 32; shift += 8)
				expected[t * BINS + (data[t][i] >> shift & 0xff)]++;
		}
	}
	while (program.goes_on()) {
		std::vector<unsigned> bins[HOST_THREADS], all;
		std::vector<std::thread> threads;

		for (unsigned t = 0; t < HOST_THREADS; t++) {
			bins[t].resize(BINS);
			threads.emplace_back(count, blocks, &data[t], &bins[t]);
		}
		for (std::thread &thread : threads)
			thread.join();
		for (const std::vector<unsigned> &one : bins)
			all.insert(all.end(), one.begin(), one.end());
		program.check(all, expected);
	}
	return program.right();
}
