/* A kernel in a form must leave the same memory as natively. */
#include "agree.h"
#include "persistent.h"
#include "random.h"

#include "generator/generate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Number of generated kernels, from WEIR_SEED on. Sanitizers are slow: they get fewer, and others.
 */
#ifdef __SANITIZE_ADDRESS__
#define GENERATED_COUNT 40
#define GENERATED_FIRST 151
#else
#define GENERATED_COUNT 150
#define GENERATED_FIRST 1
#endif
#define SCHEDULES 3

static uint32_t input[GENERATED_INPUTS];

static unsigned number(const char *name, unsigned otherwise)
{
	const char *text = getenv(name);

	return text ? (unsigned)strtoul(text, NULL, 10) : otherwise;
}

static void generated_kernels(void **state)
{
	unsigned first = number("WEIR_SEED", GENERATED_FIRST),
		 count = number("WEIR_COUNT", GENERATED_COUNT);
	struct seen seen = {0};

	(void)state;
	for (unsigned seed = first; seed < first + count; seed++) {
		struct generated g;
		uint32_t threads;

		generate(&g, seed);
		threads = g.grid[0] * g.grid[1] * g.grid[2] * g.block[0] * g.block[1] * g.block[2];
		must_agree(&(struct problem){.ptx = g.ptx,
					     .kernel = GENERATED_KERNEL,
					     .grid = {g.grid[0], g.grid[1], g.grid[2]},
					     .block = {g.block[0], g.block[1], g.block[2]},
					     .dynamic_shared = g.dynamic_shared,
					     .out_words = threads + GENERATED_COUNTERS,
					     .in = input,
					     .n = seed},
			   seed, SCHEDULES, &seen);
		free(g.ptx);
	}
	assert_true(count < 10 || (seen.evictions > 0 && seen.saves > 0));
	assert_true(count < 10 || (seen.partial > 0 && seen.returns > 0));
	assert_true(count < 10 || seen.resumable * 4 > seen.kernels);
}

/* A thread gives its word to the next one; with more barriers than one might expect. */
#define GIVE                                                                            \
	"st.shared.u32 [%r5], %r2; bar.sync 0; ld.shared.u32 %r2, [%r6]; bar.sync 0;\n" \
	"mad.lo.u32 %r2, %r2, 3, %r0;\n"
#define GIVE_8  GIVE GIVE GIVE GIVE GIVE GIVE GIVE GIVE
#define GIVE_48 GIVE_8 GIVE_8 GIVE_8 GIVE_8 GIVE_8 GIVE_8

/* All combinations of indices that a kernel may read, in grids of three dimensions. */
static const struct problem written[] = {
	{.kernel = "k",
	 .grid = {5, 3, 2},
	 .block = {1, 1, 1},
	 .out_words = 5,
	 .global = "results",
	 .ptx = HEAD
	 ".visible .global .align 4 .b8 results[20];\n.visible .entry k()\n"
	 "{ .reg .b64 %d<2>; .reg .b32 %r<2>;\n mov.u32 %r0, %ctaid.x; mov.u64 %d0, results;\n"
	 "mul.wide.u32 %d1, %r0, 4; add.u64 %d0, %d0, %d1; red.global.add.u32 [%d0], 1; }\n"},
	{.kernel = "k",
	 .grid = {5, 3, 2},
	 .block = {33, 1, 1},
	 .out_words = 3,
	 .ptx = HEAD ONE_PARAMETER "mov.u32 %r0, %ctaid.y; mul.wide.u32 %d1, %r0, 4;\n"
				   "add.u64 %d0, %d0, %d1; red.global.add.u32 [%d0], 1; ret; }\n"},
	{.kernel = "k",
	 .grid = {2, 3, 4},
	 .block = {2, 2, 2},
	 .out_words = 4,
	 .ptx = HEAD ONE_PARAMETER
	 "mov.u32 %r0, %ctaid.x; mov.u32 %r2, %ctaid.z; mul.wide.u32 %d1, %r2, 4;\n"
	 "add.u64 %d0, %d0, %d1; red.global.add.u32 [%d0], %r0; exit; }\n"},
	/* Long along the last axis: tickets with blocks that are apart. */
	{.kernel = "k",
	 .grid = {3, 24, 1},
	 .block = {1, 1, 1},
	 .out_words = 72,
	 .ptx = HEAD ONE_PARAMETER
	 "mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ctaid.y; mad.lo.u32 %r2, %r1, 3, %r0;\n"
	 "mul.wide.u32 %d1, %r2, 4; add.u64 %d0, %d0, %d1; red.global.add.u32 [%d0], 1; ret; }\n"},
	{.kernel = "k",
	 .grid = {2, 2, 20},
	 .block = {1, 1, 1},
	 .out_words = 80,
	 .ptx = HEAD ONE_PARAMETER
	 "mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ctaid.y; mov.u32 %r2, %ctaid.z;\n"
	 "mad.lo.u32 %r2, %r2, 2, %r1; mad.lo.u32 %r2, %r2, 2, %r0; mul.wide.u32 %d1, %r2, 4;\n"
	 "add.u64 %d0, %d0, %d1; red.global.add.u32 [%d0], 1; ret; }\n"},
	{.kernel = "k",
	 .grid = {7, 1, 1},
	 .block = {64, 1, 1},
	 .out_words = 1,
	 .ptx = HEAD ONE_PARAMETER "red.global.add.u32 [%d0], 1; bra END; END: ret; }\n"},
	/* A guarded barrier, threads that exit by a guarded ret, and a trap that is never reached.
	 */
	{.kernel = "k",
	 .grid = {6, 2, 1},
	 .block = {96, 1, 1},
	 .out_words = 4,
	 .ptx = HEAD ONE_PARAMETER
	 "mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; setp.gt.u32 %p0, %r0, 70; setp.gt.u32 %p1, "
	 "%r1, 90;\n"
	 "@%p1 trap; @%p0 ret; @!%p1 bar.sync 0; setp.gt.u32 %p2, %r0, 31; @%p2 exit;\n"
	 "bar.red.popc.u32 %r2, 1, %p1; bar.sync 2; red.global.add.u32 [%d0], 1;\n"
	 "red.global.add.u32 [%d0+4], %r2; }\n"},
	/* Shared memory that the next block must not write yet. */
	{WORD_EACH(30, 128),
	 .ptx = HEAD ONE_PARAMETER
	 ".shared .align 4 .b8 s[512];\n mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x;\n"
	 "mad.lo.u32 %r2, %r1, 128, %r0; mul.wide.u32 %d1, %r2, 4; add.u64 %d0, %d0, %d1;\n"
	 "mov.u32 %r3, s; shl.b32 %r4, %r0, 2; add.u32 %r4, %r4, %r3; st.shared.u32 [%r4], %r2;\n"
	 "bar.sync 0; xor.b32 %r5, %r0, 64; shl.b32 %r5, %r5, 2; add.u32 %r5, %r5, %r3;\n"
	 "ld.shared.u32 %r6, [%r5]; st.global.u32 [%d0], %r6; ret; }\n"},
	/* Variables of the module, named in every way, and nested calls. */
	{.kernel = "k",
	 .grid = {9, 1, 1},
	 .block = {32, 1, 1},
	 .out_words = 4,
	 .global = "results",
	 .ptx = HEAD
	 ".visible .global .align 4 .b8 results[16];\n.global .align 8 .b64 factors[2] = {3, 5};\n"
	 ".const .align 8 .b64 c[2] = {7, 11};\n.const .align 4 .b32 __cudart_t[2] = {13, 17};\n"
	 ".func (.param .b32 o) inner(.param .b32 i)\n;\n"
	 ".func (.param .b32 o) outer(.param .b32 i) { .reg .b32 %r<2>; ld.param.b32 %r0, [i];\n"
	 "{ .param .b32 a; .param .b32 b; st.param.b32 [a], %r0; call (b), inner, (a);\n"
	 "ld.param.b32 %r1, [b]; } st.param.b32 [o], %r1; ret; }\n"
	 ".func (.param .b32 o) inner(.param .b32 i) { .reg .b32 %r<3>; ld.param.b32 %r0, [i];\n"
	 "ld.const.b32 %r1, [__cudart_t+4]; mul.lo.u32 %r0, %r0, %r1; st.param.b32 [o], %r0; ret; "
	 "}\n"
	 ".visible .entry k()\n{ .reg .b64 %d<9>; .reg .b32 %r<9>; .reg .pred %p<2>;\n"
	 "mov.u32 %r0, %ctaid.x; ld.global.u64 %d0, [factors+8]; mov.u64 %d1, factors;\n"
	 "ld.global.u64 %d2, [%d1]; mov.u64 %d1, c; ld.const.u64 %d3, [%d1]; ld.const.u64 %d4, "
	 "[c+8];\n"
	 "mad.lo.u64 %d0, %d2, %d0, %d3; mad.lo.u64 %d0, %d0, %d4, %d3; cvt.u32.u64 %r1, %d0;\n"
	 "{ .param .b32 a; .param .b32 b; st.param.b32 [a], %r0; call (b), outer, (a);\n"
	 "ld.param.b32 %r2, [b]; } red.global.add.u32 [results], %r1; mov.u64 %d5, results+4;\n"
	 "red.global.add.u32 [%d5], %r2; setp.gt.u32 %p0, %r0, 3; mov.u64 %d6, results;\n"
	 "cvta.global.u64 %d6, %d6; @%p0 atom.add.u32 %r3, [%d6+8], 1;\n"
	 "mov.u64 %d7, results+16; @!%p0 red.global.max.u32 [%d7+-4], %r0; }\n"},
	/* Stores that are wider than the alignment of their variables, which have the right address
	 * natively. */
	{WORD_EACH(9, 8), .dynamic_shared = 64,
	 .ptx = HEAD ".shared .align 4 .b8 first[64];\n.shared .align 1 .b8 second[64];\n"
		     ".extern .shared .align 4 .b8 last[];\n" ONE_PARAMETER OWN_WORD
		     ".shared .align 2 .b8 own[32];\n setp.gt.u32 %p0, %r0, 3; @%p0 bra END;\n"
		     "shl.b32 %r3, %r0, 4; mov.u32 %r4, first; add.u32 %r4, %r4, %r3; mov.u32 %r5, "
		     "second;\nadd.u32 %r5, %r5, %r3; mov.u32 %r6, last; add.u32 %r6, %r6, %r3;\n"
		     "st.shared.v4.u32 [%r4], {%r0, %r2, %r0, %r2}; st.shared.u64 [own+8], %d1;\n"
		     "st.shared.v4.u32 [%r5], {%r0, %r2, %r0, %r2};\n"
		     "st.shared.v4.u32 [%r6], {%r0, %r2, %r0, %r2}; END: bar.sync 0;\n"
		     "AGAIN: ld.shared.u32 %r7, [first+52]; ld.shared.u32 %r8, [last+52];\n"
		     "add.u32 %r7, %r7, %r8; sub.u32 %r0, %r0, 1; setp.gt.s32 %p0, %r0, 0;\n"
		     "@%p0 bra AGAIN; st.global.u32 [%d0], %r7; }\n"},
	/* Stores behind the end of a variable. */
	{WORD_EACH(30, 32), .dynamic_shared = 1024,
	 .ptx = HEAD
	 ".extern .shared .align 4 .b8 last[];\n" ONE_PARAMETER OWN_WORD
	 ".shared .align 4 .b8 own[24];\n mov.u32 %r4, own; mad.lo.u32 %r4, %r0, 8, %r4;\n"
	 "mov.u32 %r5, 0xfedcba98; st.shared.v2.u32 [%r4], {%r2, %r5}; bar.sync 0;\n"
	 "st.shared.v2.u32 [last], {%r5, %r5}; ld.shared.u32 %r6, [own+16];\n"
	 "st.global.u32 [%d0], %r6; ret; }\n"},
	{WORD_EACH(5, 64),
	 .ptx = HEAD ONE_PARAMETER OWN_WORD
	 ".shared .b32 s[64]; mov.u32 %r4, s; mad.lo.u32 %r5, %r0, 4, %r4; xor.b32 %r6, %r0, 33;\n"
	 "mad.lo.u32 %r6, %r6, 4, %r4; mov.u32 %r7, 0; AGAIN:\n" GIVE_48
	 "add.u32 %r7, %r7, 1; setp.lt.u32 %p0, %r7, 3; @%p0 bra AGAIN; st.global.u32 [%d0], %r2; "
	 "}\n"},
	/* Programmatic dependence. */
	{WORD_EACH(9, 64),
	 .ptx = ".version 8.0\n.target sm_90\n.address_size 64\n" ONE_PARAMETER OWN_WORD
		"griddepcontrol.wait; setp.gt.u32 %p0, %r0, 50; @%p0 "
		"griddepcontrol.launch_dependents;\n"
		"AGAIN: sub.u32 %r0, %r0, 1; setp.gt.s32 %p0, %r0, 0; @%p0 bra AGAIN;\n"
		"griddepcontrol.launch_dependents; st.global.u32 [%d0], %r2; }\n"},
	/* Threads exit in the middle of a warp, and the others name them. */
	{WORD_EACH(9, 64),
	 .ptx = HEAD ONE_PARAMETER OWN_WORD
	 "setp.gt.u32 %p0, %r0, 50; @%p0 ret; mov.u32 %r7, -1;\n"
	 "shfl.sync.down.b32 %r4|%p1, %r2, 3, 31, %r7; shfl.sync.bfly.b32 %r5, %r4, 16, 31, -1;\n"
	 "add.u32 %r4, %r4, %r5; vote.sync.ballot.b32 %r5, %p1, 0xffffffff; add.u32 %r4, %r4, "
	 "%r5;\n"
	 "st.global.u32 [%d0], %r4; }\n"},
	/* In iterations, in blocks with a partial warp, with all instructions that name lanes. */
	{.kernel = "k",
	 .grid = {7, 2, 1},
	 .block = {8, 5, 1},
	 .out_words = 14 * 40,
	 .ptx = HEAD ONE_PARAMETER OWN_WORD
	 "mov.u32 %r3, 0; AGAIN: shfl.sync.idx.b32 %r4, %r2, 1, 31, -1; add.u32 %r3, %r3, %r4;\n"
	 "match.any.sync.b32 %r5, %r2, -1; bar.warp.sync -1; add.u32 %r3, %r3, %r5;\n"
	 "activemask.b32 %r5; setp.ne.u32 %p1, %r0, 7; vote.sync.all.pred %p2, %p1, -1;\n"
	 "vote.sync.ballot.b32 %r6, %p2, %r5; xor.b32 %r3, %r3, %r6; st.global.u32 [%d0], %r3;\n"
	 "sub.u32 %r0, %r0, 2; setp.gt.s32 %p0, %r0, 0; @%p0 bra AGAIN; exit; }\n"},
	/* The same with barriers in between, where the remaining threads reduce. */
	{WORD_EACH(11, 96),
	 .ptx = HEAD ONE_PARAMETER OWN_WORD
	 "setp.gt.u32 %p0, %r0, 70; @%p0 ret; shfl.sync.up.b32 %r3, %r2, 1, 0, -1; bar.sync 0;\n"
	 "setp.gt.u32 %p0, %r0, 45; @%p0 exit; shfl.sync.bfly.b32 %r4, %r3, 2, 31, -1;\n"
	 "and.b32 %r5, %r0, 1; setp.eq.u32 %p1, %r5, 0; bar.red.popc.u32 %r5, 0, %p1;\n"
	 "add.u32 %r4, %r4, %r5; setp.gt.u32 %p0, %r0, 40; @%p0 bra SKIP; bar.sync 1;\n"
	 "shfl.sync.down.b32 %r6, %r4, 1, 31, -1; add.u32 %r4, %r4, %r6; bar.sync 0;\n"
	 "SKIP: st.global.u32 [%d0], %r4; }\n"},
	/* The last warp of a reduction. */
	{WORD_EACH(8, 128), .ptx = HEAD ONE_PARAMETER OWN_WORD
			    "bar.sync 0; setp.gt.u32 %p0, %r0, 31; @%p0 bra END; "
			    "shfl.sync.bfly.b32 %r3, %r2, 4, 31, -1;\n"
			    "st.global.u32 [%d0], %r3; END: ret; }\n"},
	/* Other spellings of the parts of an index. */
	{.kernel = "k",
	 .grid = {5, 3, 2},
	 .block = {1, 1, 1},
	 .out_words = 30,
	 .ptx = HEAD ONE_PARAMETER
	 "mov.u32 %r0, %ctaid.b; mov.u32 %r1, %nctaid.g; mov.u32 %r2, %ctaid.g;\n"
	 "mad.lo.u32 %r0, %r0, %r1, %r2; mov.u32 %r1, %nctaid.r; mov.u32 %r2, %ctaid.r;\n"
	 "mad.lo.u32 %r0, %r0, %r1, %r2; mul.wide.u32 %d1, %r0, 4; add.u64 %d0, %d0, %d1;\n"
	 "red.global.add.u32 [%d0], 1; ret; }\n"},
	/* A function's result differs between threads. */
	{WORD_EACH(9, 64),
	 .ptx = HEAD
	 ".func (.param .b32 o) f(.param .b32 i) { .reg .b32 %r<2>; ld.param.b32 %r0, [i];\n"
	 "st.param.b32 [o], %r0; ret; }\n" ONE_PARAMETER OWN_WORD ".shared .b32 s[64];\n"
	 "{ .param .b32 a; .param .b32 b; st.param.b32 [a], %r0; call (b), f, (a);\n"
	 "ld.param.b32 %r3, [b]; } mov.u32 %r4, s; mad.lo.u32 %r5, %r0, 4, %r4;\n"
	 "st.shared.u32 [%r5], %r2; setp.gt.u32 %p0, %r3, 40; @%p0 bra END; bar.sync 0;\n"
	 "xor.b32 %r6, %r0, 32; setp.gt.u32 %p1, %r6, 40; @%p1 bra END; mad.lo.u32 %r5, %r6, 4, "
	 "%r4;\n"
	 "ld.shared.u32 %r7, [%r5]; st.global.u32 [%d0], %r7; END: ret; }\n"},
	/* One thread's path has no barrier, and the branch is not known to be uniform. */
	{.kernel = "k",
	 .grid = {9, 1, 1},
	 .block = {64, 1, 1},
	 .out_words = 2,
	 .ptx = HEAD ONE_PARAMETER
	 "mov.u32 %r0, %tid.x; AGAIN: bar.sync 0; sub.u32 %r0, %r0, 7; setp.gt.s32 %p0, %r0, 0;\n"
	 "@%p0 bra AGAIN; red.global.add.u32 [%d0], 1; }\n"},
};

static void written_kernels(void **state)
{
	struct seen seen = {0};

	(void)state;
	all_must_agree(written, sizeof(written) / sizeof(written[0]), 30, &seen);
	assert_true(seen.evictions > 0);
}

/* Every seventh block takes twenty times as long as the others. */
static const struct problem mixed = {
	WORD_EACH(70, 64),
	.ptx = HEAD ONE_PARAMETER OWN_WORD
	"mov.u32 %r3, 100; rem.u32 %r4, %r4, 7; setp.eq.u32 %p0, %r4, 0; @%p0 mov.u32 %r3, 2000;\n"
	"AGAIN: mad.lo.u32 %r2, %r2, 5, %r3; sub.u32 %r3, %r3, 1; setp.ne.u32 %p0, %r3, 0;\n"
	"@%p0 bra AGAIN; st.global.u32 [%d0], %r2; }\n"};

static void some_blocks_are_finished_and_some_saved(void **state)
{
	struct run run;

	(void)state;
	if (!run_init(&run, &mixed, 1))
		fail_msg("%s", run.message);
	for (unsigned k = 0; k < 5000 && !(run.saves && run.drains); k++)
		if (!run_form(&run, WEIR_RESUMABLE))
			fail_msg("%s", run.message);
	assert_true(run.saves > 0);
	assert_true(run.drains > 0);
	run_deinit(&run);
}

/* A block ends when the first input word says so. */
static uint32_t may_end[1];
static const struct problem waiting = {
	.kernel = "k",
	.grid = {1, 1, 1},
	.block = {32, 1, 1},
	.out_words = 32,
	.in = may_end,
	.ptx = HEAD
	".visible .entry k(.param .u64 out, .param .u64 in)\n{ .reg .b64 %d<2>; .reg .b32 %r<1>;\n"
	".reg .pred %p0; ld.param.u64 %d0, [out]; ld.param.u64 %d1, [in];\n"
	"AGAIN: ld.volatile.global.u32 %r0, [%d1]; setp.eq.u32 %p0, %r0, 0; @%p0 bra AGAIN;\n"
	"st.global.u32 [%d0], %r0; }\n"};

static void a_block_is_finished_if_it_ends_in_time(void **state)
{
	static const struct {
		uint32_t n_long, took_ms, drain_ms, may_end;
		bool saved;
	} cases[] = {
		{16, 1000, 2000, true, false},
		{0, 0, 2000, true, true},    /* nothing is known */
		{16, 950, 1000, true, true}, /* it may take a little longer than others */
		{16, 2000, 1000, true, true},
		{15, 1000, 2000, true, false},
		{4, 1000, 2000, true, false},
		{3, 1000, 2000, true, true}, /* few took as long as this one has run */
		{16, 15, 20, false, true},   /* it takes longer than all others did */
	};
	struct run run;

	(void)state;
	may_end[0] = 1;
	if (!run_init(&run, &waiting, 1))
		fail_msg("%s", run.message);
	for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
		struct weir_words words;

		may_end[0] = cases[k].may_end;
		if (!run_asked(&run, cases[k].n_long, cases[k].took_ms * 1000000,
			       cases[k].drain_ms * 1000000, &words))
			fail_msg("%s", run.message);
		if (words.saved != cases[k].saved || words.drained == cases[k].saved)
			fail_msg("case %zu: %u saved, %u finished", k, words.saved, words.drained);
	}
	run_deinit(&run);
}

/* Kernels that must be refused, and why. */
static const struct {
	const char *code;
	bool sliced;
	const char *reason;
} refused[] = {
	{"barrier.cluster.arrive; barrier.cluster.wait;", true, "threads have exited"},
	{"call.uni place, ();", false, "place, which reads the block's index"},
	{"mov.u32 %r0, %envreg2;", false, "cooperative grids"},
	{"mov.u64 %d1, %gridid;", false, "launches"},
	{"call.uni moves, ();", false, "moves, which contains an unsupported instruction"},
	{"L: mbarrier.init.shared.b64 [s], 1; @%p0 bra L;", true, "mbarriers in a loop"},
	{"@%p0 bra B; A: mbarrier.init.shared.b64 [s], 1; B: @%p1 bra A;", true,
	 "mbarriers in a loop"},
	{"multimem.cp.async.bulk.global.shared::cta.bulk_group [%d0], [s], 16;", true, "outlast"},
	{"@%p0 wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %d0, %d1, "
	 "%p1, 1, 1, 0, 0; wgmma.wait_group.sync.aligned 1;",
	 true, "before their wgmma.mma_async is complete"},
	{"cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes."
	 "cta_group::2 [%r0], [%d0, {%r1}], [s];",
	 true, "two blocks of a cluster"},
	{"tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;", true, "tensor memory"},
	{"tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned "
	 "[%d0], [s], 128;",
	 true, "outlast"},
	{"call.uni early, ();", false, "early, which contains an unsupported instruction"},
	{"call.uni index, ();", false, "index, which reads the block's index"},
	{"call.uni waits, ();", true, "waits, which waits at a barrier"},
	{"call.uni deep, ();", true, "waits, which waits at a barrier"},
	{"call.uni ends, ();", true, "ends, which ends the thread"},
	{"call.uni foreign, ();", false, "foreign, which is not in this module"},
	{"call.uni strange, ();", false, "strange, which"},
	{"mov.u64 %d1, waits; call %d1, (), P;", false, "foreign, which"},
	{"@%p0 ret; shfl.sync.idx.b32 %r0, %r0, 0, 31, 0xff; call.uni shuffles, ();", true,
	 "a call of shuffles, which may wait"},
	{"call.uni fades, (); @%p0 ret; bar.warp.sync 0xff;", true, "calls fades, which may wait"},
	{"@%p0 ret; call.uni shuffles, ();", true, "a call of shuffles, which may wait"},
	{"mov.u32 %r0, 32; and.b32 %r1, %r0, 3; bar.sync %r1, %r0;", true, "in a register"},
	{"mov.u32 %r1, 3; @%p0 mov.u32 %r1, 4; bar.sync %r1, 32;", true, "in a register"},
	{"@%p0 mov.u32 %r1, 3; bar.sync %r1, 32;", true, "in a register"},
	{"@%p0 bra A; bar.arrive 1, 64; bra B; A: bar.sync 1; B:", true,
	 "with and without a thread count"},
	{"mov.u32 %r1, 3; @%p0 bra A; bar.arrive 3, 64; bra B; A: bar.sync %r1; B:", true,
	 "with and without a thread count"},
	{".global .b32 own; red.global.add.u32 [own], 1;", false,
	 "a global variable of its own, own"},
	{"clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 "
	 "[s], [s];",
	 false, "have not begun"},
};

struct verdicts {
	bool sliced;
	char reason[256];
};

static void note(void *data, const struct weir_verdict *verdict)
{
	struct verdicts *verdicts = data;

	if (verdict->form == WEIR_SLICED)
		verdicts->sliced = verdict->eligible;
	else
		snprintf(verdicts->reason, sizeof(verdicts->reason), "%s", verdict->reason);
}

static void refused_kernels(void **state)
{
	static const char functions[] =
		".extern .func foreign;\n.func index { .reg .b32 %r; mov.u32 %r, %ctaid.x; ret; }\n"
		".func waits { bar.sync 0; ret; }\n.func deep { call.uni waits, (); ret; }\n"
		".func early { griddepcontrol.launch_dependents; ret; }\n.func ends { exit; "
		"}\n.func place { .reg .b32 %r; mov.u32 %r, %clusterid.y; ret; }\n"
		".func moves { setmaxnreg.inc.sync.aligned.u32 64; ret; }\n.func shuffles { "
		"bar.warp.sync -1; ret; }\n"
		".func fades { .reg .b32 %m; .reg .pred %p; activemask.b32 %m; mov.pred %p, 0;\n"
		"L: bar.warp.sync %m; @%p bra L; ret; }\n"
		".func strange { .reg .b64 %d; mov.u64 %d, %gridid; ret; }\n";

	(void)state;
	for (size_t k = 0; k < sizeof(refused) / sizeof(refused[0]); k++) {
		struct verdicts verdicts = {0};
		struct weir_transform_options options = {.forms = 1u << WEIR_SLICED |
								  1u << WEIR_PERSISTENT,
							 .verdict = note,
							 .data = &verdicts};
		struct weir_error error;
		char text[2048], *out;
		size_t len;

		snprintf(text, sizeof(text),
			 ".version 8.0\n.target sm_90a\n.address_size 64\n%s"
			 ".visible .entry k()\n{ .reg .b32 %%r<4>; .reg .b64 %%d<4>; "
			 ".reg .f32 %%f<4>; .reg .pred "
			 "%%p<2>;\n"
			 "mov.u32 %%r0, %%tid.x; setp.gt.u32 %%p0, %%r0, 9; setp.gt.u32 %%p1, "
			 "%%r0, 8;\n"
			 ".shared .align 8 .b8 s[8];\nP: .callprototype ()_ ();\n%s ret; }\n",
			 functions, refused[k].code);
		assert_int_equal(weir_transform(&out, &len, text, strlen(text), &options, &error),
				 0);
		free(out);
		if (verdicts.sliced != refused[k].sliced ||
		    !strstr(verdicts.reason, refused[k].reason))
			fail_msg("%s: sliced %d, persistent '%s'", refused[k].code, verdicts.sliced,
				 verdicts.reason);
	}
}

/* `test-forms print SEED` prints one kernel. */
static int print(const char *seed)
{
	struct generated g;

	generate(&g, strtoul(seed, NULL, 10));
	fputs(g.ptx, stdout);
	free(g.ptx);
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(written_kernels),
		cmocka_unit_test(some_blocks_are_finished_and_some_saved),
		cmocka_unit_test(a_block_is_finished_if_it_ends_in_time),
		cmocka_unit_test(refused_kernels),
		cmocka_unit_test(generated_kernels),
	};
	uint64_t random = 1;

	if (argc == 3 && !strcmp(argv[1], "print"))
		return print(argv[2]);
	for (unsigned k = 0; k < GENERATED_INPUTS; k++)
		input[k] = random_next(&random);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
