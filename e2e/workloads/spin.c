#include "spin.h"

#include <stdlib.h>

#include <weir/base.h>

#define CALIBRATION_START 256u
#define CALIBRATION_US    100.0 /* a run this long is measured well */
#define CALIBRATION_RUNS  5
#define ITERATIONS_MAX    (1u << 30)

uint32_t spin_start(uint32_t i)
{
	return i * 2654435761u + 12345u;
}

uint32_t spin_jump(uint32_t x, uint64_t steps)
{
	uint32_t multiply = 1664525u, add = 1013904223u; /* of 2^k steps */
	uint32_t all_multiply = 1, all_add = 0;

	for (; steps; steps >>= 1) {
		if (steps & 1) {
			all_add = all_add * multiply + add;
			all_multiply *= multiply;
		}
		add *= multiply + 1;
		multiply *= multiply;
	}
	return x * all_multiply + all_add;
}

void spin_init(struct spin *spin, const struct workload *workload, uint32_t blocks,
	       uint32_t threads, uint32_t iterations)
{
	size_t n = (size_t)blocks * threads;
	cleanup(freep) uint32_t *start = workload_alloc(n * sizeof(*start));
	for (size_t i = 0; i < n; i++)
		start[i] = spin_start((uint32_t)i);
	*spin = (struct spin){.kernel = workload_kernel(workload, "spin"),
			      .blocks = blocks,
			      .threads = threads,
			      .iterations = iterations};
	CU(cuMemAlloc(&spin->state, n * sizeof(*start)));
	workload_upload(spin->state, start, n * sizeof(*start));
}

void spin_exchange(struct spin *spin, const struct workload *workload, uint32_t period)
{
	spin->kernel = workload_kernel(workload, "spin_exchange");
	spin->period = period;
	spin->iterations = (spin->iterations + period - 1) / period * period;
}

size_t spin_shared(const struct spin *spin)
{
	return spin->period ? spin->threads * sizeof(uint32_t) : 0;
}

void spin_launch(struct spin *spin, CUstream stream)
{
	void *parameters[] = {&spin->state, &spin->iterations, &spin->period};

	CU(cuLaunchKernel(spin->kernel, spin->blocks, 1, 1, spin->threads, 1, 1,
			  (unsigned)spin_shared(spin), stream, parameters, NULL));
	spin->launches++;
}

void spin_verify(const struct spin *spin)
{
	size_t n = (size_t)spin->blocks * spin->threads;
	uint64_t steps = spin->launches * spin->iterations;
	uint32_t add = spin_jump(0, steps), multiply = spin_jump(1, steps) - add;
	cleanup(freep) uint32_t *words = workload_alloc(n * sizeof(*words));
	CU(cuCtxSynchronize());
	CU(cuMemcpyDtoH(words, spin->state, n * sizeof(*words)));
	size_t shift = spin->period ? steps / spin->period : 0;
	for (size_t i = 0; i < n; i++) {
		size_t t = i % spin->threads, source = i - t + (t + shift) % spin->threads;
		uint32_t expected = spin_start((uint32_t)source) * multiply + add;

		if (words[i] != expected)
			workload_fail("wrong result: word %zu is %#x, not %#x, after %llu launches",
				      i, words[i], expected, (unsigned long long)spin->launches);
	}
}

void spin_deinit(struct spin *spin)
{
	CU(cuMemFree(spin->state));
}

/* The shortest of a few runs, in us. */
static double measure(struct spin *spin, CUstream stream, CUevent begin, CUevent end)
{
	float best = 0;

	for (int run = 0; run < CALIBRATION_RUNS; run++) {
		float ms;

		CU(cuEventRecord(begin, stream));
		spin_launch(spin, stream);
		CU(cuEventRecord(end, stream));
		CU(cuEventSynchronize(end));
		CU(cuEventElapsedTime(&ms, begin, end));
		if (run == 0 || ms < best)
			best = ms;
	}
	return best * 1e3;
}

uint32_t spin_calibrate(struct spin *spin, double us)
{
	struct spin trial = *spin;
	size_t bytes = (size_t)spin->blocks * spin->threads * sizeof(uint32_t);
	CUstream stream;
	CUevent begin, end;
	double taken;

	/* On a state of its own, so that the caller's launches stay countable. */
	CU(cuMemAlloc(&trial.state, bytes));
	CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	CU(cuEventCreate(&begin, CU_EVENT_DEFAULT));
	CU(cuEventCreate(&end, CU_EVENT_DEFAULT));
	trial.iterations = CALIBRATION_START;
	while ((taken = measure(&trial, stream, begin, end)) < CALIBRATION_US &&
	       trial.iterations < ITERATIONS_MAX)
		trial.iterations *= 2;
	/* The second time near the goal, where launch overhead weighs as it will later. */
	for (int round = 0; round < 2; round++) {
		double scaled = trial.iterations * us / taken;

		trial.iterations = scaled < 1                ? 1
				   : scaled > ITERATIONS_MAX ? ITERATIONS_MAX
							     : (uint32_t)scaled;
		taken = measure(&trial, stream, begin, end);
	}
	CU(cuEventDestroy(end));
	CU(cuEventDestroy(begin));
	CU(cuStreamDestroy(stream));
	CU(cuMemFree(trial.state));
	return trial.iterations;
}
