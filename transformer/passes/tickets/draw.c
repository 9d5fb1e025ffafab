/* How workers begin, draw tickets, and pass them to all threads of the block. */
#include "passes/exit-barrier.h"
#include "passes/hidden.h"
#include "passes/quota/poll.h"
#include "passes/quota/quota.h"
#include "passes/safe-point.h"
#include "passes/save/drain.h"
#include "passes/tickets/frame.h"

/* Limits polling: of many workers, each polls only in every eighth span of 8 us; of fewer, in every
 * second. To @otherwise if this worker does not poll now. */
static void write_poll_filter(struct cursor *at, struct block *otherwise)
{
	edit_code(at,
		  "{ .reg .pred %p, %q; .reg .b32 %n, %w, %turn; .reg .b64 %span;"
		  "  mov.u64 %span, %globaltimer; shr.u64 %span, %span, 13;"
		  "  cvt.u32.u64 %turn, %span; mov.u32 %w, %ctaid.x; xor.b32 %turn, %turn, %w;"
		  "  mov.u32 %n, %nctaid.x; setp.ge.u32 %p, %n, 512; setp.ge.u32 %q, %n, 128;"
		  "  selp.b32 %n, 1, 0, %q; selp.b32 %n, 7, %n, %p; and.b32 %turn, %turn, %n;"
		  "  setp.ne.u32 %p, %turn, 0; @%p bra %0; }",
		  op_block(otherwise));
}

/* A launch that may be stale reads the words. One thread reads for all, because every warp of the
 * GPU would read the same sector. Returns `resume`; goes to the end if the launch is stale. */
static void write_look(struct cursor *at, struct frame *fr, struct operand resume)
{
	struct operand words = hidden64(at, fr->rewrite, HIDDEN(words));
	struct block *looked = edit_new_block(fr->f);

	edit_code(at, "@!%0 bra %1;", tickets_leader(at, fr), op_block(looked));
	edit_code(at,
		  "{ .reg .pred %p; .reg .b32 %done; ld.volatile.global.u32 %done, [%0+8];"
		  "  ld.volatile.global.u32 %1, [%0+28]; sub.u32 %done, %done, %2;"
		  "  setp.ge.s32 %p, %done, 0; @%p mov.u32 %1, -1; st.shared.u32 [%3+4], %1; }",
		  words, resume, hidden32(at, fr->rewrite, HIDDEN(serial)), op_variable(fr->slots));
	cursor_place(at, looked);
	tickets_barrier(at, fr);
	edit_code(at,
		  "{ .reg .pred %p; ld.shared.u32 %0, [%1+4];"
		  "  shfl.sync.idx.b32 %0, %0, 0, 31, 0xffffffff;"
		  "  setp.eq.u32 %p, %0, -1; @%p bra %2; }",
		  resume, op_variable(fr->slots), op_block(fr->end));
}

/* A stale launch touches nothing. Resumable kernels read more words, so all their threads read. */
static void write_stale(struct cursor *at, struct frame *fr)
{
	edit_code(at,
		  "{ .reg .pred %p; .reg .b32 %done; ld.volatile.global.u32 %done, [%0+8];"
		  "  shfl.sync.idx.b32 %done, %done, 0, 31, 0xffffffff; sub.u32 %done, %done, %1;"
		  "  setp.ge.s32 %p, %done, 0; @%p bra %2; }",
		  hidden64(at, fr->rewrite, HIDDEN(words)),
		  hidden32(at, fr->rewrite, HIDDEN(serial)), op_block(fr->end));
}

/* Workers without a dealt ticket. */
static void write_no_ticket(struct cursor *at, struct frame *fr, struct operand base)
{
	struct block *polls = edit_block(fr->f, fr->f->last, "polls");
	struct cursor alone = cursor_end(fr->f, polls);
	struct operand first = tickets_leader(&alone, fr);

	edit_code(at,
		  "{ .reg .pred %p; .reg .b32 %w; mov.u32 %w, %ctaid.x; add.u32 %0, %1, %w;"
		  "  setp.ge.u32 %p, %w, %2; @%p bra %3; bra %4; }",
		  op_reg(fr->drawn), base, hidden_dealt(at, fr->rewrite), op_block(polls),
		  op_block(fr->given));
	poll_alone(&alone, fr->rewrite, first, op_block(fr->first_draw));
}

void draw_enter(struct frame *fr, struct block *enter)
{
	struct cursor at = cursor_start(fr->f, enter);
	struct operand base = op_int(0);
	struct block *begin = edit_new_block(fr->f);

	if (fr->rewrite->safe) {
		write_stale(&at, fr);
	} else {
		base = op_reg(edit_register(fr->f, TYPE_b32));
		edit_code(&at,
			  "{ .reg .pred %p; mov.u32 %0, 0; setp.ne.u32 %p, %1, 0; @%p bra %2; }",
			  base, hidden32(&at, fr->rewrite, HIDDEN(fresh)), op_block(begin));
		write_look(&at, fr, base);
	}
	cursor_place(&at, begin);
	edit_code(&at, "mov.u32 %0, 0xfffffffe;", op_reg(fr->left));
	if (fr->rewrite->exit_barriers)
		exit_barriers_begin(&at, fr->rewrite);
	if (fr->rewrite->tally) /* all threads store the same value, and a barrier follows */
		edit_code(&at, "{ .reg .b32 %zero; mov.u32 %zero, 0; st.shared.u32 [%0], %zero; }",
			  op_variable(fr->rewrite->tally));
	if (!fr->rewrite->safe)
		write_no_ticket(&at, fr, base);
}

/* The first thread draws a ticket, unless a quota refuses it in resumable. `inc` with a limit that
 * is never reached instead of `add`: ptxas combines the additions of a warp, which takes longer
 * than this single one. */
static void write_draw(struct cursor *at, struct frame *fr, bool is_first)
{
	struct block *drawn = edit_new_block(fr->f);
	struct operand first = tickets_leader(at, fr), ticket = op_reg(fr->drawn);
	struct operand dealt = hidden_dealt(at, fr->rewrite);

	if (fr->rewrite->safe)
		quota_look(at, fr->rewrite, first, ticket, dealt, drawn);
	else if (is_first)
		quota_begin(at, fr->rewrite, first);
	else
		edit_code(at, "setp.lt.and.u32 %0, %1, 0x40000000, %0;", first, ticket);
	edit_code(at, "@%0 atom.global.inc.u32 %1, [%2+16], 0xfffffffe;", first, ticket,
		  hidden64(at, fr->rewrite, HIDDEN(words)));
	cursor_place(at, drawn);
	edit_code(at, "bar.warp.sync 0xffffffff;");
	if (!fr->rewrite->safe)
		edit_code(at, "add.u32 %0, %0, %1;", ticket, dealt);
}

/* `given` is the only entry of the ticket loop: resuming threads use it, too (save.c), and ptxas
 * makes better code of such loops. So there is a second copy of the drawing in front of it. */
void draw_tickets(struct frame *fr)
{
	struct cursor at = cursor_start(fr->f, fr->draw);

	write_draw(&at, fr, false);
	if (!fr->rewrite->safe)
		edit_code(&at, "{ .reg .pred %p; setp.ge.s32 %p, %0, 0; @%p bra %1; }",
			  op_reg(fr->left), op_block(fr->body));
	at = cursor_end(fr->f, fr->first_draw);
	write_draw(&at, fr, true);
	edit_code(&at, "bra %0;", op_block(fr->given));
}

/* For the first thread. Its ticket is already drawn and stays valid if it was not refused. Where
 * every ticket was dealt, leaving would spare nobody a block, and each poll delays one. */
static void write_poll(struct cursor *at, struct frame *fr, struct operand tickets)
{
	if (!fr->rewrite->safe)
		edit_code(at, "{ .reg .pred %p; setp.ge.u32 %p, %0, %1; @%p bra %2; }",
			  hidden_dealt(at, fr->rewrite), tickets, op_block(fr->told));
	write_poll_filter(at, fr->told);
	poll_host(at, fr->rewrite, hidden64(at, fr->rewrite, HIDDEN(words)), true,
		  op_block(fr->told));
	if (!fr->rewrite->safe) {
		tickets_fence(at);
	} else {
		struct operand id = op_reg(edit_register(fr->f, TYPE_b32));

		edit_code(at, "ld.volatile.shared.u32 %0, [%1+8];", id,
			  op_variable(fr->rewrite->safe->watch));
		safe_point_set_flags(at, fr->rewrite, id, op_int(0), op_int(1));
	}
}

void draw_given(struct frame *fr)
{
	struct cursor at = cursor_start(fr->f, fr->given);
	struct operand tickets = hidden32(&at, fr->rewrite, HIDDEN(tickets));
	struct operand slot = op_reg(edit_register(fr->f, TYPE_b32));
	struct block *refused = fr->told, *again = edit_new_block(fr->f),
		     *valid = edit_new_block(fr->f);

	edit_code(&at,
		  "{ .reg .b32 %x; and.b32 %x, %1, 1; shl.b32 %x, %x, 2;"
		  "  mov.u32 %0, %2; add.u32 %0, %0, %x; }",
		  slot, op_reg(fr->left), op_variable(fr->slots));
	edit_code(&at, "@!%0 bra %1;", tickets_leader(&at, fr), op_block(fr->told));
	if (!fr->rewrite->safe)
		refused = edit_block(fr->f, fr->f->last, "refused");
	cursor_place(&at, again);
	edit_code(&at, "st.shared.u32 [%0], %1;", slot, op_reg(fr->drawn));
	if (fr->rewrite->safe)
		drain_next_ticket(&at, fr->rewrite, op_reg(fr->drawn), tickets);
	edit_code(&at, "{ .reg .pred %p; setp.ge.u32 %p, %0, %1; @%p bra %2; }", op_reg(fr->drawn),
		  tickets, op_block(refused));
	cursor_place(&at, valid);
	write_poll(&at, fr, tickets);
	if (!fr->rewrite->safe) {
		at = cursor_end(fr->f, refused);
		quota_refused(&at, fr->rewrite,
			      &(struct quota_draw){.drawn = op_reg(fr->drawn),
						   .slot = slot,
						   .tickets = tickets,
						   .refused = fr->told,
						   .given = again,
						   .valid = valid});
	}

	at = cursor_end(fr->f, fr->told);
	tickets_barrier(&at, fr);
	edit_code(&at,
		  "{ .reg .pred %p; ld.shared.u32 %0, [%1];"
		  "  shfl.sync.idx.b32 %0, %0, 0, 31, 0xffffffff;"
		  "  setp.ge.u32 %p, %0, %2; @%p bra %3; }",
		  op_reg(fr->ticket), slot, tickets, op_block(fr->leave));
}
