/* Kernels that work asynchronously: the next block of a worker finds shared memory as natively. */
#include "agree.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define HOPPER ".version 8.6\n.target sm_90a\n.address_size 64\n"

/* The thread whose number is twice the block's, and 1 if the block's is even, so threads of
 * different warps in turn: %p0. */
#define CHOSEN                                                               \
	"mov.u32 %r3, %ctaid.x; and.b32 %r4, %r3, 1; xor.b32 %r4, %r4, 1;\n" \
	"shl.b32 %r4, %r4, 5; mov.u32 %r5, %tid.x; setp.eq.u32 %p0, %r5, %r4;\n"
#define WAIT(barrier, parity)                                                             \
	"{ W: mbarrier.try_wait.parity.shared::cta.b64 %p1, [" barrier "], " parity ";\n" \
	"@!%p1 bra W; }\n"

static const struct problem asynchronous[] = {
	/* Initialised by one warp, in the next block by another one. */
	{WORD_EACH(40, 64),
	 .ptx = HOPPER ONE_PARAMETER OWN_WORD CHOSEN
	 ".shared .align 8 .b64 s[2]; .shared .align 4 .b32 x;\n"
	 "@%p0 mbarrier.init.shared.b64 [s+8], 64; bar.sync 0; @%p0 st.shared.u32 [x], %r3;\n"
	 "mbarrier.arrive.shared.b64 _, [s+8];\n" WAIT(
		 "s+8", "0") "ld.shared.u32 %r6, [x]; mad.lo.u32 %r6, %r6, 7, %r2; st.global.u32 "
			     "[%d0], %r6; ret; }\n"},
	/* By generic address, from a register; invalidated, used as data, and initialised again. */
	{WORD_EACH(25, 32),
	 .ptx = HOPPER ONE_PARAMETER OWN_WORD
	 ".shared .align 8 .b8 s[16]; mov.u32 %r0, %tid.x; setp.eq.u32 %p0, %r0, 3;\n"
	 "mov.u64 %d2, s; cvta.shared.u64 %d2, %d2; @!%p0 bra A; mbarrier.init.b64 [%d2+8], 32;\n"
	 "A: bar.sync 0; mbarrier.arrive.b64 %d3, [%d2+8];\n"
	 "W: mbarrier.test_wait.b64 %p1, [%d2+8], %d3; @!%p1 bra W; bar.sync 0;\n"
	 "@%p0 mbarrier.inval.b64 [%d2+8]; bar.sync 0; @!%p0 bra B; st.shared.u32 [s+8], %r2;\n"
	 "ld.shared.u32 %r4, [s+8]; mov.u32 %r5, s; add.u32 %r5, %r5, 16;\n"
	 "mbarrier.init.shared::cta.b64 [%r5+-8], 1; st.global.u32 [%d0], %r4; ret;\n"
	 "B: st.global.u32 [%d0], %r2; ret; }\n"},
	/* A bulk copy in, and one out that is under way when the block ends. */
	{WORD_EACH(30, 64),
	 .ptx = HOPPER ONE_PARAMETER
	 ".shared .align 128 .b8 s[256]; .shared .align 8 .b64 full; mov.u32 %r0, %tid.x;\n"
	 "setp.ne.u32 %p0, %r0, 0; mov.u32 %r1, %ctaid.x; mul.wide.u32 %d1, %r1, 256;\n"
	 "add.u64 %d0, %d0, %d1; mov.u32 %r3, s; mov.u32 %r4, full; @%p0 bra A;\n"
	 "mbarrier.init.shared::cta.b64 [%r4], 1; fence.mbarrier_init.release.cluster;\n"
	 "mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 256;\n"
	 "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [%d0], 256, "
	 "[%r4];\n"
	 "A: bar.sync 0;\n" WAIT(
		 "full",
		 "0") "shl.b32 %r5, %r0, 2; add.u32 %r5, %r5, %r3; ld.shared.u32 %r6, [%r5];\n"
		      "add.u32 %r6, %r6, %r0; mad.lo.u32 %r6, %r1, 100, %r6; st.shared.u32 [%r5], "
		      "%r6;\n"
		      "fence.proxy.async.shared::cta; bar.sync 0; @%p0 ret;\n"
		      "cp.async.bulk.global.shared::cta.bulk_group [%d0], [%r3], 256;\n"
		      "cp.async.bulk.commit_group; ret; }\n"},
	/* Warps of different fates; registers that move between them. */
	{WORD_EACH(20, 256),
	 .ptx = HOPPER
	 ".visible .entry k(.param .u64 out) .maxntid 256 .minnctapersm 1\n"
	 "{ .reg .b64 %d<4>; .reg .b32 %r<16>; .reg .pred %p<4>;\n"
	 "ld.param.u64 %d0, [out];\n" OWN_WORD
	 ".shared .align 8 .b64 go; mov.u32 %r0, %tid.x; setp.eq.u32 %p0, %r0, 0;\n"
	 "setp.ge.u32 %p2, %r0, 128; mov.u64 %d2, go; cvta.shared.u64 %d2, %d2;\n"
	 "@%p0 mbarrier.init.b64 [%d2], 1;\n"
	 "bar.sync 0; @%p2 bra A; setmaxnreg.dec.sync.aligned.u32 40; @!%p0 ret;\n"
	 "mbarrier.arrive.shared::cta.b64 _, [go]; ret;\n"
	 "A: setmaxnreg.inc.sync.aligned.u32 160;\n" WAIT(
		 "go",
		 "0") "mov.b32 %r8, 1; mov.u32 %r9, 128; bar.sync %r8, %r9; st.global.u32 [%d0], "
		      "%r2; ret; }\n"},
	/* Each block is a cluster of its own. */
	{.kernel = "k",
	 .grid = {5, 4, 3},
	 .block = {32, 1, 1},
	 .out_words = 60 * 32,
	 .ptx = HOPPER
	 ".visible .entry k(.param .u64 out) .explicitcluster .reqnctapercluster 1, 1, 1\n"
	 "{ .reg .b64 %d<4>; .reg .b32 %r<16>; .reg .pred %p<4>;\n"
	 "ld.param.u64 %d0, [out]; mov.u32 %r0, %clusterid.x; mov.u32 %r1, %clusterid.y;\n"
	 "mov.u32 %r2, %clusterid.z; mov.u32 %r4, %nclusterid.x; mov.u32 %r5, %nclusterid.y;\n"
	 "mad.lo.u32 %r2, %r2, %r5, %r1; mad.lo.u32 %r2, %r2, %r4, %r0;\n"
	 "mov.u32 %r0, %tid.x; mad.lo.u32 %r2, %r2, 32, %r0; mul.wide.u32 %d1, %r2, 4;\n"
	 "add.u64 %d0, %d0, %d1; .shared .align 8 .b64 s; .shared .align 4 .b32 x;\n"
	 "setp.eq.u32 %p0, %r0, 0; @%p0 mbarrier.init.shared::cta.b64 [s], 32;\n"
	 "mov.u32 %r5, x; mov.u32 %r6, s; mov.u32 %r7, %cluster_ctarank;\n"
	 "mapa.shared::cluster.u32 %r5, %r5, %r7; mapa.shared::cluster.u32 %r6, %r6, 0;\n"
	 "@%p0 st.shared::cluster.u32 [%r5], %r2; fence.acq_rel.cluster; bar.sync 0;\n"
	 "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r6];\n" WAIT(
		 "s", "0") "ld.shared::cluster.u32 %r8, [%r5]; mad.lo.u32 %r8, %r8, 3, %r2;\n"
			   "st.global.u32 [%d0], %r8; ret; }\n"},
};

static void asynchronous_kernels(void **state)
{
	struct seen seen = {0};

	(void)state;
	all_must_agree(asynchronous, sizeof(asynchronous) / sizeof(asynchronous[0]), 30, &seen);
	assert_true(seen.evictions > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(asynchronous_kernels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
