/* Kernels whose warps name lanes that exit meanwhile. */
#include <weir/base.h>

#include "../plan.h"

extern const char masks_ptx[];

#define WARP     32u
#define TILE     16u
#define THREADS  96u
#define IN_TILES 86u /* threads of masks_tiles that do not return: of the last tile a few */
/* Steps that a lane makes more than the one before it. */
#define TIMES           40u
#define SIMULATED_TIMES 10u

static uint32_t times_of(const struct plan *plan)
{
	return plan->workload->gpu ? TIMES : SIMULATED_TIMES;
}

/* What a thread counts whose mask names the threads of its warp of the same @class. */
static uint32_t count(uint32_t thread, uint32_t (*class)(uint32_t thread), uint32_t leave,
		      uint32_t times)
{
	uint32_t first = thread / WARP * WARP, sum = 0;

	for (uint32_t t = first; t < first + WARP; t++) {
		uint32_t both = t % leave < thread % leave ? t % leave : thread % leave;

		if (class(t) == class(thread))
			sum += both * times + 1;
	}
	return sum;
}

static uint32_t class_any(uint32_t thread)
{
	(void)thread;
	return 0;
}

static uint32_t class_third(uint32_t thread)
{
	return thread % 3;
}

static uint32_t class_bits(uint32_t thread)
{
	return (thread & 5) != 0;
}

static uint32_t count_tile(uint32_t thread, uint32_t times)
{
	uint32_t first = thread / TILE * TILE, sum = 0;

	for (uint32_t k = 0; k < times; k++) {
		for (uint32_t t = first; t < first + TILE && t < IN_TILES; t++)
			sum += (t + k) & 1;
		sum += first + 1 + k;
	}
	return sum;
}

/* @counts: of a block's threads. */
static struct buffer *want(struct plan *plan, uint32_t blocks, const uint32_t *counts,
			   uint32_t threads)
{
	struct buffer *out = plan_buffer(plan, (size_t)blocks * THREADS * sizeof(uint32_t));
	uint32_t *words = buffer_want(out);

	for (size_t i = 0; i < (size_t)blocks * THREADS; i++)
		words[i] =
			i % THREADS < threads ? counts[i % THREADS] + (uint32_t)(i / THREADS) : 0;
	buffer_zeros(out);
	return out;
}

static void plan_counts(struct plan *plan, const char *kernel, uint32_t blocks,
			uint32_t (*class)(uint32_t thread), uint32_t leave)
{
	uint32_t counts[THREADS], times = times_of(plan);

	for (uint32_t t = 0; t < THREADS; t++)
		counts[t] = count(t, class, leave, times);
	plan_launch(plan, kernel, ((struct shape){{blocks, 1, 1}, {THREADS, 1, 1}, 0}),
		    ARGUMENT(want(plan, blocks, counts, THREADS)->device), ARGUMENT(times));
}

static void plan_active(struct plan *plan, uint32_t blocks)
{
	plan_counts(plan, "masks_active", blocks, class_any, 5);
}

static void plan_match(struct plan *plan, uint32_t blocks)
{
	plan_counts(plan, "masks_match", blocks, class_third, 7);
}

static void plan_ballot(struct plan *plan, uint32_t blocks)
{
	plan_counts(plan, "masks_ballot", blocks, class_bits, 6);
}

static void plan_tiles(struct plan *plan, uint32_t blocks)
{
	uint32_t counts[THREADS], times = times_of(plan), threads = IN_TILES;

	for (uint32_t t = 0; t < THREADS; t++)
		counts[t] = count_tile(t, times);
	plan_launch(plan, "masks_tiles", ((struct shape){{blocks, 1, 1}, {THREADS, 1, 1}, 0}),
		    ARGUMENT(want(plan, blocks, counts, IN_TILES)->device), ARGUMENT(times),
		    ARGUMENT(threads));
}

#define BENCHMARK(name_, function)                                                      \
	{                                                                               \
		.name = name_, .source = "masks", .ptx = masks_ptx, .plan = function,   \
		.unit = "blocks", .sizes = {{300, 100, 20}, {1u << 18, 1u << 16, 500}}, \
	}

const struct benchmark benchmarks[] = {
	BENCHMARK("active", plan_active),
	BENCHMARK("match", plan_match),
	BENCHMARK("ballot", plan_ballot),
	BENCHMARK("tiles", plan_tiles),
};
const size_t benchmark_count = countof(benchmarks);
const char *const benchmark_summary =
	"runs kernels with masks of lanes that exit, and checks their results";
