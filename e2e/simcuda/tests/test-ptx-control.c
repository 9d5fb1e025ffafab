/* Threads that diverge, wait for each other, call, and end. */
#include "ptx-fixture.h"

#include <errno.h>
#include <stdio.h>

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
static int run(const char *text, uint32_t threads, uint32_t *out, uint32_t n,
	       struct ptx_error *error)
{
	struct arguments arguments = {out, n};
	struct ptx_module *module = fixture_load(text);
	int r = fixture_run(module, "k", DIM(1), DIM(threads), 0, &arguments, error);

	ptx_module_free(module);
	return r;
}

static void must_run(const char *text, uint32_t threads, uint32_t *out, uint32_t n)
{
	struct ptx_error error;
	int r = run(text, threads, out, n, &error);

	if (r)
		fail_msg("%d, line %d: %s", r, error.line, error.message);
}

static void must_fault(const char *text, uint32_t threads, const char *message)
{
	uint32_t out[64] = {0};
	struct ptx_error error;

	assert_int_equal(run(text, threads, out, 0, &error), -EFAULT);
	if (!strstr(error.message, message))
		fail_msg("'%s' is not in '%s'", message, error.message);
	assert_true(error.line > 0);
}

static void loops_of_different_length(void **state)
{
	uint32_t out[48];

	(void)state;
	must_run(KERNEL("mov.u32 %r3, 0; mov.u32 %r4, 0;\n"
			"L: setp.ge.u32 %p1, %r3, %r1; @%p1 bra DONE;\n"
			"add.u32 %r4, %r4, %r3; add.u32 %r3, %r3, 1; bra.uni L;\n"
			"DONE: st.global.u32 [%d3], %r4; ret;"),
		 48, out, 0);
	for (uint32_t i = 0; i < 48; i++)
		assert_int_equal(out[i], i * (i - 1) / 2);
}

/* After branches have joined, all lanes are active together again. */
static void branches_join(void **state)
{
	uint32_t out[32];

	(void)state;
	must_run(KERNEL("and.b32 %r3, %r1, 3; setp.eq.u32 %p1, %r3, 0; setp.lt.u32 %p2, %r3, 2;\n"
			"@%p1 bra A; @%p2 bra B; mov.u32 %r4, 2; bra C;\n"
			"A: mov.u32 %r4, 0; bra C;\n"
			"B: mov.u32 %r4, 1;\n"
			"C: activemask.b32 %r5; add.u32 %r4, %r4, %r5; st.global.u32 [%d3], %r4;\n"
			"exit;"),
		 32, out, 0);
	for (uint32_t i = 0; i < 32; i++)
		assert_int_equal(out[i], 0xffffffff + (i % 4 < 2 ? i % 4 : 2));
}

static void indexed_branch(void **state)
{
	uint32_t out[32];
	static const uint32_t want[] = {10, 20, 30};

	(void)state;
	must_run(KERNEL("rem.u32 %r3, %r1, 3;\n"
			"LIST: .branchtargets A, B, C;\n"
			"brx.idx %r3, LIST;\n"
			"A: mov.u32 %r4, 10; bra E;\nB: mov.u32 %r4, 20; bra E;\nC: mov.u32 %r4, "
			"30;\n"
			"E: st.global.u32 [%d3], %r4; ret;"),
		 32, out, 0);
	for (uint32_t i = 0; i < 32; i++)
		assert_int_equal(out[i], want[i % 3]);
	must_fault(KERNEL("LIST: .branchtargets A;\nbrx.idx %r1, LIST;\nA: ret;"), 2, "brx.idx: 1");
}

/* The lowest thread of a warp waits for what a later one writes. */
static void spin_within_a_warp(void **state)
{
	uint32_t out[32] = {0};

	(void)state;
	must_run(KERNEL("setp.eq.u32 %p1, %r1, 31; @%p1 bra WRITE;\n"
			"WAIT: ld.volatile.global.u32 %r3, [%d1+124]; setp.eq.u32 %p2, %r3, 0;\n"
			"@%p2 bra WAIT; st.global.u32 [%d3], %r3; ret;\n"
			"WRITE: st.global.u32 [%d1+124], 7; ret;"),
		 32, out, 0);
	for (uint32_t i = 0; i < 32; i++)
		assert_int_equal(out[i], 7);
}

static void spin_between_warps(void **state)
{
	uint32_t out[96] = {0};

	(void)state;
	must_run(KERNEL("setp.ge.u32 %p1, %r1, 64; @%p1 bra WRITE;\n"
			"WAIT: ld.acquire.gpu.global.u32 %r3, [%d1+380]; setp.eq.u32 %p2, %r3, 0;\n"
			"@%p2 bra WAIT; st.global.u32 [%d3], %r3; ret;\n"
			"WRITE: st.release.gpu.global.u32 [%d1+380], 7; ret;"),
		 96, out, 0);
	for (uint32_t i = 0; i < 64; i++)
		assert_int_equal(out[i], 7);
}

/* Each thread reads what its mirror image wrote, over the barrier. */
static void barrier_orders_shared_memory(void **state)
{
	uint32_t out[200];

	(void)state;
	must_run(KERNEL("shl.b32 %r3, %r1, 2; mov.u32 %r4, area; add.u32 %r5, %r4, %r3;\n"
			"st.shared.u32 [%r5], %r1; bar.sync 0;\n"
			"mov.u32 %r6, 199; sub.u32 %r6, %r6, %r1; shl.b32 %r6, %r6, 2;\n"
			"add.u32 %r6, %r4, %r6; ld.shared.u32 %r7, [%r6];\n"
			"st.global.u32 [%d3], %r7; ret;"),
		 200, out, 0);
	for (uint32_t i = 0; i < 200; i++)
		assert_int_equal(out[i], 199 - i);
}

static void barrier_on_two_paths(void **state)
{
	uint32_t out[64];

	(void)state;
	must_run(KERNEL("and.b32 %r3, %r1, 1; setp.eq.u32 %p1, %r3, 0; st.shared.u32 [area], 0;\n"
			"bar.sync 0; red.shared.add.u32 [area], 1;\n"
			"@%p1 bra EVEN; barrier.sync 0; bra JOIN;\n"
			"EVEN: barrier.sync 0;\n"
			"JOIN: ld.shared.u32 %r4, [area]; st.global.u32 [%d3], %r4; ret;"),
		 64, out, 0);
	for (uint32_t i = 0; i < 64; i++)
		assert_int_equal(out[i], 64);
}

static void exited_threads_are_not_waited_for(void **state)
{
	uint32_t out[100] = {0};

	(void)state;
	must_run(KERNEL("setp.ge.u32 %p1, %r1, 40; @%p1 exit; bar.sync 0; bar.sync 1;\n"
			"st.global.u32 [%d3], 5; ret;"),
		 100, out, 0);
	for (uint32_t i = 0; i < 100; i++)
		assert_int_equal(out[i], i < 40 ? 5 : 0);
}

/* Warp 0 produces, warps 1 and 2 consume: named barriers with counts. */
static void named_barriers(void **state)
{
	uint32_t out[96];

	(void)state;
	must_run(KERNEL("setp.ge.u32 %p1, %r1, 32; @%p1 bra CONSUME;\n"
			"st.shared.u32 [area], 11; bar.arrive 3, 96; bra END;\n"
			"CONSUME: bar.sync 3, 96; ld.shared.u32 %r4, [area]; \n"
			"END: bar.sync 0; ld.shared.u32 %r4, [area]; st.global.u32 [%d3], %r4; "
			"ret;"),
		 96, out, 0);
	for (uint32_t i = 0; i < 96; i++)
		assert_int_equal(out[i], 11);
	/* All threads of the block, once by their number and once without. */
	must_run(KERNEL("setp.ge.u32 %p1, %r1, 32; @%p1 bra CONSUME;\n"
			"st.shared.u32 [area], 12; bar.arrive 3, 96; bra END;\n"
			"CONSUME: bar.sync 3;\n"
			"END: bar.sync 0; ld.shared.u32 %r4, [area]; st.global.u32 [%d3], %r4; "
			"ret;"),
		 96, out, 0);
	for (uint32_t i = 0; i < 96; i++)
		assert_int_equal(out[i], 12);
}

static void reductions_at_barriers(void **state)
{
	uint32_t out[80];

	(void)state;
	must_run(KERNEL("setp.lt.u32 %p1, %r1, 50; setp.lt.u32 %p2, %r1, 80; setp.eq.u32 %p3, %r1, "
			"70;\n"
			"bar.red.popc.u32 %r3, 0, %p1; bar.red.and.pred %p4, 0, %p2;\n"
			"bar.red.or.pred %p5, 0, %p3; barrier.cta.red.and.aligned.pred %p6, 1, "
			"!%p1;\n"
			"selp.u32 %r4, 100, 0, %p4; selp.u32 %r5, 1000, 0, %p5;\n"
			"selp.u32 %r6, 10000, 0, %p6;\n"
			"add.u32 %r3, %r3, %r4; add.u32 %r3, %r3, %r5; add.u32 %r3, %r3, %r6;\n"
			"st.global.u32 [%d3], %r3; ret;"),
		 80, out, 0);
	for (uint32_t i = 0; i < 80; i++)
		assert_int_equal(out[i], 1150);
}

static void barriers_that_cannot_be_met(void **state)
{
	(void)state;
	must_fault(KERNEL("setp.lt.u32 %p1, %r1, 32; @%p1 bar.sync 1; @!%p1 bar.sync 2; ret;"), 64,
		   "never be met");
	must_fault(KERNEL("bar.sync 1, 128; ret;"), 64, "never be met");
	must_fault(KERNEL("bar.sync 1, 33; ret;"), 64, "multiple of a warp");
	must_fault(KERNEL("bar.sync 16; ret;"), 64, "no barrier 16");
	must_fault(
		KERNEL("setp.lt.u32 %p1, %r1, 32; @%p1 bar.sync 1, 64; @!%p1 bar.sync 1, 96; ret;"),
		64, "do not agree");
	must_fault(
		KERNEL("setp.lt.u32 %p1, %r1, 32; @%p1 bar.sync 1, 64; @!%p1 bar.sync 1, 96; ret;"),
		160, "do not agree");
	/* A warp operation whose member never arrives, because it waits elsewhere. */
	must_fault(KERNEL("setp.eq.u32 %p1, %r1, 0; @%p1 bar.sync 1;\n"
			  "@!%p1 bar.warp.sync -1; ret;"),
		   32, "never be met");
}

/* Each warp hands a phase on to the next by a word in shared memory. */
static void barriers_in_memory(void **state)
{
	uint32_t out[96];

	(void)state;
	must_run(KERNEL("setp.eq.u32 %p1, %r1, 0; mov.u32 %r9, area;\n"
			"@%p1 mbarrier.init.shared.b64 [%r9], 96; st.shared.u32 [area+8], 0; "
			"bar.sync 0;\n"
			"red.shared.add.u32 [area+8], 1;\n"
			"mbarrier.arrive.release.cta.shared::cta.b64 %d4, [%r9];\n"
			"W: mbarrier.try_wait.shared.b64 %p2, [%r9], %d4; @!%p2 bra W;\n"
			"ld.shared.u32 %r4, [area+8]; st.global.u32 [%d3], %r4;\n"
			/* The phase with parity 0 is over, the one with parity 1 is not. */
			"mbarrier.test_wait.parity.shared.b64 %p3, [area], 0; @!%p3 trap;\n"
			"mbarrier.test_wait.parity.shared.b64 %p3, [area], 1; @%p3 trap;\n"
			"@%p1 mbarrier.inval.shared.b64 [area]; ret;"),
		 96, out, 0);
	for (uint32_t i = 0; i < 96; i++)
		assert_int_equal(out[i], 96);
	must_fault(KERNEL("mbarrier.init.shared.b64 [area], 0; ret;"), 1, "out of range");
	must_fault(KERNEL("mbarrier.init.shared.b64 [area], 1; mbarrier.arrive.shared.b64 _, "
			  "[area], 2;"),
		   1, "out of range");
}

static void shuffles(void **state)
{
	static const struct {
		const char *text;
		uint32_t want[4]; /* of lanes 0, 1, 15, 31 */
	} rows[] = {
		{"shfl.sync.up.b32 %r3|%p1, %r1, 1, 0, -1;", {100, 0, 14, 30}},
		{"shfl.sync.down.b32 %r3|%p1, %r1, 1, 31, -1;", {1, 2, 16, 131}},
		{"shfl.sync.bfly.b32 %r3|%p1, %r1, 3, 31, -1;", {3, 2, 12, 28}},
		{"shfl.sync.idx.b32 %r3|%p1, %r1, 5, 31, -1;", {5, 5, 5, 5}},
		/* Segments of 8 lanes. */
		{"shfl.sync.idx.b32 %r3|%p1, %r1, 5, 6175, -1;", {5, 5, 13, 29}},
		{"shfl.sync.down.b32 %r3|%p1, %r1, 1, 6175, -1;", {1, 2, 115, 131}},
		{"shfl.sync.up.b32 %r3|%p1, %r1, 2, 6144, -1;", {100, 101, 13, 29}},
	};
	static const uint32_t lanes[] = {0, 1, 15, 31};

	(void)state;
	for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
		static const char frame[] = KERNEL("%s");
		char text[2048], body[256];
		uint32_t out[32];
		/* 100 more where the source was outside. */
		snprintf(body, sizeof(body),
			 "%s @!%%p1 add.u32 %%r3, %%r3, 100; st.global.u32 [%%d3], %%r3; ret;",
			 rows[k].text);
		const char *hole = strstr(frame, "%s");
		snprintf(text, sizeof(text), "%.*s%s%s", (int)(hole - frame), frame, body,
			 hole + 2);
		must_run(text, 32, out, 0);
		for (size_t i = 0; i < 4; i++)
			assert_int_equal(out[lanes[i]], rows[k].want[i]);
	}
}

/* Both halves of a warp reach a shuffle of all lanes at different instructions. */
static void meeting_on_two_paths(void **state)
{
	uint32_t out[32];

	(void)state;
	must_run(
		KERNEL("setp.lt.u32 %p1, %r1, 16; @%p1 bra LOW;\n"
		       "add.u32 %r4, %r1, 1000; shfl.sync.bfly.b32 %r3, %r4, 16, 31, -1; bra END;\n"
		       "LOW: add.u32 %r5, %r1, 2000; shfl.sync.bfly.b32 %r3, %r5, 16, 31, -1;\n"
		       "END: st.global.u32 [%d3], %r3; ret;"),
		32, out, 0);
	for (uint32_t i = 0; i < 32; i++)
		assert_int_equal(out[i], i < 16 ? 1016 + i : 2000 + i - 16);
}

/* The halves name themselves only, at one place in the code. */
static void meetings_of_halves(void **state)
{
	uint32_t out[32];

	(void)state;
	must_run(KERNEL("setp.lt.u32 %p1, %r1, 16; selp.b32 %r3, 0xffff, 0xffff0000, %p1;\n"
			"redux.sync.add.u32 %r4, %r1, %r3; vote.sync.ballot.b32 %r5, %p1, %r3;\n"
			"popc.b32 %r5, %r5; mad.lo.u32 %r4, %r5, 1000, %r4;\n"
			"elect.sync %r6|%p2, %r3; @%p2 add.u32 %r4, %r4, 1000000;\n"
			"st.global.u32 [%d3], %r4; ret;"),
		 32, out, 0);
	for (uint32_t i = 0; i < 32; i++)
		assert_int_equal(out[i], (i < 16 ? 120 + 16000 : 376) + (i % 16 ? 0 : 1000000));
}

static void exited_lanes_leave_meetings(void **state)
{
	uint32_t out[32] = {0};

	(void)state;
	must_run(KERNEL("setp.lt.u32 %p1, %r1, 4; @%p1 exit;\n"
			"vote.sync.ballot.b32 %r3, 1, -1; st.global.u32 [%d3], %r3; ret;"),
		 32, out, 0);
	assert_int_equal(out[0], 0);
	assert_int_equal(out[31], 0xfffffff0);
	must_fault(KERNEL("vote.sync.ballot.b32 %r3, 1, 1; ret;"), 32, "take part");
}

static void reductions_and_matches(void **state)
{
	uint32_t out[32];

	(void)state;
	must_run(KERNEL("sub.u32 %r3, %r1, 16; redux.sync.min.s32 %r4, %r3, -1;\n"
			"redux.sync.max.u32 %r5, %r3, -1; redux.sync.xor.b32 %r6, %r1, -1;\n"
			"redux.sync.or.b32 %r7, %r1, -1; redux.sync.and.b32 %r8, %r1, -1;\n"
			"sub.u32 %r9, %r5, %r4; add.u32 %r9, %r9, %r7; add.u32 %r9, %r9, %r6;\n"
			"add.u32 %r9, %r9, %r8; match.all.sync.b32 %r10|%p1, %r9, -1;\n"
			"cvt.u64.u32 %d4, %r1; shr.u64 %d4, %d4, 4; match.any.sync.b64 %r11, %d4, "
			"-1;\n"
			"vote.sync.uni.pred %p2, %p1, -1; @%p2 add.u32 %r9, %r9, 100;\n"
			"add.u32 %r9, %r9, %r11; st.global.u32 [%d3], %r9; ret;"),
		 32, out, 0);
	/* -1 - -16 + 31 + 0 + 0 + 100 */
	assert_int_equal(out[0], 146 + 0xffff);
	assert_int_equal(out[31], 146 + 0xffff0000);
}

static const char functions[] = PTX_HEAD
	".func (.param .b32 result) twice(.param .b32 value)\n"
	"{ .reg .b32 %r<3>; ld.param.b32 %r1, [value]; add.u32 %r2, %r1, %r1;\n"
	"st.param.b32 [result+0], %r2; ret; }\n"
	".func (.reg .b32 result) thrice(.reg .b32 value)\n"
	"{ mul.lo.u32 result, value, 3; ret; }\n"
	".func (.param .b32 result) down(.param .b32 value)\n"
	"{ .reg .b32 %r<5>; .reg .pred %p; ld.param.b32 %r1, [value]; setp.eq.u32 %p, %r1, 0;\n"
	"mov.u32 %r3, 0; @%p bra END;\n"
	"{ .param .b32 a; .param .b32 b; sub.u32 %r2, %r1, 1; st.param.b32 [a], %r2;\n"
	"call.uni (b), down, (a); ld.param.b32 %r3, [b]; }\n"
	"add.u32 %r3, %r3, %r1;\n"
	"END: st.param.b32 [result], %r3; ret; }\n"
	".visible .entry k(.param .u64 out, .param .u32 n)\n"
	"{ .reg .b32 %r<9>; .reg .b64 %d<4>; .reg .pred %p<3>;\n"
	"ld.param.u64 %d1, [out]; ld.param.u32 %r8, [n]; mov.u32 %r1, %tid.x;\n"
	"mul.wide.u32 %d2, %r1, 4; add.u64 %d1, %d1, %d2; and.b32 %r2, %r1, 1;\n"
	"setp.eq.u32 %p1, %r2, 0;\n"
	"@%p1 bra EVEN; call (%r3), thrice, (%r1); bra JOIN;\n"
	"EVEN: { .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; call (b), twice, (a);\n"
	"ld.param.b32 %r3, [b]; }\n"
	"JOIN: { .param .b32 a; .param .b32 b; rem.u32 %r5, %r1, %r8; st.param.b32 [a], %r5;\n"
	"call (b), down, (a); ld.param.b32 %r4, [b]; }\n"
	"mad.lo.u32 %r3, %r4, 1000, %r3; st.global.u32 [%d1], %r3; ret; }\n";

static void calls_on_two_paths(void **state)
{
	uint32_t out[32];

	(void)state;
	must_run(functions, 32, out, 7);
	for (uint32_t i = 0; i < 32; i++) {
		uint32_t m = i % 7;
		assert_int_equal(out[i], (i & 1 ? 3 * i : 2 * i) + m * (m + 1) / 2 * 1000);
	}
}

static void recursion_has_an_end(void **state)
{
	struct ptx_error error;
	uint32_t out[1024];

	(void)state;
	assert_int_equal(run(functions, 128, out, 1000, &error), -EFAULT);
	assert_non_null(strstr(error.message, "nested too deep"));
}

static void wrong_calls(void **state)
{
	(void)state;
	must_fault(KERNEL("P: .callprototype _ (); mov.u64 %d5, 4096; call %d5, (), P; ret;"), 1,
		   "no function");
	must_fault(PTX_HEAD
		   ".func f(.param .b32 x) { ret; }\n"
		   ".visible .entry k(.param .u64 out, .param .u32 n)\n"
		   "{ .reg .b64 %d; mov.u64 %d, f; P: .callprototype _ (); call %d, P; ret; }",
		   1, "other parameters");
}

static void traps(void **state)
{
	(void)state;
	must_fault(KERNEL("setp.eq.u32 %p1, %r1, 33; @%p1 trap; ret;"), 64, "trap, in thread 33");
}

static void budgets_and_stops(void **state)
{
	static const char text[] = KERNEL("L: bra L;");
	struct arguments arguments = {0};
	struct ptx_module *module = fixture_load(text);
	struct ptx_kernel *kernel = ptx_module_kernel(module, "k");
	struct ptx_launch launch = {.grid = {1, 1, 1}, .block = {64, 1, 1}, .params = &arguments};
	struct ptx_error error;
	int stop = 1;

	(void)state;
	assert_int_equal(ptx_run_block(kernel, &launch, 0, 0, &stop, &error, NULL), -EINTR);
	launch.max_instructions = 100000;
	assert_int_equal(ptx_run_block(kernel, &launch, 0, 0, NULL, &error, NULL), -ETIME);
	launch.block.x = 1025;
	assert_int_equal(ptx_run_block(kernel, &launch, 0, 0, NULL, NULL, NULL), -EINVAL);
	launch.block.x = 0;
	assert_int_equal(ptx_run_block(kernel, &launch, 0, 0, NULL, &error, NULL), -EINVAL);
	launch.block.x = 1;
	assert_int_equal(ptx_run_block(kernel, &launch, 1, 0, NULL, &error, NULL), -EINVAL);
	ptx_module_free(module);
}

static void identities(void **state)
{
	static const char text[] = KERNEL(
		"mov.u32 %r3, %tid.y; mov.u32 %r4, %tid.z; mov.u32 %r5, %ntid.x; mov.u32 %r6, "
		"%ntid.y;\n"
		"mad.lo.u32 %r7, %r4, %r6, %r3; mad.lo.u32 %r7, %r7, %r5, %r1;\n"
		"mov.u32 %r8, %ctaid.r; mov.u32 %r9, %ctaid.y; mov.u32 %r10, %ctaid.b;\n"
		"mad.lo.u32 %r8, %r9, 10, %r8; mad.lo.u32 %r8, %r10, 100, %r8;\n"
		"mov.u32 %r11, %laneid; mov.u32 %r12, %warpid; mad.lo.u32 %r13, %r12, 32, %r11;\n"
		"setp.ne.u32 %p1, %r13, %r7; @%p1 trap; mul.wide.u32 %d4, %r7, 4; add.u64 %d4, "
		"%d1, %d4;\n"
		"red.global.add.u32 [%d4], %r8; mov.u64 %d5, %clock64; mov.u64 %d6, %globaltimer;\n"
		"setp.eq.u64 %p2, %d5, 0; @%p2 trap; setp.eq.u64 %p2, %d6, 0; @%p2 trap; ret;");
	uint32_t out[60] = {0};
	struct arguments arguments = {out, 0};
	struct ptx_module *module = fixture_load(text);

	(void)state;
	fixture_must_run(module, "k", DIM(2, 3, 2), DIM(5, 4, 3), 0, &arguments);
	/* The sum of x + 10 y + 100 z over all blocks. */
	for (int i = 0; i < 60; i++)
		assert_int_equal(out[i], 6 * 1 + 4 * 30 + 6 * 100);
	ptx_module_free(module);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loops_of_different_length),
		cmocka_unit_test(branches_join),
		cmocka_unit_test(indexed_branch),
		cmocka_unit_test(spin_within_a_warp),
		cmocka_unit_test(spin_between_warps),
		cmocka_unit_test(barrier_orders_shared_memory),
		cmocka_unit_test(barrier_on_two_paths),
		cmocka_unit_test(exited_threads_are_not_waited_for),
		cmocka_unit_test(named_barriers),
		cmocka_unit_test(reductions_at_barriers),
		cmocka_unit_test(barriers_that_cannot_be_met),
		cmocka_unit_test(barriers_in_memory),
		cmocka_unit_test(shuffles),
		cmocka_unit_test(meeting_on_two_paths),
		cmocka_unit_test(meetings_of_halves),
		cmocka_unit_test(exited_lanes_leave_meetings),
		cmocka_unit_test(reductions_and_matches),
		cmocka_unit_test(calls_on_two_paths),
		cmocka_unit_test(recursion_has_an_end),
		cmocka_unit_test(wrong_calls),
		cmocka_unit_test(traps),
		cmocka_unit_test(budgets_and_stops),
		cmocka_unit_test(identities),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
