#include "passes/save/drain.h"

#include "passes/hidden.h"
#include "passes/safe-point.h"

static struct operand watch_of(const struct rewrite *rewrite)
{
	return op_variable(rewrite->safe->watch);
}

void drain_enter(struct cursor *at, struct rewrite *rewrite)
{
	struct operand saves = hidden64(at, rewrite, HIDDEN(saves));
	struct operand stride = hidden64(at, rewrite, HIDDEN(save_stride));

	edit_code(at,
		  "{ .reg .b32 %w, %x, %none; .reg .b64 %place, %w64; mov.u32 %none, 0;"
		  "  mov.u32 %w, %ctaid.x; and.b32 %x, %w, %3; sub.u32 %w, %w, %x;"
		  "  cvt.u64.u32 %w64, %w; mad.lo.u64 %place, %w64, %1, %2;"
		  "  mul.wide.u32 %w64, %x, 8; add.u64 %place, %place, %w64;"
		  "  st.shared.u64 [%0+24], %place; st.shared.u32 [%0+16], %none; }",
		  watch_of(rewrite), stride, saves, op_int(SAFE_POINT_GROUP - 1));
}

/* A clock of 0 stands for a ticket that has not begun. */
void drain_next_ticket(struct cursor *at, struct rewrite *rewrite, struct operand drawn,
		       struct operand tickets)
{
	edit_code(at,
		  "{ .reg .pred %ran, %refused; .reg .b32 %now, %took, %kind; .reg .b64 %place;"
		  "  ld.shared.v2.u32 {%took, %kind}, [%0+16]; mov.u32 %now, %clock;"
		  "  setp.ne.u32 %ran, %took, 0; sub.u32 %took, %now, %took;"
		  "  or.b32 %now, %now, 1; setp.ge.u32 %refused, %1, %2; @%refused mov.u32 %now, 0;"
		  "  st.shared.u32 [%0+16], %now; ld.shared.u64 %place, [%0+24];"
		  "  @%ran st.volatile.global.v2.u32 [%place+32], {%kind, %took}; }",
		  watch_of(rewrite), drawn, tickets);
}

void drain_begin(struct cursor *at, struct rewrite *rewrite, struct operand size)
{
	edit_code(at, "{ .reg .b32 %kind; add.u32 %kind, %0, %1; st.shared.u32 [%2+20], %kind; }",
		  hidden32(at, rewrite, HIDDEN(kind)), size, watch_of(rewrite));
}

/* @save: whether the ticket, as far as other tickets tell, ends later than in @drain cycles, which
 * it may run on otherwise. */
static void write_estimate(struct cursor *at, struct rewrite *rewrite, struct operand here,
			   struct operand group, struct operand drain, struct operand save)
{
	edit_code(at,
		  "{ .reg .pred %same, %longer, %late; .reg .b32 %run, %begun, %kind, %like, %took;"
		  "  .reg .b64 %place; mov.u32 %took, %laneid;"
		  "  and.b32 %took, %took, %5; mul.wide.u32 %place, %took, 8;"
		  "  or.b64 %place, %place, %1;"
		  "  ld.volatile.global.v2.u32 {%like, %took}, [%place+32];"
		  "  ld.volatile.shared.v2.u32 {%begun, %kind}, [%0+16];"
		  "  mov.u32 %run, %clock; sub.u32 %run, %run, %begun;"
		  "  setp.eq.u32 %same, %like, %kind; setp.gt.and.u32 %longer, %took, %run, %same;"
		  "  shr.u32 %like, %took, 3; add.u32 %took, %took, %like;"
		  "  sub.u32 %took, %took, %run; setp.gt.and.u32 %late, %took, %2, %longer;"
		  "  vote.sync.ballot.b32 %like, %longer, %3; popc.b32 %like, %like;"
		  "  vote.sync.ballot.b32 %took, %same, %3; popc.b32 %took, %took;"
		  "  max.u32 %took, %took, 1; shl.b32 %like, %like, 2;"
		  "  setp.lt.or.u32 %4, %like, %took, %late;"
		  "  setp.eq.or.u32 %4, %begun, 0, %4;"
		  "  mov.u32 %run, %clock; add.u32 %run, %run, %2; st.volatile.shared.u32 [%0+12], "
		  "%run; }",
		  watch_of(rewrite), group, drain, here, save, op_int(SAFE_POINT_GROUP - 1));
}

/* To @decided if the ticket is to be finished, @save: or no longer, or if the block is saved. */
static void write_decided(struct cursor *at, struct rewrite *rewrite, struct operand here,
			  struct operand save, struct block *decided)
{
	edit_code(at,
		  "{ .reg .pred %known; .reg .b32 %state, %looked, %id, %until, %now;"
		  "  ld.volatile.shared.v4.u32 {%state, %looked, %id, %until}, [%0];"
		  "  mov.u32 %now, %clock; sub.u32 %now, %now, %until; setp.ge.s32 %2, %now, 0;"
		  "  setp.eq.or.u32 %2, %state, %4, %2; setp.ge.u32 %known, %state, %3;"
		  "  vote.sync.any.pred %known, %known, %1; @%known bra %5; }",
		  watch_of(rewrite), here, save, op_int(WATCH_DRAIN), op_int(WATCH_SAVE),
		  op_block(decided));
}

/* Here, where nothing of the kernel lives any more, and not where the block is saved: ptxas gives
 * some kernels more registers otherwise. */
void drain_leave(struct cursor *at, struct rewrite *rewrite, struct operand words)
{
	edit_code(at,
		  "{ .reg .pred %p; .reg .b32 %state; ld.volatile.shared.u32 %state, [%0];"
		  "  setp.eq.u32 %p, %state, %2; @%p red.global.add.u32 [%1+44], 1; }",
		  watch_of(rewrite), words, op_int(WATCH_DRAIN));
	edit_code(at,
		  "{ .reg .pred %saved, %ran; .reg .b32 %run, %begun, %kind, %w;"
		  "  .reg .b64 %base, %w64; setp.ne.u32 %saved, %0, 1; mov.u32 %w, %ctaid.x;"
		  "  cvt.u64.u32 %w64, %w; mad.lo.u64 %base, %w64, %2, %3;"
		  "  ld.shared.v2.u32 {%begun, %kind}, [%1+16]; setp.ne.u32 %ran, %begun, 0;"
		  "  mov.u32 %run, %clock; sub.u32 %run, %run, %begun; or.b32 %run, %run, 1;"
		  "  selp.b32 %run, %run, 0, %ran;"
		  "  @%saved st.global.v2.u32 [%base+8], {%run, %kind}; }",
		  op_reg(rewrite->safe->exit_count), watch_of(rewrite),
		  hidden64(at, rewrite, HIDDEN(save_stride)), hidden64(at, rewrite, HIDDEN(saves)));
}
static_assert(offsetof(struct weir_words, drained) == 44, "in the template");

void drain_count_saved(struct cursor *at, struct operand words, struct operand saved)
{
	edit_code(at,
		  "{ .reg .b32 %n; ld.volatile.global.u32 %n, [%0+40]; add.u32 %n, %n, %1;"
		  "  st.volatile.global.u32 [%0+40], %n; }",
		  words, saved);
}

void drain_report(struct cursor *at, struct operand words, struct operand report,
		  struct operand launch)
{
	edit_code(at,
		  "{ .reg .b64 %blocks; ld.volatile.global.u64 %blocks, [%0+40];"
		  "  st.volatile.global.v2.u64 [%1], {%2, %blocks}; }",
		  words, report, launch);
}
static_assert(offsetof(struct weir_words, saved) == 40, "in the templates");

/* Saves are aligned to 256, so the address of any of the group's times is that of the group's save
 * with other low bits. */
void drain_choose(struct cursor *at, struct rewrite *rewrite, struct operand here,
		  struct block *leave)
{
	struct function *f = rewrite->function;
	struct operand save = op_reg(edit_named_register(f, TYPE_pred, "saves"));
	struct operand group = op_reg(edit_register(f, TYPE_b64));
	struct operand drain = hidden32(at, rewrite, HIDDEN(drain));
	struct block *decided = edit_new_block(f);

	edit_code(at, "{ .reg .pred %p; setp.eq.u32 %p, %0, 0; @%p bra %1; }", drain,
		  op_block(leave));
	write_decided(at, rewrite, here, save, decided);
	edit_code(at, "ld.shared.u64 %0, [%1+24]; and.b64 %0, %0, -128;", group, watch_of(rewrite));
	write_estimate(at, rewrite, here, group, drain, save);
	cursor_place(at, decided);
	edit_code(at,
		  "{ .reg .b32 %state; vote.sync.any.pred %0, %0, %5; selp.b32 %state, %2, %3, %0;"
		  "  red.shared.max.u32 [%1], %state; @%0 bra %4; }",
		  save, watch_of(rewrite), op_int(WATCH_SAVE), op_int(WATCH_DRAIN), op_block(leave),
		  here);
}
static_assert(8 * SAFE_POINT_GROUP == 128, "in the template");

void drain_restore_time(struct cursor *at, struct rewrite *rewrite, struct operand base,
			struct operand first)
{
	edit_code(
		at,
		"{ .reg .pred %ran; .reg .b32 %run, %begun, %kind;"
		"  ld.global.v2.u32 {%run, %kind}, [%1+8]; setp.ne.u32 %ran, %run, 0;"
		"  mov.u32 %begun, %clock; sub.u32 %begun, %begun, %run; or.b32 %begun, %begun, 1;"
		"  selp.b32 %begun, %begun, 0, %ran;"
		"  @%2 st.shared.v2.u32 [%0+16], {%begun, %kind}; }",
		watch_of(rewrite), base, first);
}
