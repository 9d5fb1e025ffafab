/* What the tests of the forms share. */
#pragma once

#include "run.h"

/* Totals, to prove that the tests exercised something. */
struct seen {
	unsigned kernels, resumable; /* kernels, and those accepted by resumable */
	unsigned evictions, saves;   /* evictions, and those with saved blocks */
	unsigned partial, returns;   /* launches that left some SMs, and came back to them */
};

/* Fails the test unless each form leaves the native kernel's memory, in @schedules random
 * schedules: with the forms beside the original, and in a module of their own. */
void must_agree(const struct problem *problem, uint64_t seed, unsigned schedules,
		struct seen *seen);
/* The same for each of @n, with its number as seed. */
void all_must_agree(const struct problem *problems, size_t n, unsigned schedules,
		    struct seen *seen);

/* Members of a problem: kernel k in one row of blocks, with a word for each thread. */
#define WORD_EACH(blocks, threads)                                       \
	.kernel = "k", .grid = {blocks, 1, 1}, .block = {threads, 1, 1}, \
	.out_words = (blocks) * (threads)

#define HEAD ".version 7.0\n.target sm_75\n.address_size 64\n"
#define ONE_PARAMETER                                                                          \
	".visible .entry k(.param .u64 out)\n{ .reg .b64 %d<4>; .reg .b32 %r<16>; .reg .pred " \
	"%p<4>;\n"                                                                             \
	"ld.param.u64 %d0, [out];\n"

/* %r0: thread, %r2: thread of the grid (one row of blocks), %d0: address of its word. */
#define OWN_WORD                                                                           \
	"mov.u32 %r0, %tid.y; mov.u32 %r1, %ntid.x; mov.u32 %r2, %tid.x;\n"                \
	"mad.lo.u32 %r0, %r0, %r1, %r2; mov.u32 %r2, %ntid.y; mul.lo.u32 %r1, %r1, %r2;\n" \
	"mov.u32 %r2, %ctaid.y; mov.u32 %r3, %nctaid.x; mov.u32 %r4, %ctaid.x;\n"          \
	"mad.lo.u32 %r2, %r2, %r3, %r4; mad.lo.u32 %r2, %r2, %r1, %r0;\n"                  \
	"mul.wide.u32 %d1, %r2, 4; add.u64 %d0, %d0, %d1;\n"
