/* Random but valid kernels: one seed always makes the same text. Signature: (u64 out, u64 in, u32
 * n).
 *
 * The order of blocks does not matter: a thread writes only its own word of @out and adds to
 * GENERATED_COUNTERS words behind them. @in has GENERATED_INPUTS words. */
#pragma once

#include <stdint.h>

#define GENERATED_INPUTS   256u
#define GENERATED_COUNTERS 16u
#define GENERATED_KERNEL   "generated"

struct generated {
	uint32_t grid[3], block[3];
	uint32_t dynamic_shared;
	char *ptx; /* for free() */
};

void generate(struct generated *out, uint64_t seed);
