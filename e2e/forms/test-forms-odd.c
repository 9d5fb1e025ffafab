/* What compilers rarely write, but PTX allows. */
#include "agree.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define SCHEDULES 6

#define KERNEL(text) WORD_EACH(9, 80), .ptx = HEAD ONE_PARAMETER OWN_WORD text
/* Ends a loop of 1 to 40 rounds, which differ between threads, and then the kernel. */
#define ROUNDS "mad.lo.u32 %r10, %r2, 7, 3; rem.u32 %r10, %r10, 40; AGAIN:\n"
#define LOOP   "sub.u32 %r10, %r10, 1; setp.ge.s32 %p0, %r10, 0; @%p0 bra AGAIN;\n"
#define STORE  "st.global.u32 [%d0], %r5; ret; }\n"

/* The driver's functions. The heap is full: malloc() finds nothing, and free() gets nothing. */
#define DRIVER                                                                                  \
	HEAD ".extern .func (.param .b64 o) malloc(.param .b64 i);\n.extern .func free(.param " \
	     ".b64 "                                                                            \
	     "i);\n" ONE_PARAMETER OWN_WORD
#define MALLOC                                                                                 \
	"{ .param .b64 a; .param .b64 b; st.param.b64 [a], 16; call.uni (b), malloc, (a); "    \
	"ld.param.b64 %d3, [b]; } cvt.u32.u64 %r6, %d3; mad.lo.u32 %r5, %r5, 3, %r6; add.u32 " \
	"%r5, %r5, %r2;\n"
#define RELEASE "{ .param .b64 a; st.param.b64 [a], %d3; call.uni free, (a); }\n"

static const struct problem problems[] = {
	/* Lanes that call the driver in a loop, all or some of them; others have exited. */
	{WORD_EACH(9, 80), .ptx = DRIVER "mov.u32 %r5, 0;" ROUNDS MALLOC RELEASE LOOP STORE},
	{WORD_EACH(9, 80),
	 .ptx = DRIVER
	 "mov.u32 %r5, 1; rem.u32 %r4, %r0, 7; setp.eq.u32 %p2, %r4, 2; @%p2 ret;" ROUNDS
	 "and.b32 %r4, %r5, 3; setp.eq.u32 %p1, %r4, 1; @%p1 bra LEFT_OUT;" MALLOC RELEASE
	 "LEFT_OUT: mad.lo.u32 %r5, %r5, 5, %r10; bar.warp.sync -1;" LOOP STORE},
	/* Between barriers. */
	{WORD_EACH(9, 96),
	 .ptx = DRIVER "mov.u32 %r5, 0; mov.u32 %r10, 9; AGAIN: bar.sync 0; setp.gt.u32 %p1, %r0, "
		       "40; @%p1 bra LEFT_OUT;" MALLOC
		       "LEFT_OUT: bar.red.popc.u32 %r7, 0, %p1; add.u32 %r5, %r5, %r7;" LOOP STORE},
	/* Two dimensions. */
	{KERNEL(".shared .align 4 .b8 s[80][4]; .local .align 4 .b8 l[4][2]; mov.u32 %r4, s; "
		"mad.lo.u32 %r4, %r0, 4, %r4;\n"
		"st.shared.u32 [%r4], %r2; st.local.u32 [l+4], %r2; mov.u32 %r5, 0;" ROUNDS
		"ld.shared.u32 %r6, [%r4]; ld.local.u32 %r7, [l+4]; mad.lo.u32 %r5, %r5, %r6, %r7; "
		"st.shared.u32 [%r4], %r5;" LOOP STORE)},
	/* Sizes odd. */
	{KERNEL(".shared .align 1 .b8 s[83]; .local .align 2 .b8 l[6]; mov.u32 %r4, s; add.u32 "
		"%r4, %r0, %r4;\n"
		"st.shared.u8 [%r4+3], %r2; st.local.u16 [l+4], %r2; st.local.u16 [l+2], %r10; "
		"mov.u32 %r5, 0;" ROUNDS
		"ld.shared.u8 %r6, [%r4+3]; ld.local.u16 %r7, [l+4]; mad.lo.u32 %r5, %r5, %r6, "
		"%r7; st.shared.u8 [%r4+3], %r5;" LOOP STORE)},
	/* Producers and consumers. */
	{WORD_EACH(9, 128),
	 .ptx = HEAD ONE_PARAMETER OWN_WORD
	 ".shared .align 4 .b8 s[256]; mov.u32 %r4, s; and.b32 %r6, %r0, 63; mad.lo.u32 %r4, %r6, "
	 "4, %r4; mov.u32 %r5, 0; mov.u32 %r10, 5;\n"
	 "setp.ge.u32 %p1, %r0, 64; @%p1 bra CONSUME; PRODUCE: mad.lo.u32 %r2, %r2, 5, 1; "
	 "barrier.cta.sync 2, 128; st.shared.u32 [%r4], %r2; bar.arrive 1, 128;\n"
	 "sub.u32 %r10, %r10, 1; setp.ne.u32 %p0, %r10, 0; @%p0 bra PRODUCE; bar.sync 2, 128; "
	 "ret;\n"
	 "CONSUME: barrier.cta.arrive.aligned 2, 128; bar.sync 1, 128; ld.shared.u32 %r7, [%r4]; "
	 "mad.lo.u32 %r5, %r5, 3, %r7; bar.sync 3, 64;\n"
	 "sub.u32 %r10, %r10, 1; setp.ne.u32 %p0, %r10, 0; @%p0 bra CONSUME; bar.arrive 2, "
	 "128;" STORE},
	/* A loop with two entries. */
	{KERNEL("mov.u32 %r5, 0; and.b32 %r6, %r0, 3; setp.eq.u32 %p1, %r6, 2; mov.u32 %r10, 9; "
		"@%p1 bra SECOND; FIRST: mad.lo.u32 %r5, %r5, 3, %r2;\n"
		"SECOND: add.u32 %r5, %r5, %r0; sub.u32 %r10, %r10, 1; setp.ne.u32 %p0, %r10, 0; "
		"@%p0 bra FIRST; bar.sync 0;" STORE)},
	/* Registers of all kinds live in a loop. */
	{KERNEL(".reg .b16 %h<4>; .reg .b64 %w<3>; .reg .pred %q<3>; .reg .f64 %f; cvt.u16.u32 "
		"%h0, %r2; mov.b16 %h1, 7; mov.b16 %h2, 9;\n"
		"mul.wide.u32 %w0, %r2, %r2; cvt.u64.u32 %w1, %r0; setp.gt.u32 %q0, %r0, 30; "
		"setp.lt.u32 %q1, %r2, 99; cvt.rn.f64.u32 %f, %r2; mov.u32 %r5, 0;" ROUNDS
		"mad.lo.u16 %h0, %h0, %h1, %h2; add.u16 %h2, %h2, 3; mad.lo.u64 %w0, %w0, 5, %w1; "
		"@%q0 add.u64 %w1, %w1, 1; selp.u32 %r6, 1, 2, %q1; add.u32 %r5, %r5, %r6;\n"
		"not.pred %q1, %q1; add.f64 %f, %f, 0d3FF8000000000000; xor.pred %q0, %q0, %q1; "
		"@%q0 xor.b32 %r5, %r5, %r2; " LOOP
		"cvt.u32.u16 %r6, %h0; add.u32 %r5, %r5, %r6; cvt.u32.u64 %r6, %w0; add.u32 %r5, "
		"%r5, %r6; cvt.rzi.u32.f64 %r6, %f; add.u32 %r5, %r5, %r6;" STORE)},
	/* Directives. */
	{.kernel = "k",
	 .grid = {9, 1, 1},
	 .block = {64, 1, 1},
	 .out_words = 9 * 64,
	 .ptx = HEAD
	 ".weak .entry k(.param .u64 out) .maxntid 64, 1, 1 .minnctapersm 2 .pragma "
	 "\"used_bytes_mask\";\n{ .reg .b64 %d<4>; .reg .b32 %r<16>; .reg .pred %p<4>;\n"
	 "ld.param.u64 %d0, [out];" OWN_WORD "mov.u32 %r5, 0; .pragma \"nounroll\";" ROUNDS
	 "{ .reg .b32 %r5; .pragma \"nounroll\"; mov.u32 %r5, 3; add.u32 %r2, %r2, %r5; }  add.u32 "
	 "%r5, %r5, %r2;" LOOP STORE},
	/* Recursion, and calls by address. */
	{WORD_EACH(9, 64),
	 .ptx = HEAD
	 ".func (.param .b32 o) f(.param .b32 i);\n"
	 ".func (.param .b32 o) f(.param .b32 i) { .reg .b32 %r<2>; .reg .pred %p; ld.param.b32 "
	 "%r0, [i]; setp.lt.u32 %p, %r0, 2; @%p bra E; shr.u32 %r1, %r0, 1;\n"
	 "{ .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; call (b), f, (a); ld.param.b32 "
	 "%r1, [b]; } add.u32 %r0, %r0, %r1; E: st.param.b32 [o], %r0; ret; }\n" ONE_PARAMETER
		 OWN_WORD "mov.u32 %r5, 0; " ROUNDS
	 "{ .param .b32 a; .param .b32 b; st.param.b32 [a], %r2; call (b), f, (a); ld.param.b32 "
	 "%r7, [b]; } mad.lo.u32 %r5, %r5, 3, %r7; add.u32 %r2, %r2, 1;" LOOP STORE},
	/* Threads that exit in a loop, by a guard, between barriers. */
	{KERNEL("mov.u32 %r5, 1; mov.u32 %r10, 0; AGAIN: setp.gt.u32 %p1, %r10, %r0; st.global.u32 "
		"[%d0], %r5; @%p1 exit; bar.sync 0; mad.lo.u32 %r5, %r5, 3, %r2; bar.red.popc.u32 "
		"%r6, 1, %p1;\n"
		"add.u32 %r5, %r5, %r6; setp.lt.u32 %p3, %r10, 9; @!%p3 bar.sync 2; "
		"bar.red.and.pred %p2, 0, !%p1; selp.u32 %r7, 2, 3, %p2; add.u32 %r10, %r10, %r7; "
		"setp.lt.u32 %p0, %r10, 70; @%p0 bra AGAIN;" STORE)},
	/* Breaks and continues. */
	{KERNEL("mov.u32 %r5, 1;" ROUNDS
		"mad.lo.u32 %r5, %r5, 5, %r2; and.b32 %r6, %r5, 7; setp.eq.u32 %p1, %r6, 1; @%p1 "
		"bra NEXT; setp.eq.u32 %p1, %r6, 2; @%p1 bra OUT; mov.u32 %r11, 3;\n"
		"INNER: add.u32 %r5, %r5, %r11; setp.eq.u32 %p2, %r6, 4; @%p2 bra NEXT; "
		"setp.eq.u32 %p2, %r6, 5; @%p2 bra OUT; sub.u32 %r11, %r11, 1; setp.ne.u32 %p2, "
		"%r11, 0; @%p2 bra INNER; NEXT:" LOOP "OUT:" STORE)},
};

static void odd_kernels(void **state)
{
	struct seen seen = {0};

	(void)state;
	all_must_agree(problems, sizeof(problems) / sizeof(problems[0]), SCHEDULES, &seen);
	assert_true(seen.evictions > 0 && seen.saves > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(odd_kernels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
