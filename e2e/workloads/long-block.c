/* Few, long blocks with state in registers and shared memory and with many barriers. Only an
 * eviction inside the block can stop them. Every word is checked.
 *
 * Thread t of a block advances a word (spin.cu) and takes its right neighbour's word after each
 * period. So after k periods it holds the word of thread t + k, advanced by k periods.
 */
#include <stdio.h>
#include <stdlib.h>

#include <weir/base.h>

#include "spin.h"

#define PERIOD 64

struct grid {
	uint32_t blocks, threads, iterations;
};

static void launch(CUfunction kernel, CUdeviceptr state, const struct grid *grid)
{
	uint32_t iterations = grid->iterations, period = PERIOD;
	void *parameters[] = {&state, &iterations, &period};

	CU(cuLaunchKernel(kernel, grid->blocks, 1, 1, grid->threads, 1, 1,
			  grid->threads * sizeof(uint32_t), NULL, parameters, NULL));
}

static void check(const uint32_t *words, const struct grid *grid, uint64_t launches)
{
	uint64_t steps = launches * grid->iterations;
	uint32_t shift = (uint32_t)(steps / PERIOD % grid->threads);

	for (uint32_t block = 0; block < grid->blocks; block++) {
		for (uint32_t t = 0; t < grid->threads; t++) {
			uint32_t first = block * grid->threads;
			uint32_t source = first + (t + shift) % grid->threads;
			uint32_t want = spin_jump(spin_start(source), steps);

			if (words[first + t] != want)
				workload_fail("wrong result: block %u thread %u has %#x, not %#x",
					      block, t, words[first + t], want);
		}
	}
}

int main(int argc, char **argv)
{
	struct workload w = {.seed = 1};
	uint64_t threads = 0, launches = 0, done = 0;
	double length_us = 0;
	const struct workload_option own[] = {
		{"threads", OPTION_NUMBER, &threads, "in a block"},
		{"launches", OPTION_NUMBER, &launches, "how often (default: 3, or until stopped)"},
		{"length-us", OPTION_REAL, &length_us, "of a block, instead of --iterations"},
		{0},
	};
	CUdeviceptr state;

	workload_parse(&w, argc, argv, "few blocks, each long; checks every word", own);
	workload_open(&w, spin_ptx);
	struct grid grid = {
		.blocks = (uint32_t)workload_pick(&w, w.size, 2, (uint64_t)w.sm_count),
		.threads = (uint32_t)workload_pick(&w, threads, 32, 256),
		.iterations = (uint32_t)workload_pick(&w, w.iterations, 16 * PERIOD, 1u << 20),
	};
	if (length_us > 0) {
		struct spin spin;

		spin_init(&spin, &w, grid.blocks, grid.threads, 1);
		grid.iterations = spin_calibrate(&spin, length_us);
		spin_deinit(&spin);
	}
	grid.iterations = (grid.iterations + PERIOD - 1) / PERIOD * PERIOD;
	if (!launches)
		launches = w.seconds > 0 || w.stop_file ? UINT64_MAX : 3;

	uint32_t n = grid.blocks * grid.threads;
	cleanup(freep) uint32_t *words = workload_alloc(n * sizeof(*words));
	for (uint32_t i = 0; i < n; i++)
		words[i] = spin_start(i);
	CU(cuMemAlloc(&state, n * sizeof(*words)));
	workload_upload(state, words, n * sizeof(*words));

	workload_ready(&w);
	while (done < launches && !workload_stopped(&w)) {
		launch(workload_kernel(&w, "spin_exchange"), state, &grid);
		CU(cuMemcpyDtoH(words, state, n * sizeof(*words)));
		check(words, &grid, ++done);
	}
	CU(cuMemFree(state));
	workload_close(&w);
	printf("long-block: ok, %llu launches of %u blocks, %u iterations each\n",
	       (unsigned long long)done, grid.blocks, grid.iterations);
	return 0;
}
