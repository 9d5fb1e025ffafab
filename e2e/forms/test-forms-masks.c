/* Instructions that name lanes, with masks that are made while the kernel runs or that name a part
 * of the warp. Natively nobody waits for a named lane that has exited. */
#include "agree.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define SCHEDULES 4

/* %r5 += the number of lanes of mask %r9 that are still there. */
#define COUNT_LANES                                                        \
	"setp.eq.u32 %p1, %r0, %r0; vote.sync.ballot.b32 %r7, %p1, %r9;\n" \
	"popc.b32 %r7, %r7; add.u32 %r5, %r5, %r7;\n"
/* %r9 = the lane and the one whose number differs by @bit. */
#define PAIR(bit)                                                                             \
	"mov.u32 %r4, %laneid; xor.b32 %r6, %r4, " #bit "; mov.u32 %r9, 1; mov.u32 %r7, 1;\n" \
	"shl.b32 %r9, %r9, %r4; shl.b32 %r7, %r7, %r6; or.b32 %r9, %r9, %r7;\n"
/* Repeats the code so far until %r6 > %r4; lanes leave the loop one after another. */
#define LOOP_END    "add.u32 %r6, %r6, 1; setp.le.u32 %p0, %r6, %r4; @%p0 bra AGAIN;\n"
#define LOOP(times) "rem.u32 %r4, %r0, " #times "; mov.u32 %r5, 0; mov.u32 %r6, 0; AGAIN:\n"
#define STORE       "st.global.u32 [%d0], %r5; ret; }\n"

#define KERNEL(text) WORD_EACH(9, 80), .ptx = HEAD ONE_PARAMETER OWN_WORD text

static const struct problem problems[] = {
	/* Lanes that were active before the loop leave it and exit. */
	{KERNEL("activemask.b32 %r9;" LOOP(5) COUNT_LANES LOOP_END STORE)},
	{KERNEL("rem.u32 %r4, %r0, 3; match.any.sync.b32 %r9, %r4, -1;" LOOP(7)
			COUNT_LANES LOOP_END STORE)},
	{KERNEL("and.b32 %r4, %r0, 5; setp.ne.u32 %p2, %r4, 0; vote.sync.ballot.b32 %r9, %p2, -1;\n"
		"@!%p2 not.b32 %r9, %r9;" LOOP(6) COUNT_LANES LOOP_END STORE)},
	/* The mask is a copy, and a part of the active lanes. */
	{KERNEL("and.b32 %r6, %r0, 1; activemask.b32 %r11; mov.u32 %r7, 0x55555555;\n"
		"shl.b32 %r7, %r7, %r6; and.b32 %r10, %r11, %r7; mov.u32 %r9, %r10;" LOOP(5)
			COUNT_LANES LOOP_END STORE)},
	/* Tiles of 16 lanes behind an early return. */
	{KERNEL("setp.gt.u32 %p0, %r0, 53; @%p0 ret; mov.u32 %r4, %laneid; and.b32 %r4, %r4, 16;\n"
		"mov.u32 %r9, 0xffff; shl.b32 %r9, %r9, %r4; shfl.sync.bfly.b32 %r5, %r2, 3, "
		"0x101f, "
		"%r9;\n" COUNT_LANES
		"shfl.sync.idx.b32 %r6, %r5, 1, 0x101f, %r9; add.u32 %r5, %r5, %r6;\n"
		"match.any.sync.b32 %r6, %r0, %r9; add.u32 %r5, %r5, %r6; bar.warp.sync "
		"%r9;" STORE)},
	/* Constants; the other lanes have exited or never come. */
	{KERNEL("rem.u32 %r4, %r0, 32; setp.gt.u32 %p0, %r4, 7; @%p0 ret; setp.eq.u32 %p1, %r4, "
		"3;\n"
		"@%p1 ret; vote.sync.ballot.b32 %r5, %p1, 0xff; shfl.sync.idx.b32 %r6, %r2, 1, 7, "
		"255; add.u32 %r5, %r5, %r6;" STORE)},
	{KERNEL("setp.gt.u32 %p0, %r0, 39; mov.u32 %r5, 7; @%p0 bra END; mov.u32 %r4, %laneid;\n"
		"setp.gt.u32 %p0, %r4, 15; @%p0 bra END; shfl.sync.bfly.b32 %r5, %r2, 4, 31, "
		"0xffff;\n"
		"END:" STORE)},
	/* All lanes, with a guard. */
	{KERNEL("setp.gt.u32 %p0, %r0, 70; @%p0 ret; and.b32 %r4, %r0, 1; setp.eq.u32 %p1, %r4, "
		"1;\n"
		"setp.ne.u32 %p2, %r0, %r0; mov.u32 %r5, 1; @%p1 bra ODD; bar.warp.sync -1; ODD:\n"
		"@%p1 bar.warp.sync -1; @!%p2 vote.sync.ballot.b32 %r5, %p1, -1;" STORE)},
	/* Each mask has a lane in common with the next. */
	{KERNEL("mov.u32 %r5, 0;" PAIR(1) COUNT_LANES
		"rem.u32 %r4, %r0, 3; setp.eq.u32 %p0, %r4, 0; @%p0 ret;" PAIR(2) COUNT_LANES
		"st.global.u32 [%d0], %r5; rem.u32 %r4, %r0, 5; setp.eq.u32 %p0, %r4, 1;\n"
		"@%p0 ret;" PAIR(4) COUNT_LANES PAIR(1) COUNT_LANES STORE)},
	/* Some lanes still are at the first mask when others have come to the second. */
	{KERNEL("mov.u32 %r5, 0; and.b32 %r4, %r0, 3; setp.eq.u32 %p0, %r4, 3; @%p0 bra SECOND;\n"
		"mov.u32 %r6, 0; setp.ne.u32 %p0, %r4, 1; @%p0 bra FIRST;\n"
		"WAIT: add.u32 %r6, %r6, 1; setp.lt.u32 %p0, %r6, 50; @%p0 bra WAIT; FIRST:\n"
		"mov.u32 %r9, 0x77777777;" COUNT_LANES
		"setp.eq.u32 %p0, %r4, 0; @%p0 bra END; SECOND:\n"
		"mov.u32 %r9, 0xeeeeeeee;" COUNT_LANES "END:" STORE)},
	/* Lanes meet at different places. */
	{KERNEL("activemask.b32 %r9; rem.u32 %r4, %r0, 7; setp.eq.u32 %p2, %r4, 2; mov.u32 %r5, "
		"0;\n"
		"@%p2 ret; and.b32 %r4, %r0, 1; setp.eq.u32 %p0, %r4, 1; @%p0 bra ODD;" COUNT_LANES
		"bra JOIN; ODD:" COUNT_LANES "add.u32 %r5, %r5, 100; JOIN:" COUNT_LANES STORE)},
	/* Barriers of the block that finished threads miss, reductions, and a mask of all lanes. */
	{KERNEL("activemask.b32 %r9; mov.u32 %r5, 0; mov.u32 %r6, 0; AGAIN:" COUNT_LANES
		"bar.sync 1; setp.lt.u32 %p0, %r6, 3; bar.red.popc.u32 %r8, 0, %p0; add.u32 %r5, "
		"%r5, "
		"%r8;\nshfl.sync.idx.b32 %r8, %r6, 0, 31, -1; rem.u32 %r4, %r0, 11;" LOOP_END
			STORE)},
	/* The same barriers for all threads, and a shared word that the next block writes. */
	{KERNEL(".shared .align 4 .b8 s[320]; mov.u32 %r4, s; mad.lo.u32 %r8, %r0, 4, %r4;\n"
		"st.shared.u32 [%r8], %r2; bar.sync 0; ld.shared.u32 %r5, [s+8]; activemask.b32 "
		"%r9;\n"
		"rem.u32 %r4, %r0, 5; mov.u32 %r6, 0; AGAIN:" COUNT_LANES LOOP_END
		"ld.shared.u32 %r7, [%r8]; add.u32 %r5, %r5, %r7;" STORE)},
};

static void lanes_may_exit(void **state)
{
	struct seen seen = {0};

	(void)state;
	all_must_agree(problems, sizeof(problems) / sizeof(problems[0]), SCHEDULES, &seen);
	assert_true(seen.evictions > 0 && seen.saves > 0);
	assert_true(seen.resumable > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lanes_may_exit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
