/* Built with --default-stream per-thread: four threads use the default stream, and each has its
 * own. */
#include "program.cuh"

#include <thread>

#define HOST_THREADS 4u
#define THREADS      256u

__global__ void scan_step(const uint32_t *from, uint32_t *to, unsigned distance)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	to[i] = from[i] + (i >= distance ? from[i - distance] : 0);
}

/* Sums up to each value: a launch for each power of two. */
static void scan(const std::vector<uint32_t> *input, std::vector<uint32_t> *out)
{
	unsigned n = (unsigned)input->size();
	device_array<uint32_t> first(n), second(n);
	uint32_t *from = first.data, *to = second.data;

	CHECK(cudaMemcpyAsync(from, input->data(), n * sizeof(uint32_t), cudaMemcpyHostToDevice));
	for (unsigned distance = 1; distance < n; distance *= 2) {
		scan_step<<<n / THREADS, THREADS>>>(from, to, distance);
		std::swap(from, to);
	}
	CHECK(cudaGetLastError());
	CHECK(cudaMemcpyAsync(out->data(), from, n * sizeof(uint32_t), cudaMemcpyDeviceToHost));
	CHECK(cudaStreamSynchronize(0));
}

int main(int argc, char **argv)
{
	program program("per-thread-stream", argc, argv);
	unsigned n = THREADS * program.size(4, 8192);
	std::vector<uint32_t> input[HOST_THREADS], expected;

	for (unsigned t = 0; t < HOST_THREADS; t++) {
		uint32_t sum = 0;

		for (unsigned i = 0; i < n; i++) {
			input[t].push_back(mixed(t * n + i));
			expected.push_back(sum += input[t][i]);
		}
	}
	while (program.goes_on()) {
		std::vector<uint32_t> sums[HOST_THREADS], all;
		std::vector<std::thread> threads;

		for (unsigned t = 0; t < HOST_THREADS; t++) {
			sums[t].resize(n);
			threads.emplace_back(scan, &input[t], &sums[t]);
		}
		for (std::thread &thread : threads)
			thread.join();
		for (const std::vector<uint32_t> &one : sums)
			all.insert(all.end(), one.begin(), one.end());
		program.check(all, expected);
	}
	return program.right();
}
