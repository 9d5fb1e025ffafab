/* mbarriers that count bytes, bulk copies, tiles of tensors, and products of matrices. */
#include "ptx-fixture.h"

#include <errno.h>

#include "simcuda/ptx/tensor-map.h"

/* A kernel for @in and @out: %d1, %d2; %r1 is the thread. */
#define KERNEL(code)                                                                         \
	".version 8.6\n.target sm_90a\n.address_size 64\n"                                   \
	".visible .entry k(.param .u64 in, .param .u64 out)\n"                               \
	"{ .reg .b64 %d<8>; .reg .b32 %r<16>; .reg .b16 %h<4>; .reg .f32 %f<8>; .reg .pred " \
	"%p<4>;\n"                                                                           \
	".shared .align 1024 .b8 area[4096]; .shared .align 8 .b64 bar[4];\n"                \
	"ld.param.u64 %d1, [in]; ld.param.u64 %d2, [out]; mov.u32 %r1, %tid.x;\n"            \
	"mov.u32 %r2, area; mov.u32 %r3, bar; setp.eq.u32 %p1, %r1, 0;\n" code " ret; }\n"

static int run(const char *text, uint32_t threads, const void *in, void *out,
	       struct ptx_error *error)
{
	const void *params[] = {in, out};

	return fixture_block(text, threads, 0, params, error);
}

static void must_run(const char *text, uint32_t threads, const void *in, void *out)
{
	const void *params[] = {in, out};

	fixture_block_runs(text, threads, 0, params);
}

static void must_fault(const char *text, const char *message)
{
	uint32_t words[64] __attribute__((aligned(16))) = {0};
	const void *params[] = {words, words};

	fixture_block_faults(text, 1, 0, params, message);
}

#define IS_OVER(number)                                                                 \
	"mbarrier.test_wait.parity.shared.b64 %p2, [bar], 0; selp.u32 %r4, 1, 0, %p2; " \
	"st.global.u32 [%d2+" #number "], %r4;\n"

/* A phase is over when all have arrived and all bytes have come, in any order. */
static void phases_with_bytes(void **state)
{
	uint32_t over[5];

	(void)state;
	must_run(KERNEL("mbarrier.init.shared.b64 [bar], 2;\n"
			"mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [bar], 16;\n" IS_OVER(
				0) "mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, "
				   "[bar], 48;\n" IS_OVER(
					   4) "mbarrier.expect_tx.relaxed.cta."
					      "shared::cta.b64 [bar], 4;\n"
					      "mbarrier.arrive.shared.b64 %d3, "
					      "[bar];\n" IS_OVER(
						      8) "mbarrier."
							 "complete_tx."
							 "shared::cta."
							 "b64 [bar], "
							 "32;\n" IS_OVER(12) "mbarrier.complete_tx."
									     "shared::cta.b64 "
									     "[bar], 4;\n" IS_OVER(
										     16) "mba"
											 "rri"
											 "er."
											 "tes"
											 "t_"
											 "wai"
											 "t."
											 "sha"
											 "red"
											 ".b6"
											 "4 "
											 "%p3"
											 ", "
											 "[ba"
											 "r],"
											 " %"
											 "d3;"
											 " @!"
											 "%p3"
											 " tr"
											 "ap;"
											 "\n"),
		 1, NULL, over);
	for (int k = 0; k < 5; k++)
		assert_int_equal(over[k], k == 4);
}

static void misuse(void **state)
{
	(void)state;
	must_fault(KERNEL("mbarrier.init.shared.b64 [bar], 1; mbarrier.init.shared.b64 [bar], 1;"),
		   "not invalidated");
	must_fault(KERNEL("mbarrier.arrive.shared.b64 _, [bar];"), "not initialised");
	must_fault(KERNEL("mbarrier.init.shared.b64 [bar], 1; mbarrier.inval.shared.b64 [bar];\n"
			  "mbarrier.inval.shared.b64 [bar];"),
		   "not initialised");
	must_fault(KERNEL("mbarrier.init.b64 [%d2], 1;"), "outside of shared memory");
	must_fault(KERNEL("mbarrier.init.shared.b64 [bar], 1;\n"
			  "mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 1048576;"),
		   "out of range");
	must_fault(KERNEL("mbarrier.init.shared.b64 [bar], 1;\n"
			  "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [area], "
			  "[%d1], 16, [bar]; mbarrier.inval.shared.b64 [bar];"),
		   "will arrive at");
	must_fault(KERNEL("cp.async.bulk.global.shared::cta.bulk_group [%d2], [area], 24;"),
		   "odd address or size");
	must_fault(KERNEL("cp.async.bulk.global.shared::cta.bulk_group [%d2], [area+4096], 8192;"),
		   "no shared memory");
	must_fault(KERNEL("mov.u64 %d3, 16; cp.async.bulk.global.shared::cta.bulk_group [%d3], "
			  "[area], 16;"),
		   "no memory behind");
	must_fault(
		KERNEL("cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group [%d1, {%r1}], "
		       "[%r2];"),
		"no tensor map");
}

#define LOAD                                                                 \
	"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes " \
	"[area], [%d1], 32, [bar];\n"

/* Bytes come when somebody waits for them, not before; they leave at the wait for their group. */
static void bulk_copies(void **state)
{
	uint32_t in[8] __attribute__((aligned(16))), out[12] __attribute__((aligned(16))) = {0};

	(void)state;
	for (uint32_t k = 0; k < 8; k++)
		in[k] = k + 1;
	must_run(KERNEL("mbarrier.init.shared.b64 [bar], 1;\n"
			"mbarrier.arrive.expect_tx.shared.b64 _, [bar], 32;\n" LOAD
			"ld.shared.u32 %r4, [area+4]; st.global.u32 [%d2+32], %r4;\n"
			"W: mbarrier.try_wait.parity.shared.b64 %p2, [%r3], 0; @!%p2 bra W;\n"
			"ld.shared.u32 %r4, [area+4]; st.global.u32 [%d2+36], %r4;\n"
			"cp.async.bulk.global.shared::cta.bulk_group [%d2], [area], 16;\n"
			"cp.async.bulk.commit_group;\n"
			"cp.async.bulk.global.shared::cta.bulk_group [%d2+16], [%r2+16], 16;\n"
			"cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 1;\n"
			"st.shared.u32 [area], 77; st.shared.u32 [area+16], 88;\n"
			"cp.async.bulk.wait_group 0; st.shared.u32 [area+20], 99;\n"),
		 1, in, out);
	assert_int_equal(out[8], 0);
	assert_int_equal(out[9], 2);
	assert_int_equal(out[0], 1);  /* was under way no more */
	assert_int_equal(out[4], 88); /* still was */
	assert_int_equal(out[5], 6);
}

/* A group that is empty counts: the wait for all but the last completes the store. At the block's
 * end all stores complete. */
static void groups(void **state)
{
	uint32_t out[8] __attribute__((aligned(16))) = {0};

	(void)state;
	must_run(KERNEL("st.shared.u32 [area], 5;\n"
			"cp.async.bulk.global.shared::cta.bulk_group [%d2], [area], 16;\n"
			"cp.async.bulk.commit_group; cp.async.bulk.commit_group;\n"
			"cp.async.bulk.wait_group 1; st.shared.u32 [area], 6;\n"
			"cp.async.bulk.global.shared::cta.bulk_group [%d2+16], [area], 16;\n"
			"cp.async.bulk.wait_group 0; st.shared.u32 [area], 7;\n"),
		 1, NULL, out);
	assert_int_equal(out[0], 5);
	assert_int_equal(out[4], 7); /* was never committed */
}

/* A tile that lies over an edge, swizzled; and back to another place. */
static void tiles(void **state)
{
	uint16_t in[6][16] __attribute__((aligned(16))), out[6][16] __attribute__((aligned(16)));
	struct {
		struct ptx_tensor_map in, out __attribute__((aligned(128)));
		uint16_t shared[4][16] __attribute__((aligned(16)));
	} global __attribute__((aligned(64)));
	struct ptx_tensor_map map = {.magic = PTX_TENSOR_MAGIC,
				     .rank = 2,
				     .element = 2,
				     .swizzle = 32,
				     .address = (uintptr_t)in,
				     .strides = {2, 32},
				     .dims = {16, 6},
				     .box = {16, 4}};

	(void)state;
	for (uint32_t k = 0; k < 6 * 16; k++)
		in[k / 16][k % 16] = (uint16_t)(k + 1);
	memset(out, 0xff, sizeof(out));
	global.in = global.out = map;
	global.out.address = (uintptr_t)out;
	must_run(KERNEL("mbarrier.init.shared.b64 [bar], 1; mov.s32 %r5, -2; mov.s32 %r6, 2;\n"
			"mbarrier.arrive.expect_tx.shared.b64 _, [bar], 128;\n"
			"cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::"
			"bytes.L2::cache_hint [area+64], [%d1, {%r5, %r6}], [bar], %d3;\n"
			"W: mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0; @!%p2 bra W;\n"
			"cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%d1+128, {%r1, "
			"%r1}], [%r2+64];\n"
			"cp.async.bulk.global.shared::cta.bulk_group [%d2], [area+64], 128;\n"),
		 1, &global, global.shared);
	for (uint32_t y = 0; y < 4; y++) {
		for (uint32_t x = 0; x < 16; x++) {
			uint32_t want = x >= 2 ? in[y + 2][x - 2] : 0;
			uint32_t piece = x / 8 ^ (y >= 2);

			assert_int_equal(global.shared[y][piece * 8 + x % 8], want);
			assert_int_equal(out[y][x], want);
		}
	}
	assert_int_equal(out[4][0], 0xffff);
}

static uint16_t bfloat(int value)
{
	float wide = (float)value;
	uint32_t bits;

	memcpy(&bits, &wide, sizeof(bits));
	return (uint16_t)(bits >> 16);
}

/* d = 1 - (a * b), where a is 64 x 16 and b has 8 columns; rows of 16 bytes, 8 of which are one
 * piece. */
#define PRODUCT(a)                                                                         \
	"mov.u32 %r4, %tid.x; setp.ne.u32 %p1, %r1, %r4; setp.eq.u32 %p2, %r1, %r1;\n"     \
	"mov.f32 %f0, 0f3F800000; mov.f32 %f1, %f0; mov.f32 %f2, %f0; mov.f32 %f3, %f0;\n" \
	"wgmma.fence.sync.aligned;\n"                                                      \
	"wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f0, %f1, %f2, %f3}, " a     \
	", %d5, %p2, 1, -1"

#define PLACE                                                 \
	"mul.wide.u32 %d6, %r1, 16; add.u64 %d2, %d2, %d6;\n" \
	"st.global.v4.f32 [%d2], {%f0, %f1, %f2, %f3};\n"

/* The tile is copied to shared memory, word by word. */
#define FILL                                                                           \
	"mov.u32 %r5, %r1;\nF: setp.ge.u32 %p3, %r5, 576; @%p3 bra G;\n"               \
	"mul.wide.u32 %d3, %r5, 4; add.u64 %d3, %d3, %d1; ld.global.u32 %r6, [%d3];\n" \
	"shl.b32 %r7, %r5, 2; add.u32 %r7, %r7, %r2; st.shared.u32 [%r7], %r6;\n"      \
	"add.u32 %r5, %r5, 128; bra F;\nG: bar.sync 0;\n"                              \
	"shr.u32 %r7, %r2, 4; cvt.u64.u32 %d4, %r7; add.u64 %d5, %d4, 128;\n"          \
	"mov.u64 %d6, 0x1000080000; or.b64 %d4, %d4, %d6; or.b64 %d5, %d5, %d6;\n"

static void products(void **state)
{
	static int a[64][16], b[16][8];
	uint16_t in[72][16];
	float out[2][128][4];

	(void)state;
	for (int k = 0; k < 64 * 16; k++)
		a[k / 16][k % 16] = k * 7 % 11 - 5;
	for (int k = 0; k < 16 * 8; k++)
		b[k / 8][k % 8] = k * 5 % 7 - 3;
	/* Groups of 8 rows: 256 bytes apart; the second half of each row: 128 bytes further. */
	for (int r = 0; r < 72; r++)
		for (int k = 0; k < 16; k++)
			((uint16_t *)in)[r / 8 * 128 + k / 8 * 64 + r % 8 * 8 + k % 8] =
				bfloat(r < 64 ? a[r][k] : b[k][r - 64]);
	must_run(KERNEL(FILL PRODUCT("%d4") ", 0, 0;\nwgmma.commit_group.sync.aligned;\n"
					    "wgmma.wait_group.sync.aligned 0;\n" PLACE),
		 128, in, out[0]);
	/* The same with a in registers: two elements each, of a row and the one 8 further. */
	must_run(KERNEL(FILL
			"shr.u32 %r8, %r1, 5; and.b32 %r9, %r1, 31; shl.b32 %r8, %r8, 9;\n"
			"shl.b32 %r9, %r9, 2; add.u32 %r8, %r8, %r9; add.u32 %r8, %r8, %r2;\n"
			"ld.shared.u32 %r10, [%r8]; ld.shared.u32 %r11, [%r8+256];\n"
			"ld.shared.u32 %r12, [%r8+128]; ld.shared.u32 %r13, [%r8+384];\n" PRODUCT(
				"{%r10, %r11, %r12, %r13}") ", 0;\n"
							    "wgmma.commit_group.sync.aligned; "
							    "wgmma.wait_group.sync.aligned "
							    "0;\n" PLACE),
		 128, in, out[1]);
	for (int t = 0; t < 128; t++) {
		for (int k = 0; k < 4; k++) {
			int row = t / 32 * 16 + t % 32 / 4 + k / 2 * 8, column = t % 4 * 2 + k % 2;
			int sum = 1;

			for (int i = 0; i < 16; i++)
				sum -= a[row][i] * b[i][column];
			assert_true(out[0][t][k] == (float)sum);
			assert_true(out[1][t][k] == (float)sum);
		}
	}
}

/* One thread goes on when all warps have come to the wait: all have read the matrix. */
static void warp_groups_wait(void **state)
{
	struct ptx_error error;

	(void)state;
	must_run(KERNEL("wgmma.wait_group.sync.aligned 0;"), 256, NULL, NULL);
	assert_int_equal(run(KERNEL("setp.gt.u32 %p2, %r1, 31; @%p2 bar.sync 0;\n"
				    "wgmma.wait_group.sync.aligned 0;"),
			     128, NULL, NULL, &error),
			 -EFAULT);
	assert_int_equal(
		run(KERNEL("@%p1 wgmma.wait_group.sync.aligned 0;"), 128, NULL, NULL, &error),
		-EFAULT);
	assert_non_null(strstr(error.message, "part of the warp"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(phases_with_bytes),
		cmocka_unit_test(misuse),
		cmocka_unit_test(bulk_copies),
		cmocka_unit_test(groups),
		cmocka_unit_test(tiles),
		cmocka_unit_test(products),
		cmocka_unit_test(warp_groups_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
