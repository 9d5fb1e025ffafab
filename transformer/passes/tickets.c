// clang-format off
/* The loop around the blocks of the grid.
 *
 *	enter     no ticket yet; a stale launch -> end; its ticket needs no drawing -> given
 *	polls     the last worker of a launch with a poller, until it should draw -> first_draw
 *	first_draw  as draw, and -> given
 *	draw      the first thread draws the next ticket -> body if a block is left to run before it
 *	given     the first thread polls if due; all threads learn the ticket -> leave if it is refused
 *	refused   the first thread: the draw was void -> given with another ticket, or a refused one
 *	first     computes the ticket's first block
 *	segment   takes as many blocks as lie along one axis; none left -> used up
 *	          only the last block left, and tickets are drawn ahead -> draw, else -> body
 *	body      the kernel, for one block
 *	next      advances by one step -> body; at the segment's end -> segment
 *	used up   -> given; -> draw if the next ticket was not drawn ahead
 *	leave     the last worker prepares the words for the next launch (preempt-abi.h)
 *
 * A ticket drawn ahead arrives while the last block of the ticket before runs. Only the first
 * thread uses its register, so nobody waits for the atomic operation.
 *
 * Besides the block's index, two registers live through the body: `count`, the segment's blocks,
 * and `left`. `left` is twice the number of blocks that the ticket has behind the segment, plus a
 * parity; below 0 the ticket is used up. The parity selects one of two words in shared memory that
 * pass the next ticket to all threads. With two words, one barrier per ticket is enough: the
 * writer of a word has passed the barrier behind the last read of it. A kernel with much shared
 * memory, where 8 bytes more may cost an SM a block, lends its own memory between blocks, at the
 * price of one more barrier.
 *
 * All threads read the same word, but a shuffle passes the ticket on to tell ptxas that it is
 * uniform. Otherwise ptxas would treat every branch of the kernel as one where a warp may diverge.
 * For the same reason nothing diverges on the way into the body.
 */
// clang-format on
#include "passes/async/async.h"
#include "passes/exit-barrier.h"
#include "passes/hidden.h"
#include "passes/pass.h"
#include "passes/quota/poll.h"
#include "passes/quota/quota.h"
#include "passes/safe-point.h"
#include "passes/save/drain.h"

/* Older targets have only the strongest fences. */
#define FENCE_SM 70
/* Blocks with this much shared memory may be limited by it. */
#define MUCH_SHARED 4096u

struct frame {
	struct rewrite *rewrite;
	struct function *f;
	struct variable *slots;    /* two words in shared memory for tickets */
	bool borrowed;             /* the words are the kernel's own memory */
	struct reg *drawn;         /* draw .. given, through the body; used by the first thread */
	struct reg *left, *count;  /* live through the body */
	struct reg *ticket, *line; /* live from given to first */
	struct reg *axis[3];       /* live through the body; NULL, but never for x: not used */
	struct block *first_draw, *draw, *given, *told, *first, *segment, *body, *used_up, *leave,
		*end;
};

/* A predicate: this is the first thread of the block. */
static struct operand leader(struct cursor *at, struct frame *fr)
{
	struct reg *is_first = edit_register(fr->f, TYPE_pred);

	edit_code(at,
		  "{ .reg .b32 %x, %y; mov.u32 %x, %tid.x; mov.u32 %y, %tid.y; or.b32 %x, %x, %y;"
		  "  mov.u32 %y, %tid.z; or.b32 %x, %x, %y; setp.eq.u32 %0, %x, 0; }",
		  op_reg(is_first));
	return op_reg(is_first);
}

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

/* Synchronises all threads that have not left (safe-point.h). bar.sync makes better code, but needs
 * whole warps, which exit barriers and reconvergence.h do not guarantee. */
static void write_barrier(struct cursor *at, struct frame *fr)
{
	if (fr->rewrite->safe)
		safe_point_barrier(at, fr->rewrite);
	else if (fr->rewrite->exits_at_barrier || fr->rewrite->reconvergence)
		edit_code(at, "barrier.sync %0;", op_int(fr->rewrite->barrier));
	else
		edit_code(at, "bar.sync %0;", op_int(fr->rewrite->barrier));
}

/* A launch that may be stale reads the words. One thread reads for all, because every warp of the
 * GPU would read the same sector. Returns `resume`; goes to the end if the launch is stale. */
static void write_look(struct cursor *at, struct frame *fr, struct operand resume)
{
	struct operand words = hidden64(at, fr->rewrite, HIDDEN(words));
	struct block *looked = edit_new_block(fr->f);

	edit_code(at, "@!%0 bra %1;", leader(at, fr), op_block(looked));
	edit_code(at,
		  "{ .reg .pred %p; .reg .b32 %done; ld.volatile.global.u32 %done, [%0+8];"
		  "  ld.volatile.global.u32 %1, [%0+28]; sub.u32 %done, %done, %2;"
		  "  setp.ge.s32 %p, %done, 0; @%p mov.u32 %1, -1; st.shared.u32 [%3+4], %1; }",
		  words, resume, hidden32(at, fr->rewrite, HIDDEN(serial)), op_variable(fr->slots));
	cursor_place(at, looked);
	write_barrier(at, fr);
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
	struct operand first = leader(&alone, fr);

	edit_code(at,
		  "{ .reg .pred %p; .reg .b32 %w; mov.u32 %w, %ctaid.x; add.u32 %0, %1, %w;"
		  "  setp.ge.u32 %p, %w, %2; @%p bra %3; bra %4; }",
		  op_reg(fr->drawn), base, hidden_dealt(at, fr->rewrite), op_block(polls),
		  op_block(fr->given));
	poll_alone(&alone, fr->rewrite, first, op_block(fr->first_draw));
}

static void write_enter(struct frame *fr, struct block *enter)
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
	struct operand first = leader(at, fr), ticket = op_reg(fr->drawn);
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
static void write_draws(struct frame *fr)
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

/* Makes earlier writes, of this thread and those it synchronised with, visible to the whole GPU. */
static void write_fence(struct cursor *at)
{
	if (pass_target(at->function->module) < FENCE_SM)
		edit_code(at, "membar.gl;");
	else
		edit_code(at, "fence.acq_rel.gpu;");
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
		write_fence(at);
	} else {
		struct operand id = op_reg(edit_register(fr->f, TYPE_b32));

		edit_code(at, "ld.volatile.shared.u32 %0, [%1+8];", id,
			  op_variable(fr->rewrite->safe->watch));
		safe_point_set_flags(at, fr->rewrite, id);
	}
}

static void write_given(struct frame *fr)
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
	edit_code(&at, "@!%0 bra %1;", leader(&at, fr), op_block(fr->told));
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
	write_barrier(&at, fr);
	edit_code(&at,
		  "{ .reg .pred %p; ld.shared.u32 %0, [%1];"
		  "  shfl.sync.idx.b32 %0, %0, 0, 31, 0xffffffff;"
		  "  setp.ge.u32 %p, %0, %2; @%p bra %3; }",
		  op_reg(fr->ticket), slot, tickets, op_block(fr->leave));
}

/* Computes the index from the block's line number. A grid of one row needs no division. */
static void write_axes(struct cursor *at, struct frame *fr)
{
	struct operand size[2], blocks;

	size[0] = hidden32(at, fr->rewrite, HIDDEN(grid));
	size[1] = hidden32(at, fr->rewrite, HIDDEN(grid) + 4);
	blocks = hidden32(at, fr->rewrite, HIDDEN(blocks));
	edit_code(at, "mov.u32 %0, %1;", op_reg(fr->axis[0]), op_reg(fr->line));
	for (unsigned k = 1; k < 3 && fr->axis[k]; k++)
		edit_code(at, "mov.u32 %0, 0;", op_reg(fr->axis[k]));
	edit_code(at, "{ .reg .pred %p; setp.eq.u32 %p, %0, %1; @%p bra %2; }", size[0], blocks,
		  op_block(fr->segment));
	for (unsigned k = 0; k < 2 && fr->axis[k]; k++) {
		edit_code(at,
			  "{ .reg .b32 %q, %m; div.u32 %q, %0, %1; mul.lo.u32 %m, %q, %1;"
			  "  sub.u32 %2, %0, %m; mov.u32 %0, %q; }",
			  op_reg(fr->line), size[k], op_reg(fr->axis[k]));
	}
	if (fr->axis[2])
		edit_code(at, "mov.u32 %0, %1;", op_reg(fr->axis[2]), op_reg(fr->line));
}

static void write_first(struct frame *fr)
{
	struct cursor at = cursor_start(fr->f, fr->first);
	struct operand size = op_reg(edit_register(fr->f, TYPE_b32));

	struct operand number = op_reg(edit_register(fr->f, TYPE_b32));
	struct operand panel = op_reg(edit_register(fr->f, TYPE_b32));

	if (fr->borrowed) /* all threads have read the ticket */
		write_barrier(&at, fr);
	edit_code(&at,
		  "{ .reg .pred %p; .reg .b32 %last; sub.u32 %last, %3, 1;"
		  "  mov.u32 %0, 0; mov.u32 %2, %4; mov.u32 %6, %1;"
		  "  setp.gt.u32 %p, %1, %last; @%p mul.lo.u32 %0, %3, %4;"
		  "  @%p sub.u32 %6, %1, %3; @%p mov.u32 %2, %5; }",
		  op_reg(fr->line), op_reg(fr->ticket), size,
		  hidden32(&at, fr->rewrite, HIDDEN(coarse)),
		  hidden32(&at, fr->rewrite, HIDDEN(chunk)),
		  hidden32(&at, fr->rewrite, HIDDEN(fine)), number);
	edit_code(&at,
		  "{ .reg .pred %p; .reg .b32 %x; mov.u32 %1, %2; setp.eq.u32 %p, %3, 1;"
		  "  @%p bra row; div.u32 %1, %2, %3; mul.lo.u32 %1, %1, %3;"
		  "row: sub.u32 %x, %4, 1; mad.lo.u32 %x, %1, %x, %2; add.u32 %0, %0, %x; }",
		  op_reg(fr->line), panel, number, hidden32(&at, fr->rewrite, HIDDEN(across)),
		  size);
	edit_code(&at,
		  "{ .reg .pred %p; .reg .b32 %behind; sub.u32 %behind, %3, %1;"
		  "  setp.ge.u32 %p, %1, %2; @%p sub.u32 %0, %4, %behind; @%p mov.u32 %5, 1; }",
		  op_reg(fr->line), op_reg(fr->ticket), hidden32(&at, fr->rewrite, HIDDEN(single)),
		  hidden32(&at, fr->rewrite, HIDDEN(tickets)),
		  hidden32(&at, fr->rewrite, HIDDEN(blocks)), size);
	edit_code(&at,
		  "{ .reg .b32 %n, %parity; sub.u32 %n, %1, %0; min.u32 %n, %n, %2;"
		  "  shl.b32 %n, %n, 1; and.b32 %parity, %3, 1;"
		  "  xor.b32 %parity, %parity, 1; or.b32 %3, %n, %parity; }",
		  op_reg(fr->line), hidden32(&at, fr->rewrite, HIDDEN(blocks)), size,
		  op_reg(fr->left));
	if (fr->rewrite->safe)
		drain_begin(&at, fr->rewrite, size);
	write_axes(&at, fr);
}

/* Carries from the end of a row to the next axis. */
static void write_carry(struct cursor *at, struct frame *fr)
{
	for (unsigned k = 0; k < 2; k++) {
		struct operand axis = op_reg(fr->axis[k]);
		struct operand at_end = op_reg(edit_register(fr->f, TYPE_pred));

		edit_code(at, "setp.eq.u32 %0, %1, %2; selp.b32 %1, 0, %1, %0;", at_end, axis,
			  hidden32(at, fr->rewrite, HIDDEN(grid) + 4 * k));
		if (!fr->axis[k + 1])
			return;
		edit_code(at,
			  "{ .reg .b32 %carry; selp.b32 %carry, 1, 0, %0;"
			  "  add.u32 %1, %1, %carry; }",
			  at_end, op_reg(fr->axis[k + 1]));
	}
}

/* A worker that saves a block must not hold a ticket besides. */
static struct operand draws_ahead(struct cursor *at, struct frame *fr)
{
	return fr->rewrite->safe ? op_int(0) : hidden32(at, fr->rewrite, HIDDEN(ahead));
}

/* To @draw if the next ticket is to be drawn, else to @otherwise. */
static void write_choice(struct cursor *at, struct frame *fr, bool draws, struct operand number,
			 struct operand ahead, struct block *otherwise)
{
	if (fr->rewrite->safe)
		edit_code(at, "bra %0;", op_block(draws ? fr->draw : otherwise));
	else
		edit_code(at, "{ .reg .pred %p; setp.eq.u32 %p, %0, %1; @%p bra %2; bra %3; }",
			  number, ahead, op_block(fr->draw), op_block(otherwise));
}

/* If tickets are drawn ahead, the last block of a ticket is a segment of its own. */
static void write_segment(struct frame *fr)
{
	struct cursor at = cursor_start(fr->f, fr->segment);
	struct operand n = op_reg(edit_register(fr->f, TYPE_b32));
	struct operand ahead = draws_ahead(&at, fr);

	edit_code(&at, "{ .reg .pred %p; shr.u32 %0, %1, 1; setp.eq.u32 %p, %0, 0; @%p bra %2; }",
		  n, op_reg(fr->left), op_block(fr->used_up));
	write_carry(&at, fr);
	edit_code(&at,
		  "{ .reg .pred %p; .reg .b32 %row, %some, %size; sub.u32 %row, %0, %1;"
		  "  setp.ne.u32 %p, %6, 1; @%p mov.u32 %row, -1; sub.u32 %some, %2, %3;"
		  "  max.u32 %some, %some, 1; min.u32 %4, %some, %row;"
		  "  shl.b32 %size, %4, 1; sub.u32 %5, %5, %size; }",
		  hidden32(&at, fr->rewrite, HIDDEN(grid)), op_reg(fr->axis[0]), n, ahead,
		  op_reg(fr->count), op_reg(fr->left), hidden32(&at, fr->rewrite, HIDDEN(across)));
	write_choice(&at, fr, false, n, ahead, fr->body);
}

static void write_next(struct frame *fr)
{
	struct cursor at = cursor_before(fr->f, fr->rewrite->leave);

	if (fr->rewrite->needs_barrier && !fr->rewrite->exits_at_barrier)
		write_barrier(&at, fr);
	if (async_invalidate(&at, fr->rewrite))
		write_barrier(&at, fr);
	/* The last barrier may let the lanes of a warp pass one by one. */
	if (fr->rewrite->needs_warps &&
	    (fr->rewrite->exits_at_barrier || fr->rewrite->reconvergence))
		edit_code(&at, "bar.warp.sync 0xffffffff;");
	for (unsigned k = 0; k < 3 && fr->axis[k]; k++)
		edit_code(&at, "add.u32 %0, %0, %1;", op_reg(fr->axis[k]),
			  hidden32(&at, fr->rewrite, HIDDEN(step) + 4 * k));
	edit_code(
		&at,
		"{ .reg .pred %p; sub.u32 %0, %0, 1; setp.ne.u32 %p, %0, 0; @%p bra %1; bra %2; }",
		op_reg(fr->count), op_block(fr->body), op_block(fr->segment));
	edit_remove(fr->rewrite->leave);

	at = cursor_end(fr->f, fr->used_up);
	edit_code(&at, "sub.u32 %0, %0, 2;", op_reg(fr->left));
	write_choice(&at, fr, true, op_int(0), draws_ahead(&at, fr), fr->given);
}

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

static void write_leave(struct frame *fr)
{
	struct cursor at = cursor_start(fr->f, fr->leave);
	struct operand end = op_block(fr->end), words, serial, tickets, report;
	struct operand is_done = op_reg(edit_register(fr->f, TYPE_pred));
	struct operand done = op_reg(edit_register(fr->f, TYPE_b32));
	struct operand evictions = op_reg(edit_register(fr->f, TYPE_b32));
	struct operand restart = op_reg(edit_register(fr->f, TYPE_b32));
	struct operand launch = op_reg(edit_register(fr->f, TYPE_b64));
	struct block *tell = edit_new_block(fr->f);

	edit_code(&at, "@!%0 bra %1;", leader(&at, fr), end);
	words = hidden64(&at, fr->rewrite, HIDDEN(words));
	serial = hidden32(&at, fr->rewrite, HIDDEN(serial));
	tickets = hidden32(&at, fr->rewrite, HIDDEN(tickets));
	report = hidden64(&at, fr->rewrite, HIDDEN(report));
	if (fr->rewrite->safe) {
		drain_leave(&at, fr->rewrite, words);
		write_fence(&at); /* another thread of the block may have closed the launch */
	}
	write_count(&at, fr, words, end);
	if (!fr->rewrite->safe)
		write_all_done(&at, fr, words, done, evictions, tell);
	write_fence(&at);
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
	write_fence(&at);
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

/* The axes that the kernel reads, and those that carry into them. The x axis always counts. */
static void find_axes(struct frame *fr)
{
	bool wanted = false;

	for (unsigned k = 3; k-- > 0;) {
		wanted = wanted || fr->rewrite->index[k] || k == 0;
		if (!wanted)
			continue;
		fr->axis[k] = fr->rewrite->index[k];
		if (!fr->axis[k])
			fr->axis[k] = edit_named_register(fr->f, TYPE_b32, "index");
	}
}

/* For save.c. */
static void show(struct frame *fr, struct block *enter)
{
	struct safe *safe = fr->rewrite->safe;

	if (!safe)
		return;
	safe->enter = edit_block(fr->f, enter, "entered");
	safe->draw = fr->draw;
	safe->given = fr->given;
	safe->leave = fr->leave;
	safe->slots = fr->slots;
	safe->ticket = fr->ticket;
	safe->drawn = fr->drawn;
	safe->exit_count = edit_named_register(fr->f, TYPE_b32, "parting");
	safe->saved = edit_named_register(fr->f, TYPE_b32, "saved");
}

/* Room in the kernel's own shared memory, if it is large and unused between blocks; NULL: none. */
static struct variable *borrow(const struct rewrite *rewrite)
{
	if (rewrite->safe || async_keeps_shared(rewrite) || rewrite->exit_barriers ||
	    rewrite->tally || rewrite->reconvergence || !rewrite->needs_barrier)
		return NULL;
	for (struct variable *v = rewrite->function->variables; v; v = v->next)
		if (v->space == SPACE_SHARED && v->size >= MUCH_SHARED && variable_align(v) >= 4)
			return v;
	return NULL;
}

static void run(struct rewrite *rewrite)
{
	struct function *f = rewrite->function;
	struct frame fr = {.rewrite = rewrite, .f = f};
	struct block *enter;

	fr.body = f->entry;
	fr.slots = borrow(rewrite);
	fr.borrowed = fr.slots != NULL;
	if (!fr.borrowed)
		fr.slots = edit_variable(f, SPACE_SHARED, "ticket", 8, 8);
	fr.left = edit_named_register(f, TYPE_b32, "left");
	fr.count = edit_named_register(f, TYPE_b32, "count");
	fr.ticket = edit_named_register(f, TYPE_b32, "ticket");
	fr.line = edit_named_register(f, TYPE_b32, "line");
	fr.drawn = edit_named_register(f, TYPE_b32, "drawn");
	find_axes(&fr);
	enter = edit_block(f, NULL, "enter");
	fr.draw = edit_block(f, enter, "draw");
	fr.given = edit_block(f, fr.draw, "given");
	fr.told = edit_block(f, fr.given, "told");
	fr.first = edit_block(f, fr.told, "first");
	fr.segment = edit_block(f, fr.first, "segment");
	fr.used_up = edit_block(f, f->last, "used_up");
	fr.leave = edit_block(f, fr.used_up, "leave");
	fr.end = edit_block(f, fr.leave, "end");
	show(&fr, enter);
	fr.first_draw =
		edit_block(f, fr.rewrite->safe ? fr.rewrite->safe->enter : enter, "first_draw");
	write_enter(&fr, enter);
	write_draws(&fr);
	write_given(&fr);
	write_first(&fr);
	write_segment(&fr);
	write_next(&fr);
	write_leave(&fr);
}

const struct pass pass_tickets = {"tickets", run};
