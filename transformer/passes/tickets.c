/* The loop around the blocks. Threads go
 *
 *	enter     no block, no ticket; a stale launch? -> end
 *	draw      the first thread draws the next ticket -> body if a block is to be run before it
 *	given     the first thread polls if it is due, all learn the ticket -> leave if it is none
 *	first     the ticket's first block
 *	segment   as many of its blocks as are steps along one axis; none left? -> used up
 *	          only the last one, and is the next ticket drawn ahead? -> draw, else -> body
 *	body      the kernel, a block of the grid
 *	next      one step further -> body, at the segment's end -> segment
 *	used up   -> given, or -> draw if that has not been done ahead
 *	leave     the last worker puts the words in order
 *
 * A ticket that is drawn ahead is under way while the last block before it runs, and nobody waits:
 * it lies in a register that only the first thread cares about.
 *
 * Two registers more live through the body, besides the block's index: the segment's blocks, and
 * twice the number of blocks that the ticket has behind it, plus the parity of tickets, which says
 * which of two words in shared memory the next ticket is handed round in; below 0: the ticket is
 * used up. With two words one barrier a ticket is enough: who writes one has come by the barrier
 * before which the other threads read it. A kernel with much shared memory, of which 8 bytes more
 * may cost an SM a block, lends them out between its blocks, for another barrier.
 *
 * The ticket comes out of a shuffle, though all threads read the same word, to tell ptxas that it
 * is the same: else it would take every branch of the kernel for one where a warp may part. For the
 * same reason nothing parts on the way into the body.
 *
 * What the words mean is in preempt-abi.h.
 */
#include "passes/hidden.h"
#include "passes/pass.h"
#include "passes/safe.h"
#include "passes/exit-barrier.h"

/* Before it there are only fences of the strongest kind. */
#define FENCE_SM 70
/* So many bytes of shared memory are what blocks of more than a few threads are short of. */
#define MUCH_SHARED 4096u

struct frame {
	struct rewrite *rewrite;
	struct function *f;
	struct variable *slots;    /* two words for tickets */
	bool borrowed;             /* they are the kernel's, too */
	struct reg *drawn;         /* draw .. given, through the body: the first thread's */
	struct reg *left, *count;  /* through the body */
	struct reg *ticket, *line; /* given .. first */
	struct reg *axis[3];       /* through the body; NULL, but not of x: nobody wants to know */
	struct block *draw, *given, *told, *first, *segment, *body, *used_up, *leave, *end;
};

/* Is it the first thread? */
static struct operand leader(struct cursor *at, struct frame *fr)
{
	struct reg *is_first = edit_register(fr->f, TYPE_pred);

	edit_code(at,
		  "{ .reg .b32 %x, %y; mov.u32 %x, %tid.x; mov.u32 %y, %tid.y; or.b32 %x, %x, %y;"
		  "  mov.u32 %y, %tid.z; or.b32 %x, %x, %y; setp.eq.u32 %0, %x, 0; }",
		  op_reg(is_first));
	return op_reg(is_first);
}

/* Not every worker needs to look whenever it could: of many, each looks only in every eighth span
 * of 8 us, of fewer in every second. To @otherwise if it is not this one's turn. */
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

/* All threads are here, or have left (safe.h). ptxas makes more of a barrier that warps come to as
 * a whole; behind votes, and where lanes wait for each other (reconvergence.h), they may not. */
static void write_barrier(struct cursor *at, struct frame *fr)
{
	if (fr->rewrite->safe)
		safe_barrier(at, fr->rewrite);
	else if (fr->rewrite->exits_at_barrier || fr->rewrite->reconvergence)
		edit_code(at, "barrier.sync %0;", op_int(fr->rewrite->barrier));
	else
		edit_code(at, "bar.sync %0;", op_int(fr->rewrite->barrier));
}

/* A launch that may be stale looks at the words. The first thread does for all, as
 * every warp of the GPU would read the same sector. Returns `resume`; to the end if it is stale. */
static void write_look(struct cursor *at, struct frame *fr, struct operand resume)
{
	struct operand words = hidden64(at, fr->rewrite, HIDDEN(words));
	struct block *looked = edit_new_block(fr->f);

	if (!looked)
		return;
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

/* Nothing is touched if the launch is stale. Resumable kernels look at more words, all of them. */
static void write_stale(struct cursor *at, struct frame *fr)
{
	edit_code(at,
		  "{ .reg .pred %p; .reg .b32 %done; ld.volatile.global.u32 %done, [%0+8];"
		  "  shfl.sync.idx.b32 %done, %done, 0, 31, 0xffffffff; sub.u32 %done, %done, %1;"
		  "  setp.ge.s32 %p, %done, 0; @%p bra %2; }",
		  hidden64(at, fr->rewrite, HIDDEN(words)),
		  hidden32(at, fr->rewrite, HIDDEN(serial)), op_block(fr->end));
}

static void write_enter(struct frame *fr, struct block *enter)
{
	struct cursor at = cursor_start(fr->f, enter);
	struct operand base = op_int(0);
	struct block *begin = edit_new_block(fr->f);

	if (!begin)
		return;
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
	if (fr->rewrite->tally) /* all write the same, and a barrier follows */
		edit_code(&at, "{ .reg .b32 %zero; mov.u32 %zero, 0; st.shared.u32 [%0], %zero; }",
			  op_variable(fr->rewrite->tally));
	if (!fr->rewrite->safe)
		edit_code(&at,
			  "{ .reg .b32 %w; mov.u32 %w, %ctaid.x; add.u32 %0, %1, %w; bra %2; }",
			  op_reg(fr->drawn), base, op_block(fr->given));
}

/* `inc` up to a number that is never reached, and not `add`: ptxas makes one addition of those of a
 * warp, which takes longer than the one that there is. */
static void write_draw(struct cursor *at, struct frame *fr)
{
	edit_code(at, "@%0 atom.global.inc.u32 %1, [%2+16], 0xfffffffe; bar.warp.sync 0xffffffff;",
		  leader(at, fr), op_reg(fr->drawn), hidden64(at, fr->rewrite, HIDDEN(words)));
}

/* With safe points, `given` is the only way into the loop around the tickets: threads that go on
 * come through it, too (save.c). Without, no worker has to draw its first ticket. */
static void write_draws(struct frame *fr, struct block *enter)
{
	struct cursor at = cursor_start(fr->f, fr->draw);

	write_draw(&at, fr);
	if (!fr->rewrite->safe) {
		edit_code(&at,
			  "{ .reg .pred %p; .reg .b32 %n; mov.u32 %n, %nctaid.x;"
			  "  add.u32 %0, %0, %n; setp.ge.s32 %p, %1, 0; @%p bra %2; }",
			  op_reg(fr->drawn), op_reg(fr->left), op_block(fr->body));
		return;
	}
	at = cursor_end(fr->f, edit_block(fr->f, enter, "first_draw"));
	write_draw(&at, fr);
	edit_code(&at, "bra %0;", op_block(fr->given));
}

/* Behind the fence, what this thread and whoever it knows of wrote is there for the whole GPU. */
static void write_fence(struct cursor *at)
{
	if (pass_target(at->function->module) < FENCE_SM)
		edit_code(at, "membar.gl;");
	else
		edit_code(at, "fence.acq_rel.gpu;");
}

/* The first thread, in its turn. It has drawn already: what it holds is good, if not closed before.
 */
static void write_poll(struct cursor *at, struct frame *fr)
{
	struct operand next = op_reg(edit_register(fr->f, TYPE_b64));
	struct operand words = hidden64(at, fr->rewrite, HIDDEN(words));

	write_poll_filter(at, fr->told);
	edit_code(at, "ld.volatile.global.u64 %0, [%1];", next, words);
	hidden_poll(at, fr->rewrite, words, next, op_block(fr->told));
	if (!fr->rewrite->safe) {
		write_fence(at);
	} else {
		struct operand id = op_reg(edit_register(fr->f, TYPE_b32));

		edit_code(at, "ld.volatile.shared.u32 %0, [%1+8];", id,
			  op_variable(fr->rewrite->safe->watch));
		safe_tell(at, fr->rewrite, id);
	}
}

static void write_given(struct frame *fr)
{
	struct cursor at = cursor_start(fr->f, fr->given);
	struct operand tickets = hidden32(&at, fr->rewrite, HIDDEN(tickets));
	struct operand slot = op_reg(edit_register(fr->f, TYPE_b32));

	edit_code(&at,
		  "{ .reg .b32 %x; and.b32 %x, %1, 1; shl.b32 %x, %x, 2;"
		  "  mov.u32 %0, %2; add.u32 %0, %0, %x; }",
		  slot, op_reg(fr->left), op_variable(fr->slots));
	edit_code(&at,
		  "{ .reg .pred %p; @!%0 bra %1; st.shared.u32 [%2], %3;"
		  "  setp.ge.u32 %p, %3, %4; @%p bra %1; }",
		  leader(&at, fr), op_block(fr->told), slot, op_reg(fr->drawn), tickets);
	write_poll(&at, fr);

	at = cursor_end(fr->f, fr->told);
	write_barrier(&at, fr);
	edit_code(&at,
		  "{ .reg .pred %p; ld.shared.u32 %0, [%1];"
		  "  shfl.sync.idx.b32 %0, %0, 0, 31, 0xffffffff;"
		  "  setp.ge.u32 %p, %0, %2; @%p bra %3; }",
		  op_reg(fr->ticket), slot, tickets, op_block(fr->leave));
}

/* Where the line number is in the grid; nothing to divide where the grid is a line. */
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

	if (fr->borrowed) /* all have read it */
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
	write_axes(&at, fr);
}

/* At the end of a row: on to the next one. */
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

/* Who saves a block has no ticket besides. */
static struct operand draws_ahead(struct cursor *at, struct frame *fr)
{
	return fr->rewrite->safe ? op_int(0) : hidden32(at, fr->rewrite, HIDDEN(ahead));
}

/* To @draw if the next ticket is to be drawn, as @number says, else to @otherwise. */
static void write_choice(struct cursor *at, struct frame *fr, bool draws, struct operand number,
			 struct operand ahead, struct block *otherwise)
{
	if (fr->rewrite->safe)
		edit_code(at, "bra %0;", op_block(draws ? fr->draw : otherwise));
	else
		edit_code(at, "{ .reg .pred %p; setp.eq.u32 %p, %0, %1; @%p bra %2; bra %3; }",
			  number, ahead, op_block(fr->draw), op_block(otherwise));
}

/* If tickets are drawn ahead, the ticket's last block is a segment by itself. */
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
	for (unsigned k = 0; k < 3 && fr->axis[k]; k++)
		edit_code(&at, "add.u32 %0, %0, %1;", op_reg(fr->axis[k]),
			  hidden32(&at, fr->rewrite, HIDDEN(step) + 4 * k));
	edit_code(
		&at,
		"{ .reg .pred %p; sub.u32 %0, %0, 1; setp.ne.u32 %p, %0, 0; @%p bra %1; bra %2; }",
		op_reg(fr->count), op_block(fr->body), op_block(fr->segment));
	edit_remove(fr->f, fr->rewrite->leave);

	at = cursor_end(fr->f, fr->used_up);
	edit_code(&at, "sub.u32 %0, %0, 2;", op_reg(fr->left));
	write_choice(&at, fr, true, op_int(0), draws_ahead(&at, fr), fr->given);
}

/* One worker more has left; to @otherwise if it is not the last. */
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

/* While blocks are saved the launch is not done, even if no ticket is left. */
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
}
static_assert(offsetof(struct weir_words, resume) == 28, "in the templates");

/* To @tell with the words in order, where the last worker was refused by an open word: then all
 * tickets had been given out, and all are done. There is nothing to look at, nor to wait for. */
static void write_all_done(struct cursor *at, struct frame *fr, struct operand words,
			   struct operand done, struct block *tell)
{
	struct block *closed = edit_new_block(fr->f);

	if (!closed)
		return;
	edit_code(at, "{ .reg .pred %p; setp.lt.s32 %p, %0, 0; @%p bra %1; }", op_reg(fr->ticket),
		  op_block(closed));
	edit_code(at,
		  "{ .reg .b32 %zero; mov.u32 %zero, 0;"
		  "  st.volatile.global.v4.u32 [%0+16], {%zero, %zero, %zero, %zero};"
		  "  mov.u32 %1, %2; st.volatile.global.u32 [%0+8], %1; bra %3; }",
		  words, done, hidden32(at, fr->rewrite, HIDDEN(serial)), op_block(tell));
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
	struct block *tell = edit_new_block(fr->f);

	if (!tell)
		return;
	edit_code(&at, "@!%0 bra %1;", leader(&at, fr), end);
	words = hidden64(&at, fr->rewrite, HIDDEN(words));
	serial = hidden32(&at, fr->rewrite, HIDDEN(serial));
	tickets = hidden32(&at, fr->rewrite, HIDDEN(tickets));
	report = hidden64(&at, fr->rewrite, HIDDEN(report));
	if (fr->rewrite->safe) /* others of the block may have closed the launch */
		write_fence(&at);
	else /* only a last worker changes it, and nobody waits for it while he is counted */
		edit_code(&at, "ld.volatile.global.u32 %0, [%1+12];", evictions, words);
	write_count(&at, fr, words, end);
	if (!fr->rewrite->safe)
		write_all_done(&at, fr, words, done, tell);
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
	edit_code(&at,
		  "{ .reg .b32 %zero; @%1 mov.u32 %4, 0; mov.u32 %zero, 0;"
		  "  st.volatile.global.u32 [%0+24], %zero; st.volatile.global.u32 [%0+16], %4;"
		  "  @!%1 add.u32 %3, %3, 1; @!%1 st.volatile.global.u32 [%0+12], %3;"
		  "  @%1 mov.u32 %2, %5; @%1 st.volatile.global.u32 [%0+8], %2; }",
		  words, is_done, done, evictions, restart, serial);
	cursor_place(&at, tell);
	edit_code(&at, "{ .reg .pred %told; setp.eq.u64 %told, %0, 0; @%told bra %1; }", report,
		  end);
	write_fence(&at);
	edit_code(
		&at,
		"{ .reg .b64 %tell; mov.b64 %tell, {%1, %2}; st.volatile.global.u64 [%0], %tell; }",
		report, done, evictions);
	at = cursor_end(fr->f, fr->end);
	edit_code(&at, "ret;");
}
static_assert(offsetof(struct weir_words, left) == 24, "in the templates");
static_assert(offsetof(struct weir_words, done) == 8, "in the templates");
static_assert(offsetof(struct weir_words, evictions) == 12, "in the templates");

/* The axes that the kernel reads, and those that carry into them; the first is always there, to
 * count by. */
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

/* What save.c goes on from. */
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

/* Room in the kernel's own shared memory, if there is much of it, and nobody uses it between two
 * blocks; NULL: none. */
static struct variable *borrow(const struct rewrite *rewrite)
{
	if (rewrite->safe || rewrite->exit_barriers || rewrite->tally || rewrite->reconvergence ||
	    !rewrite->needs_barrier)
		return NULL;
	for (struct variable *v = rewrite->function->variables; v; v = v->next)
		if (v->space == SPACE_SHARED && v->size >= MUCH_SHARED && variable_align(v) >= 4)
			return v;
	return NULL;
}

static int run(struct rewrite *rewrite)
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
	write_enter(&fr, enter);
	write_draws(&fr, fr.rewrite->safe ? fr.rewrite->safe->enter : NULL);
	write_given(&fr);
	write_first(&fr);
	write_segment(&fr);
	write_next(&fr);
	write_leave(&fr);
	return PASS_DONE;
}

const struct pass pass_tickets = {"tickets", run};
