/* The blocks of a ticket, one after the other. */
#include "passes/async/async.h"
#include "passes/hidden.h"
#include "passes/safe-point.h"
#include "passes/save/drain.h"
#include "passes/tickets/frame.h"

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

/* Registers of segment_first(). */
struct first {
	struct operand size;   /* blocks of the ticket */
	struct operand number; /* of the ticket, among those of its size */
};

/* Tickets of `chunk` blocks come first, then those of `fine`. Sets the block's line number to that
 * of the first block of its size. */
static void write_size(struct cursor *at, struct frame *fr, const struct first *first)
{
	edit_code(at,
		  "{ .reg .pred %p; .reg .b32 %last; sub.u32 %last, %3, 1;"
		  "  mov.u32 %0, 0; mov.u32 %2, %4; mov.u32 %6, %1;"
		  "  setp.gt.u32 %p, %1, %last; @%p mul.lo.u32 %0, %3, %4;"
		  "  @%p sub.u32 %6, %1, %3; @%p mov.u32 %2, %5; }",
		  op_reg(fr->line), op_reg(fr->ticket), first->size,
		  hidden32(at, fr->rewrite, HIDDEN(coarse)),
		  hidden32(at, fr->rewrite, HIDDEN(chunk)), hidden32(at, fr->rewrite, HIDDEN(fine)),
		  first->number);
}

/* `across` tickets begin at consecutive blocks; so do the next ones, behind all blocks of these. */
static void write_begin(struct cursor *at, struct frame *fr, const struct first *first)
{
	struct operand panel = op_reg(edit_register(fr->f, TYPE_b32));

	edit_code(at,
		  "{ .reg .pred %p; .reg .b32 %x; mov.u32 %1, %2; setp.eq.u32 %p, %3, 1;"
		  "  @%p bra row; div.u32 %1, %2, %3; mul.lo.u32 %1, %1, %3;"
		  "row: sub.u32 %x, %4, 1; mad.lo.u32 %x, %1, %x, %2; add.u32 %0, %0, %x; }",
		  op_reg(fr->line), panel, first->number, hidden32(at, fr->rewrite, HIDDEN(across)),
		  first->size);
}

/* The last tickets have one block each. */
static void write_single(struct cursor *at, struct frame *fr, const struct first *first)
{
	edit_code(at,
		  "{ .reg .pred %p; .reg .b32 %behind; sub.u32 %behind, %3, %1;"
		  "  setp.ge.u32 %p, %1, %2; @%p sub.u32 %0, %4, %behind; @%p mov.u32 %5, 1; }",
		  op_reg(fr->line), op_reg(fr->ticket), hidden32(at, fr->rewrite, HIDDEN(single)),
		  hidden32(at, fr->rewrite, HIDDEN(tickets)),
		  hidden32(at, fr->rewrite, HIDDEN(blocks)), first->size);
}

/* Blocks that are left of the ticket, beside the parity bit, which changes. */
static void write_left(struct cursor *at, struct frame *fr, const struct first *first)
{
	edit_code(at,
		  "{ .reg .b32 %n, %parity; sub.u32 %n, %1, %0; min.u32 %n, %n, %2;"
		  "  shl.b32 %n, %n, 1; and.b32 %parity, %3, 1;"
		  "  xor.b32 %parity, %parity, 1; or.b32 %3, %n, %parity; }",
		  op_reg(fr->line), hidden32(at, fr->rewrite, HIDDEN(blocks)), first->size,
		  op_reg(fr->left));
}

void segment_first(struct frame *fr)
{
	struct cursor at = cursor_start(fr->f, fr->first);
	struct first first = {.size = op_reg(edit_register(fr->f, TYPE_b32)),
			      .number = op_reg(edit_register(fr->f, TYPE_b32))};

	if (fr->borrowed) /* all threads have read the ticket */
		tickets_barrier(&at, fr);
	write_size(&at, fr, &first);
	write_begin(&at, fr, &first);
	write_single(&at, fr, &first);
	write_left(&at, fr, &first);
	if (fr->rewrite->safe)
		drain_begin(&at, fr->rewrite, first.size);
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
void segment_take(struct frame *fr)
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

void segment_next(struct frame *fr)
{
	struct cursor at = cursor_before(fr->f, fr->rewrite->leave);

	if (fr->rewrite->needs_barrier && !fr->rewrite->exits_at_barrier)
		tickets_barrier(&at, fr);
	if (async_invalidate(&at, fr->rewrite))
		tickets_barrier(&at, fr);
	/* The last barrier may let the lanes of a warp pass one by one. */
	if (fr->rewrite->needs_warps &&
	    (fr->rewrite->exits_at_barrier || fr->rewrite->reconvergence))
		edit_code(&at, "bar.warp.sync 0xffffffff;");
	if (fr->rewrite->safe) {
		fr->rewrite->safe->next = edit_new_block(fr->f);
		cursor_place(&at, fr->rewrite->safe->next);
	}
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
