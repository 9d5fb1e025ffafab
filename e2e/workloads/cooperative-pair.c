/* Two cooperative kernels with different priorities, each of more than half of what the GPU holds,
 * while short blocks end one by one on all SMs. Blocks of such a kernel wait for each other. If the
 * GPU does not begin it as a whole, each may get a part of the SMs, and both wait for ever: then
 * the program says so and exits with 3.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <weir/base.h>

#include "workload.h"

#define THREADS     64u
#define SHORT       16u /* threads of a short block */
#define WAVES       4u  /* of short blocks */
#define LIMIT_MS    20000u
#define ROUNDS      200u
#define ROUNDS_REAL 5000u

extern const char stream_order_ptx[];

enum which { BOTH, LEAST, GREATEST };

struct side {
	CUstream stream;
	CUdeviceptr data, arrived;
	bool used;
};

struct pair {
	struct workload workload;
	uint64_t which, delay;
	struct side sides[2]; /* the least priority, the greatest */
	CUstream between;
	CUdeviceptr words;
	unsigned slots, blocks, short_blocks;
	uint64_t short_ns; /* that all short blocks take alone */
	CUfunction rotate, step;
};

static void side_init(struct side *side, const struct pair *pair, int priority, bool used)
{
	size_t bytes = (size_t)pair->blocks * THREADS * sizeof(uint32_t);

	side->used = used;
	CU(cuStreamCreateWithPriority(&side->stream, CU_STREAM_NON_BLOCKING, priority));
	CU(cuMemAlloc(&side->data, bytes));
	CU(cuMemAlloc(&side->arrived, sizeof(uint32_t)));
	CU(cuMemsetD8(side->data, 0, bytes));
}

static void launch_short(struct pair *pair)
{
	uint32_t words = pair->short_blocks * SHORT, multiply = 1, add = 1,
		 delay = (uint32_t)pair->delay;
	void *parameters[] = {&pair->words, &words, &multiply, &add, &delay};

	CU(cuLaunchKernel(pair->step, pair->short_blocks, 1, 1, SHORT, 1, 1, 0, pair->between,
			  parameters, NULL));
}

static void measure_short(struct pair *pair)
{
	launch_short(pair); /* the first launch takes longer */
	CU(cuCtxSynchronize());
	uint64_t began = now_ns();
	launch_short(pair);
	CU(cuCtxSynchronize());
	pair->short_ns = now_ns() - began;
}

static void pair_init(struct pair *pair)
{
	const struct workload *w = &pair->workload;
	int least, greatest, resident;

	pair->rotate = workload_kernel(w, "rotate");
	pair->step = workload_kernel(w, "step");
	CU(cuOccupancyMaxActiveBlocksPerMultiprocessor(&resident, pair->rotate, THREADS, 0));
	pair->slots = (unsigned)(resident * w->sm_count);
	pair->blocks = pair->slots / 2 + (pair->slots + 3) / 4;
	pair->short_blocks = WAVES * pair->slots;
	CU(cuCtxGetStreamPriorityRange(&least, &greatest));
	side_init(&pair->sides[0], pair, least, pair->which != GREATEST);
	side_init(&pair->sides[1], pair, greatest, pair->which != LEAST);
	CU(cuStreamCreate(&pair->between, CU_STREAM_NON_BLOCKING));
	CU(cuMemAlloc(&pair->words, (size_t)pair->short_blocks * SHORT * sizeof(uint32_t)));
	CU(cuMemsetD32(pair->words, 0, (size_t)pair->short_blocks * SHORT));
	CU(cuCtxSynchronize());
	measure_short(pair);
}

static void launch_cooperative(struct pair *pair, struct side *side)
{
	void *parameters[] = {&side->data, &side->arrived};

	if (!side->used)
		return;
	CU(cuMemsetD32Async(side->arrived, 0, 1, side->stream));
	CU(cuLaunchCooperativeKernel(pair->rotate, pair->blocks, 1, 1, THREADS, 1, 1, 0,
				     side->stream, parameters));
}

static bool is_done(const struct pair *pair)
{
	for (unsigned i = 0; i < countof(pair->sides); i++) {
		CUresult result = cuStreamQuery(pair->sides[i].stream);

		if (result == CUDA_ERROR_NOT_READY)
			return false;
		CU(result);
	}
	return true;
}

static void run_round(struct pair *pair, struct random *random, uint64_t round)
{
	uint64_t limit = now_ns() + LIMIT_MS * UINT64_C(1000000);

	launch_short(pair);
	launch_cooperative(pair, &pair->sides[0]);
	/* At best while the first gets the places of the last short blocks. */
	sleep_until_ns(now_ns() + random_next(random) % (2 * pair->short_ns + 1));
	launch_cooperative(pair, &pair->sides[1]);
	while (!is_done(pair)) {
		if (now_ns() > limit) {
			printf("{\"program\": \"cooperative-pair\", \"deadlock\": true, "
			       "\"round\": %llu, \"blocks\": %u, \"slots\": %u}\n",
			       (unsigned long long)round, pair->blocks, pair->slots);
			fflush(stdout);
			_exit(3);
		}
		usleep(10);
	}
}

int main(int argc, char **argv)
{
	struct pair pair = {.workload = {.seed = 1}};
	struct workload *w = &pair.workload;
	const struct workload_option own[] = {
		{"which", OPTION_NUMBER, &pair.which,
		 "0: both; 1, 2: only that with the least, the greatest priority"},
		{"delay", OPTION_NUMBER, &pair.delay, "iterations of a short block"},
		{0},
	};
	uint64_t round = 0;

	workload_parse(w, argc, argv, "cooperative kernels of two priorities at once", own);
	pair.delay = workload_pick(w, pair.delay, 50, 20000);
	if (!w->iterations)
		w->iterations = w->seconds > 0 || w->stop_file ? UINT64_MAX
				: w->gpu                       ? ROUNDS_REAL
							       : ROUNDS;
	workload_open(w, stream_order_ptx);
	pair_init(&pair);
	struct random random = {w->seed};
	workload_ready(w);
	for (; round < w->iterations && !workload_stopped(w); round++)
		run_round(&pair, &random, round);
	CU(cuCtxSynchronize());
	workload_close(w);
	printf("{\"program\": \"cooperative-pair\", \"deadlock\": false, \"rounds\": %llu, "
	       "\"blocks\": %u, \"slots\": %u}\n",
	       (unsigned long long)round, pair.blocks, pair.slots);
	return 0;
}
