/* What rewritten kernels and their launcher agree on: the hidden parameters, appended behind the
 * kernel's own, and the words in device memory that they point at. Little endian, naturally
 * aligned.
 *
 * A hidden parameter is one struct, `.param .align 8 .b8 name[sizeof]`, the last of the kernel.
 */
#pragma once

#include <assert.h>
#include <stdint.h>

#define WEIR_PREEMPT_ABI 1

/* Sliced: the launch is a part of the grid, of grid dimensions of its own. */
struct weir_slice {
	uint32_t first[3]; /* added to %ctaid */
	uint32_t grid[3];  /* instead of %nctaid */
};
static_assert(sizeof(struct weir_slice) == 24, "layout");
