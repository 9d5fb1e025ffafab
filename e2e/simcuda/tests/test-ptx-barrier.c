/* Threads that wait for each other: of a block at barriers, of a warp in operations of all its
 * lanes. */
#include "ptx-threads.h"

#include <stdio.h>

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

int main(void)
{
	static const struct CMUnitTest tests[] = {
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
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
