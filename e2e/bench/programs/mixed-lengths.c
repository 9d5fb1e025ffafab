#include "mixed-lengths.h"

#include <weir/base.h>

/* As in mixed-lengths.cu. */
#define THREADS 256
#define VALUES  16
#define FACTOR  1664525u
#define ADDEND  1013904223u

#define SHORT_STEPS     18 /* of a block of 5 us, if the GPU is full */
#define SIMULATED_STEPS 2
#define LONGEST         1000 /* times the shortest */
#define RARE            4096
#define TAIL_PART       16 /* mixed_rare has so many times as many blocks as mixed_tail */

extern const char mixed_lengths_ptx[];

struct wanted {
	const uint32_t *steps;
	uint32_t *out;
};

/* After n steps a value x is factor * x + addends * (what each step adds). */
static void jump(uint32_t n, uint32_t *factor, uint32_t *addends)
{
	uint32_t step_factor = FACTOR, step_addends = 1;

	*factor = 1;
	*addends = 0;
	for (; n; n >>= 1) {
		if (n & 1) {
			*addends = *addends * step_factor + step_addends;
			*factor *= step_factor;
		}
		step_addends *= step_factor + 1;
		step_factor *= step_factor;
	}
}

static void want_block(void *context, size_t block)
{
	const struct wanted *wanted = context;
	uint32_t factor, addends, all = 0;

	jump(wanted->steps[block], &factor, &addends);
	for (uint32_t thread = 0; thread < THREADS; thread++) {
		uint32_t first = (uint32_t)block * THREADS, sum = 0;

		for (uint32_t k = 0; k < VALUES; k++) {
			uint32_t value = factor * (first + thread + k) + addends * (ADDEND + k);

			sum += value ^ (first + THREADS - 1 - thread + k);
		}
		all ^= sum;
	}
	wanted->out[block] = all;
}

/* Lengths with a density of 1 / length^2 between 1 and LONGEST. */
static uint32_t tail_length(struct random *random)
{
	double part = random_below(random, 1u << 20) / (double)(1u << 20);

	return (uint32_t)(1 / (1 - part * (1 - 1.0 / LONGEST)));
}

static void plan_kernel(struct plan *plan, const char *kernel, uint32_t blocks, bool is_rare)
{
	struct buffer *lengths = plan_buffer(plan, blocks * sizeof(uint32_t));
	struct buffer *out = plan_buffer(plan, blocks * sizeof(uint32_t));
	uint32_t unit = plan->workload->gpu ? SHORT_STEPS : SIMULATED_STEPS;
	uint32_t *steps = buffer_input(lengths);

	for (uint32_t b = 0; b < blocks; b++) {
		uint32_t length =
			is_rare ? (b % RARE == RARE / 2 ? LONGEST : 1) : tail_length(&plan->random);

		steps[b] = (b < blocks / 3 * 2 ? length : 1) * unit;
	}
	buffer_zeros(out);
	in_parallel(blocks, want_block, &(struct wanted){steps, buffer_want(out)});
	plan_launch(plan, kernel, ((struct shape){{blocks, 1, 1}, {THREADS, 1, 1}, 0}),
		    ARGUMENT(out->device), ARGUMENT(lengths->device));
}

static void plan_mixed(struct plan *plan, uint32_t size)
{
	plan_kernel(plan, "mixed_rare", size * TAIL_PART, true);
	plan_kernel(plan, "mixed_tail", size, false);
}

const struct benchmark mixed_lengths = {
	.name = "mixed-lengths",
	.source = "PEP",
	.ptx = mixed_lengths_ptx,
	.unit = "blocks",
	.sizes = {{400, 200, 20}, {1u << 17, 1u << 16, 1000}},
	.plan = plan_mixed,
};
