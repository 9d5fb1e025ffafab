/* How workers leave. The last one prepares the words for the next launch (preempt-abi.h). */
#include "passes/hidden.h"
#include "passes/quota/quota.h"
#include "passes/safe-point.h"
#include "passes/save/drain.h"
#include "passes/tickets/frame.h"

/* Counts a worker that leaves. To @otherwise if others have not left yet. */
static void write_count(struct cursor *at, struct frame *fr, struct operand words,
			struct operand otherwise)
{
	struct safe *safe = fr->rewrite->safe;

	if (safe)
		edit_code(at,
			  "{ .reg .pred %p; .reg .b32 %n, %all;"
			  "  atom.global.add.u32 %n, [%0+24], %1; add.u32 %n, %n, %1;"
			  "  shr.u32 %2, %n, 16; and.b32 %n, %n, 0xffff;"
			  "  mov.u32 %all, %nctaid.x; setp.ne.u32 %p, %n, %all; @%p bra %3; }",
			  words, op_reg(safe->exit_count), op_reg(safe->saved), otherwise);
	else
		edit_code(at,
			  "{ .reg .pred %p; .reg .b32 %n, %all;"
			  "  atom.global.inc.u32 %n, [%0+24], 0xfffffffe;"
			  "  add.u32 %n, %n, 1; mov.u32 %all, %nctaid.x;"
			  "  setp.ne.u32 %p, %n, %all; @%p bra %1; }",
			  words, otherwise);
}

/* A launch with saved blocks is not done, even if no ticket is left. */
static void write_resume(struct cursor *at, struct frame *fr, struct operand words,
			 struct operand serial, struct operand restart, struct operand tickets,
			 struct operand is_done)
{
	struct safe *safe = fr->rewrite->safe;

	if (!safe) {
		edit_code(at,
			  "{ .reg .b32 %resume; selp.b32 %resume, 0, %0, %1;"
			  "  st.volatile.global.u32 [%2+28], %resume; }",
			  restart, is_done, words);
		return;
	}
	edit_code(at,
		  "{ .reg .pred %none; .reg .b32 %resume; min.u32 %0, %0, %1;"
		  "  setp.eq.u32 %none, %2, 0; and.pred %3, %3, %none;"
		  "  selp.b32 %resume, 0, %4, %none; st.volatile.global.u32 [%5+28], %resume; }",
		  restart, tickets, op_reg(safe->saved), is_done, serial, words);
	drain_count_saved(at, words, op_reg(safe->saved));
}
static_assert(offsetof(struct weir_words, resume) == 28, "in the templates");

/* If an open word refused the last worker, all tickets were drawn and are done. Prepares the words
 * and goes to @tell. Only the last worker reads here: where hundreds leave at the same time, one
 * more read of each takes a microsecond (H100). */
static void write_all_done(struct cursor *at, struct frame *fr, struct operand words,
			   struct operand done, struct operand evictions, struct block *tell)
{
	struct block *closed = edit_new_block(fr->f);

	edit_code(at, "{ .reg .pred %p; setp.lt.s32 %p, %0, 0; @%p bra %1; }", op_reg(fr->ticket),
		  op_block(closed));
	edit_code(at,
		  "{ .reg .b32 %zero; mov.u32 %zero, 0;"
		  "  st.volatile.global.v2.u32 [%0+32], {%zero, %zero};"
		  "  st.volatile.global.v4.u32 [%0+16], {%zero, %zero, %zero, %zero};"
		  "  ld.volatile.global.u32 %4, [%0+12];"
		  "  mov.u32 %1, %2; st.volatile.global.u32 [%0+8], %1; bra %3; }",
		  words, done, hidden32(at, fr->rewrite, HIDDEN(serial)), op_block(tell),
		  evictions);
	cursor_place(at, closed);
}

void leave_last(struct frame *fr)
{
	struct cursor at = cursor_start(fr->f, fr->leave);
	struct operand end = op_block(fr->end), words, serial, tickets, report;
	struct operand is_done = op_reg(edit_register(fr->f, TYPE_pred));
	struct operand done = op_reg(edit_register(fr->f, TYPE_b32));
	struct operand evictions = op_reg(edit_register(fr->f, TYPE_b32));
	struct operand restart = op_reg(edit_register(fr->f, TYPE_b32));
	struct operand launch = op_reg(edit_register(fr->f, TYPE_b64));
	struct block *tell = edit_new_block(fr->f);

	edit_code(&at, "@!%0 bra %1;", tickets_leader(&at, fr), end);
	words = hidden64(&at, fr->rewrite, HIDDEN(words));
	serial = hidden32(&at, fr->rewrite, HIDDEN(serial));
	tickets = hidden32(&at, fr->rewrite, HIDDEN(tickets));
	report = hidden64(&at, fr->rewrite, HIDDEN(report));
	if (fr->rewrite->safe) {
		drain_leave(&at, fr->rewrite, words);
		tickets_fence(&at); /* another thread of the block may have closed the launch */
	}
	write_count(&at, fr, words, end);
	if (!fr->rewrite->safe)
		write_all_done(&at, fr, words, done, evictions, tell);
	tickets_fence(&at);
	edit_code(&at,
		  "{ .reg .pred %open; .reg .b32 %t;"
		  "  ld.volatile.global.v2.u32 {%t, %5}, [%0+16];"
		  "  ld.volatile.global.v2.u32 {%3, %4}, [%0+8];"
		  "  setp.ge.s32 %open, %t, 0; @%open add.u32 %5, %t, %6;"
		  "  setp.ge.u32 %2, %5, %1; }",
		  words, tickets, is_done, done, evictions, restart,
		  hidden_dealt(&at, fr->rewrite));
	write_resume(&at, fr, words, serial, restart, tickets, is_done);
	quota_end(&at, fr->rewrite, is_done);
	edit_code(&at,
		  "{ .reg .b32 %zero; @%1 mov.u32 %4, 0; mov.u32 %zero, 0;"
		  "  st.volatile.global.u32 [%0+24], %zero; st.volatile.global.u32 [%0+32], %zero;"
		  "  st.volatile.global.u32 [%0+16], %4;"
		  "  @!%1 add.u32 %3, %3, 1; @!%1 st.volatile.global.u32 [%0+12], %3;"
		  "  @%1 mov.u32 %2, %5; @%1 st.volatile.global.u32 [%0+8], %2; }",
		  words, is_done, done, evictions, restart, serial);
	cursor_place(&at, tell);
	edit_code(&at, "{ .reg .pred %told; setp.eq.u64 %told, %0, 0; @%told bra %1; }", report,
		  end);
	tickets_fence(&at);
	edit_code(&at, "mov.b64 %0, {%1, %2};", launch, done, evictions);
	if (fr->rewrite->safe)
		drain_report(&at, words, report, launch);
	else
		edit_code(&at, "st.volatile.global.u64 [%0], %1;", report, launch);
	at = cursor_end(fr->f, fr->end);
	edit_code(&at, "ret;");
}
static_assert(offsetof(struct weir_words, left) == 24, "in the templates");
static_assert(offsetof(struct weir_words, done) == 8, "in the templates");
static_assert(offsetof(struct weir_words, evictions) == 12, "in the templates");
