/* The client that keeps the GPU full: it always has kernels of a given block length queued. Prints
 * its throughput as one line of JSON. */
#include <stdio.h>

#include "spin.h"

#define DEPTH_MAX 64u

struct filler {
	uint64_t depth, waves, threads;
	double length_us;
};

/* Keeps @depth kernels queued until told to stop; returns how many ran. */
static uint64_t run(const struct workload *w, struct spin *spin, uint32_t depth)
{
	CUevent events[DEPTH_MAX];
	CUstream stream;
	uint64_t n = 0;

	CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	for (uint32_t i = 0; i < depth; i++)
		CU(cuEventCreate(&events[i], CU_EVENT_DISABLE_TIMING));
	for (; !workload_stopped(w); n++) {
		if (n >= depth)
			CU(cuEventSynchronize(events[n % depth]));
		spin_launch(spin, stream);
		CU(cuEventRecord(events[n % depth], stream));
	}
	CU(cuStreamSynchronize(stream));
	for (uint32_t i = 0; i < depth; i++)
		CU(cuEventDestroy(events[i]));
	CU(cuStreamDestroy(stream));
	return n;
}

int main(int argc, char **argv)
{
	struct workload w = {.seed = 1};
	struct filler filler = {0};
	const struct workload_option own[] = {
		{"depth", OPTION_NUMBER, &filler.depth, "kernels queued"},
		{"waves", OPTION_NUMBER, &filler.waves, "of blocks in a kernel, instead of --size"},
		{"threads", OPTION_NUMBER, &filler.threads, "in a block"},
		{"length-us", OPTION_REAL, &filler.length_us, "of a kernel, not --iterations"},
		{0},
	};
	struct spin spin;

	workload_parse(&w, argc, argv, "keeps the GPU full", own);
	workload_open(&w, spin_ptx);
	uint64_t wave = workload_pick(&w, 0, (uint64_t)w.sm_count, 8 * (uint64_t)w.sm_count);
	uint64_t blocks = w.size ? w.size : wave * workload_pick(&w, filler.waves, 2, 4);
	uint64_t depth = workload_pick(&w, filler.depth, 2, 4);
	if (blocks > 1u << 24 || depth < 1 || depth > DEPTH_MAX)
		workload_fail("--size, --waves or --depth: out of range");
	if (!(w.seconds > 0) && !w.stop_file)
		w.seconds = 1;
	spin_init(&spin, &w, (uint32_t)blocks, (uint32_t)workload_pick(&w, filler.threads, 32, 256),
		  (uint32_t)workload_pick(&w, w.iterations, 128, 20000));
	if (filler.length_us > 0)
		spin.iterations = spin_calibrate(&spin, filler.length_us);

	workload_ready(&w);
	uint64_t kernels = run(&w, &spin, (uint32_t)depth);
	double seconds = (double)(now_ns() - w.started) / 1e9;
	printf("{\"program\": \"filler\", \"kernels\": %llu, \"blocks\": %u, \"iterations\": %u, "
	       "\"seconds\": %.3f, \"kernels_per_second\": %.2f}\n",
	       (unsigned long long)kernels, spin.blocks, spin.iterations, seconds,
	       (double)kernels / seconds);
	fflush(stdout);
	spin_verify(&spin);
	spin_deinit(&spin);
	workload_close(&w);
	return 0;
}
