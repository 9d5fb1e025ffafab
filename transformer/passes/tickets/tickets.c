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
#include "passes/safe-point.h"
#include "passes/tickets/frame.h"

/* Older targets have only the strongest fences. */
#define FENCE_SM 70
/* Blocks with this much shared memory may be limited by it. */
#define MUCH_SHARED 4096u

struct operand tickets_leader(struct cursor *at, struct frame *fr)
{
	struct reg *is_first = edit_register(fr->f, TYPE_pred);

	edit_code(at,
		  "{ .reg .b32 %x, %y; mov.u32 %x, %tid.x; mov.u32 %y, %tid.y; or.b32 %x, %x, %y;"
		  "  mov.u32 %y, %tid.z; or.b32 %x, %x, %y; setp.eq.u32 %0, %x, 0; }",
		  op_reg(is_first));
	return op_reg(is_first);
}

void tickets_barrier(struct cursor *at, struct frame *fr)
{
	if (fr->rewrite->safe)
		safe_point_barrier(at, fr->rewrite);
	else if (fr->rewrite->exits_at_barrier || fr->rewrite->reconvergence)
		edit_code(at, "barrier.sync %0;", op_int(fr->rewrite->barrier));
	else
		edit_code(at, "bar.sync %0;", op_int(fr->rewrite->barrier));
}

void tickets_fence(struct cursor *at)
{
	if (pass_target(at->function->module) < FENCE_SM)
		edit_code(at, "membar.gl;");
	else
		edit_code(at, "fence.acq_rel.gpu;");
}

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
	draw_enter(&fr, enter);
	draw_tickets(&fr);
	draw_given(&fr);
	segment_first(&fr);
	segment_take(&fr);
	segment_next(&fr);
	leave_last(&fr);
}

const struct pass pass_tickets = {"tickets", run};
