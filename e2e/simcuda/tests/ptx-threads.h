/* Kernels in which each thread writes a word. */
#pragma once

#include "ptx-fixture.h"

/* %r1: thread, %r2: n, %d1: out, %d3: where the thread's word is. */
#define KERNEL(body)                                                                      \
	PTX_HEAD ".visible .entry k(.param .u64 out, .param .u32 n)\n{\n"                 \
		 ".reg .pred %p<10>; .reg .b32 %r<30>; .reg .b64 %d<20>;\n"               \
		 ".shared .align 8 .b8 area[1024];\n"                                     \
		 "ld.param.u64 %d1, [out]; ld.param.u32 %r2, [n]; mov.u32 %r1, %tid.x;\n" \
		 "mul.wide.u32 %d2, %r1, 4; add.u64 %d3, %d1, %d2;\n" body "\n}\n"

struct arguments {
	uint32_t *out;
	uint32_t n;
};

/* One block of @threads; @out gets a word of each. */
static inline void must_run(const char *text, uint32_t threads, uint32_t *out, uint32_t n)
{
	struct arguments arguments = {out, n};

	fixture_block_runs(text, threads, 0, &arguments);
}

static inline void must_fault(const char *text, uint32_t threads, const char *message)
{
	uint32_t out[64] = {0};
	struct arguments arguments = {out, 0};

	fixture_block_faults(text, threads, 0, &arguments, message);
}
