/* Random but valid kernels: the same text for the same seed. Signature: (u64 out, u64 in, u32 n).
 *
 * Each is independent of the order in which its blocks run: a thread writes its own word of @out at
 * the index of the thread in the grid, and adds to GENERATED_COUNTERS words behind all of them. @in
 * has GENERATED_INPUTS words.
 */
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

/* The generator's numbers, for others who need some. */
uint32_t random_next(uint64_t *state);
uint32_t random_below(uint64_t *state, uint32_t n);
