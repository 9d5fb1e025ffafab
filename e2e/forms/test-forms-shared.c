/* Kernels whose shared memory matters at some safe points only, evicted at random ones. What was
 * not saved is gone: a block may resume in another place, whose memory holds something else. */
#include "agree.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define SCHEDULES 40

#define KERNEL(text) \
	WORD_EACH(9, 96), .ptx = HEAD DYNAMIC ONE_PARAMETER OWN_WORD DECLARED text STORE
#define DYNAMIC ".extern .shared .align 16 .b8 all[]; .extern .shared .align 4 .b8 same[];\n"
/* OWN_WORD uses %r4 for something else, so its value would be stored. %r14: the thread's word of s,
 * %r8: its neighbour's; %r12 and %r13: those of t. */
#define DECLARED                                                                                \
	".shared .align 4 .b8 s[384]; .shared .align 4 .b8 t[391];\n"                           \
	"mov.u32 %r14, s; mad.lo.u32 %r14, %r0, 4, %r14; xor.b32 %r7, %r0, 1; mov.u32 %r8, s; " \
	"mad.lo.u32 %r8, %r7, 4, %r8;\n"                                                        \
	"mov.u32 %r12, t; mad.lo.u32 %r12, %r0, 4, %r12; mov.u32 %r13, t; mad.lo.u32 %r13, "    \
	"%r7, 4, %r13; mov.u32 %r5, 1;\n"
#define STORE "st.global.u32 [%d0], %r5; ret; }\n"
/* 1 to 30 rounds, which differ between threads. */
#define LOOP(name, code)                                                                        \
	"mad.lo.u32 %r10, %r2, 7, 3; rem.u32 %r10, %r10, 30; " name ": " code                   \
	" mad.lo.u32 %r5, %r5, 3, %r10; sub.u32 %r10, %r10, 1; setp.ge.s32 %p0, %r10, 0; @%p0 " \
	"bra " name ";\n"
#define NEIGHBOUR "ld.shared.u32 %r6, [%r8]; add.u32 %r5, %r5, %r6;\n"
#define BARRIER   "bar.sync 0;\n"

static const struct problem problems[] = {
	/* Not yet written, then read by another thread behind a barrier, then dead. */
	{KERNEL(LOOP("A", "") "st.shared.u32 [%r14], %r5;" LOOP("B", "") BARRIER LOOP("C", "")
			NEIGHBOUR LOOP("D", ""))},
	/* Two variables, the second alive where the first is not. */
	{KERNEL("st.shared.u32 [%r14], %r2;" BARRIER
			LOOP("A", NEIGHBOUR) "st.shared.u32 [%r12], %r5;" BARRIER LOOP(
				"B", "ld.shared.u32 %r6, [%r13]; add.u32 %r5, %r5, %r6;")
				LOOP("C", ""))},
	/* Halves of the block in different places: one has written and reads no more, the other
	 * reads and has not written. */
	{KERNEL("and.b32 %r6, %r0, 1; setp.eq.u32 %p1, %r6, 1; @%p1 bra EVEN;\n"
		"st.shared.u32 [%r14], %r2;" LOOP("A", "")
			BARRIER LOOP("B", "") "bra END;\n"
					      "EVEN:" LOOP("C", "") BARRIER LOOP("D", "")
						      NEIGHBOUR LOOP("E", "") "END:")},
	/* By warps, which differ in where they are. */
	{KERNEL("shr.u32 %r6, %r0, 5; setp.eq.u32 %p1, %r6, 1; @%p1 bra OTHER;\n"
		"st.shared.u32 [%r14], %r2;" LOOP("A", "")
			BARRIER LOOP("B", "") "bra END;\n"
					      "OTHER:" LOOP("C", "") BARRIER LOOP(
						      "D", "") "ld.shared.u32 %r6, [s]; add.u32 "
							       "%r5, %r5, %r6; END:")},
	/* What a round reads, the one before wrote. */
	{KERNEL("mov.u32 %r11, 4; mov.u32 %r9, 0; OUTER:" LOOP(
		"A", "") "setp.eq.u32 %p1, %r9, 0; @!%p1 ld.shared.u32 %r9, [%r8]; add.u32 %r5, "
			 "%r5, %r9; mov.u32 %r9, 1;" BARRIER "st.shared.u32 [%r14], %r5;" BARRIER
			 "sub.u32 %r11, %r11, 1; setp.ne.u32 %p2, %r11, 0; @%p2 bra OUTER;")},
	/* Dynamic memory, under two names. */
	{.dynamic_shared = 389,
	 KERNEL("mov.u32 %r14, all; mad.lo.u32 %r14, %r0, 4, %r14; mov.u32 %r8, same; mad.lo.u32 "
		"%r8, %r7, 4, %r8;\n" LOOP("A", "") "st.shared.u32 [%r14], %r5;" LOOP("B", "")
			BARRIER LOOP("C", "") NEIGHBOUR LOOP("D", ""))},
	/* By an address that lies in memory. */
	{KERNEL(".local .align 4 .b8 l[4]; st.local.u32 [l], %r8;\n" LOOP(
		"A", "") "st.shared.u32 [%r14], %r5;" LOOP("B", "")
			BARRIER LOOP("C", "") "ld.local.u32 %r8, [l];" NEIGHBOUR LOOP("D", ""))},
	/* By generic addresses; here each worker has its own, so none is live at a safe point. */
	{KERNEL(".reg .b64 %g;\n" LOOP(
		"A", "") "cvt.u64.u32 %g, %r14; cvta.shared.u64 %g, %g; st.u32 [%g], %r5;" LOOP("B",
												"")
			BARRIER LOOP("C",
				     "") "cvt.u64.u32 %g, %r8; cvta.shared.u64 %g, %g; ld.u32 %r6, "
					 "[%g]; add.u32 %r5, %r5, %r6;" LOOP("D", ""))},
	/* An address that another lane tells. */
	{KERNEL("shfl.sync.bfly.b32 %r8, %r14, 1, 31, -1;" LOOP(
		"A", "") "st.shared.u32 [%r14], %r5;" LOOP("B", "") BARRIER LOOP("C", "")
			NEIGHBOUR LOOP("D", ""))},
};

static void only_what_matters_is_saved(void **state)
{
	struct seen seen = {0};

	(void)state;
	all_must_agree(problems, sizeof(problems) / sizeof(problems[0]), SCHEDULES, &seen);
	assert_int_equal(seen.resumable, seen.kernels);
	assert_in_range(seen.saves, SCHEDULES, UINT32_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_what_matters_is_saved),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
