/* Threads that diverge, call, and end. */
#include "ptx-threads.h"

#include <errno.h>

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
	uint32_t out[1024];
	struct arguments arguments = {out, 1000};

	(void)state;
	fixture_block_faults(functions, 128, 0, &arguments, "nested too deep");
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
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(loops_of_different_length),
		cmocka_unit_test(branches_join),
		cmocka_unit_test(indexed_branch),
		cmocka_unit_test(spin_within_a_warp),
		cmocka_unit_test(spin_between_warps),
		cmocka_unit_test(calls_on_two_paths),
		cmocka_unit_test(recursion_has_an_end),
		cmocka_unit_test(wrong_calls),
		cmocka_unit_test(traps),
		cmocka_unit_test(budgets_and_stops),
		cmocka_unit_test(identities),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
