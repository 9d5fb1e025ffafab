/* A ring of cells, stepped on by a cooperative launch: all blocks wait for each other after each
 * step (cooperative groups, grid.sync()). */
#include "program.cuh"

#include <cooperative_groups.h>

#define THREADS 256u

__global__ void step_ring(uint32_t *from, uint32_t *to, unsigned n, unsigned steps)
{
	cooperative_groups::grid_group grid = cooperative_groups::this_grid();

	for (unsigned k = 0; k < steps; k++) {
		for (unsigned i = (unsigned)grid.thread_rank(); i < n; i += (unsigned)grid.size())
			to[i] = from[(i + n - 1) % n] + 3 * from[i] + (from[(i + 1) % n] ^ k);
		grid.sync();
		uint32_t *other = from;

		from = to;
		to = other;
	}
}

static unsigned blocks_at_once()
{
	int per_sm, sms;

	CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, step_ring, THREADS, 0));
	CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
	return (unsigned)(std::min(per_sm, 2) * sms);
}

int main(int argc, char **argv)
{
	program program("cooperative", argc, argv);
	unsigned n = program.size(700, 1 << 16), steps = program.size(6, 40),
		 launches = program.size(2, 20);
	std::vector<uint32_t> input(n), expected(n), next(n);
	device_array<uint32_t> from(n), to(n);
	void *parameters[] = {&from.data, &to.data, &n, &steps};
	unsigned blocks = blocks_at_once();

	for (unsigned i = 0; i < n; i++)
		input[i] = mixed(i);
	expected = input;
	for (unsigned k = 0; k < launches * steps; k++) {
		for (unsigned i = 0; i < n; i++)
			next[i] = expected[(i + n - 1) % n] + 3 * expected[i] +
				  (expected[(i + 1) % n] ^ k % steps);
		expected.swap(next);
	}
	while (program.goes_on()) {
		from.set(input);
		/* Steps are even: each launch leaves its result where the next one begins. */
		for (unsigned k = 0; k < launches; k++)
			CHECK(cudaLaunchCooperativeKernel(step_ring, blocks, THREADS, parameters));
		program.check(from.get(), expected);
	}
	return program.right();
}
