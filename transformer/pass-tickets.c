/* The loop around the blocks. Threads go
 *
 *	enter     no block, no ticket
 *	draw      the first thread draws the next ticket, and polls if it is due
 *	          -> body if a block is to be run before it
 *	given     all learn the ticket -> leave if it is none
 *	first     the ticket's first block; its last one too, and tickets are large? -> draw
 *	body      the kernel, a block of the grid
 *	next      one block further; the ticket's last? -> draw, else -> body
 *	          no more blocks? -> given; or -> draw, if tickets are of one block
 *	leave     the last worker puts the words in order
 *
 * So the next ticket is under way while the last block of the present one runs, and only the first
 * thread's warp waits for it. Tickets of one block are drawn when it is done: such blocks are long.
 *
 * One register lives through the body besides the block's index: twice the number of blocks that
 * the ticket has after this one, plus the parity of tickets, which says which of two words in
 * shared memory the next ticket is handed round in; below 0: the ticket is used up. With two words
 * one barrier a ticket is enough: who writes one has come by the barrier before which the other
 * threads read it.
 *
 * The ticket comes out of a shuffle, though all threads read the same word, to tell ptxas that it
 * is the same: else it would take every branch of the kernel for one where a warp may part.
 *
 * What the words mean is in preempt-abi.h.
 */
#include "hidden.h"
#include "pass.h"
#include "safe.h"

/* Before it there are only fences of the strongest kind. */
#define FENCE_SM 70

struct frame {
	struct rewrite *rewrite;
	struct function *f;
	struct variable *slots;    /* two words for tickets */
	struct reg *countdown;     /* through the body */
	struct reg *ticket, *line; /* given .. first */
	struct reg *axis[3];       /* through the body; NULL: nobody wants to know */
	struct block *draw, *drawn, *given, *first, *go, *body, *used_up, *leave, *end;
};

/* Nothing is touched if the launch is stale. */
static void write_enter(struct frame *fr, struct block *enter)
{
	struct cursor at = cursor_start(fr->f, enter);

	edit_code(&at,
		  "{ .reg .pred %p; .reg .b32 %done; ld.volatile.global.u32 %done, [%0+8];"
		  "  shfl.sync.idx.b32 %done, %done, 0, 31, 0xffffffff; sub.u32 %done, %done, %1;"
		  "  setp.ge.s32 %p, %done, 0; @%p bra %2; }",
		  hidden64(&at, fr->rewrite, HIDDEN(words)),
		  hidden32(&at, fr->rewrite, HIDDEN(serial)), op_block(fr->end));
	edit_code(&at, "mov.u32 %0, 0xfffffffe;", op_reg(fr->countdown));
	if (fr->rewrite->tally) /* all write the same, and a barrier follows */
		edit_code(&at, "{ .reg .b32 %zero; mov.u32 %zero, 0; st.shared.u32 [%0], %zero; }",
			  op_variable(fr->rewrite->tally));
}

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

/* Where the next ticket is handed round. */
static struct operand slot(struct cursor *at, struct frame *fr)
{
	struct reg *address = edit_register(fr->f, TYPE_b32);

	edit_code(at,
		  "{ .reg .b32 %x; and.b32 %x, %1, 1; shl.b32 %x, %x, 2;"
		  "  mov.u32 %0, %2; add.u32 %0, %0, %x; }",
		  op_reg(address), op_reg(fr->countdown), op_variable(fr->slots));
	return op_reg(address);
}

/* `inc` up to the largest number there is, and not `add`: ptxas makes one addition of those of a
 * warp, which takes longer than the one that there is. */
static void write_draw(struct frame *fr)
{
	struct cursor at = cursor_start(fr->f, fr->draw);
	struct operand next = op_reg(edit_register(fr->f, TYPE_b64));
	struct operand ticket = op_reg(edit_register(fr->f, TYPE_b32)), words;

	edit_code(&at, "@!%0 bra %1;", leader(&at, fr), op_block(fr->drawn));
	words = hidden64(&at, fr->rewrite, HIDDEN(words));
	edit_code(&at,
		  "{ .reg .pred %p; ld.volatile.global.u64 %0, [%1];"
		  "  atom.global.inc.u32 %2, [%1+16], 0xfffffffe;"
		  "  st.volatile.shared.u32 [%3], %2; setp.ge.u32 %p, %2, %4; @%p bra %5; }",
		  next, words, ticket, slot(&at, fr), hidden32(&at, fr->rewrite, HIDDEN(tickets)),
		  op_block(fr->drawn));
	hidden_poll(&at, fr->rewrite, words, next, op_block(fr->drawn));

	at = cursor_end(fr->f, fr->drawn);
	edit_code(&at, "{ .reg .pred %p; setp.ge.s32 %p, %0, 0; @%p bra %1; }",
		  op_reg(fr->countdown), op_block(fr->body));
}

/* All threads are here, or have left (safe.h). */
static void write_barrier(struct cursor *at, struct frame *fr)
{
	if (fr->rewrite->safe)
		safe_vote(at, fr->rewrite);
	else
		edit_code(at, "barrier.sync %0;", op_int(fr->rewrite->barrier));
}

static void write_given(struct frame *fr)
{
	struct cursor at = cursor_start(fr->f, fr->given);

	write_barrier(&at, fr);
	edit_code(&at,
		  "{ .reg .pred %p; ld.volatile.shared.u32 %0, [%1];"
		  "  shfl.sync.idx.b32 %0, %0, 0, 31, 0xffffffff;"
		  "  setp.ge.u32 %p, %0, %2; @%p bra %3; }",
		  op_reg(fr->ticket), slot(&at, fr), hidden32(&at, fr->rewrite, HIDDEN(tickets)),
		  op_block(fr->leave));
}

/* Where the line number is in the grid; nothing to divide where the grid is a line. */
static void write_axes(struct cursor *at, struct frame *fr, struct block *done)
{
	struct operand size[2], blocks;

	if (!fr->axis[0])
		return;
	size[0] = hidden32(at, fr->rewrite, HIDDEN(grid));
	size[1] = hidden32(at, fr->rewrite, HIDDEN(grid) + 4);
	blocks = hidden32(at, fr->rewrite, HIDDEN(blocks));
	edit_code(at, "mov.u32 %0, %1;", op_reg(fr->axis[0]), op_reg(fr->line));
	for (unsigned k = 1; k < 3 && fr->axis[k]; k++)
		edit_code(at, "mov.u32 %0, 0;", op_reg(fr->axis[k]));
	edit_code(at, "{ .reg .pred %p; setp.eq.u32 %p, %0, %1; @%p bra %2; }", size[0], blocks,
		  op_block(done));
	for (unsigned k = 0; k < 2 && fr->axis[k]; k++) {
		edit_code(at,
			  "{ .reg .b32 %q, %m; div.u32 %q, %0, %1; mul.lo.u32 %m, %q, %1;"
			  "  sub.u32 %2, %0, %m; mov.u32 %0, %q; }",
			  op_reg(fr->line), size[k], op_reg(fr->axis[k]));
	}
	if (fr->axis[2])
		edit_code(at, "mov.u32 %0, %1;", op_reg(fr->axis[2]), op_reg(fr->line));
}

/* To the body, or first for the next ticket if this is the last block of one. */
static void write_go(struct cursor *at, struct frame *fr, struct operand chunk)
{
	edit_code(at,
		  "{ .reg .pred %p; setp.eq.u32 %p, %1, 1; setp.ge.or.s32 %p, %0, 2, %p;"
		  "  @%p bra %2; bra %3; }",
		  op_reg(fr->countdown), chunk, op_block(fr->body), op_block(fr->draw));
}

static void write_first(struct frame *fr)
{
	struct cursor at = cursor_start(fr->f, fr->first);
	struct operand chunk = hidden32(&at, fr->rewrite, HIDDEN(chunk));
	struct operand blocks = hidden32(&at, fr->rewrite, HIDDEN(blocks));

	edit_code(
		&at,
		"{ .reg .b32 %n, %parity; mul.lo.u32 %0, %1, %2; sub.u32 %n, %3, %0;"
		"  min.u32 %n, %n, %2; sub.u32 %n, %n, 1; shl.b32 %n, %n, 1;"
		"  and.b32 %parity, %4, 1; xor.b32 %parity, %parity, 1; or.b32 %4, %n, %parity; }",
		op_reg(fr->line), op_reg(fr->ticket), chunk, blocks, op_reg(fr->countdown));
	write_axes(&at, fr, fr->go);
	at = cursor_end(fr->f, fr->go);
	write_go(&at, fr, chunk);
}

/* The block behind this one: without branches, so that indices stay the same for all threads in the
 * eyes of ptxas. */
static void write_step(struct cursor *at, struct frame *fr)
{
	struct operand carry = op_int(1);

	for (unsigned k = 0; k < 3 && fr->axis[k]; k++) {
		struct operand axis = op_reg(fr->axis[k]);

		edit_code(at, "add.u32 %0, %0, %1;", axis, carry);
		if (k == 2)
			break;
		carry = op_reg(edit_register(fr->f, TYPE_b32));
		edit_code(at,
			  "{ .reg .pred %p; setp.eq.u32 %p, %0, %1; selp.b32 %0, 0, %0, %p;"
			  "  selp.b32 %2, 1, 0, %p; }",
			  axis, hidden32(at, fr->rewrite, HIDDEN(grid) + 4 * k), carry);
	}
}

static void write_next(struct frame *fr)
{
	struct cursor at = cursor_before(fr->f, fr->rewrite->leave);
	struct operand chunk;

	edit_code(&at, "{ .reg .pred %p; sub.u32 %0, %0, 2; setp.lt.s32 %p, %0, 0; @%p bra %1; }",
		  op_reg(fr->countdown), op_block(fr->used_up));
	if (fr->rewrite->must_meet && !fr->rewrite->have_met)
		write_barrier(&at, fr);
	write_step(&at, fr);
	edit_code(&at, "{ .reg .pred %p; setp.ge.s32 %p, %0, 2; @%p bra %1; bra %2; }",
		  op_reg(fr->countdown), op_block(fr->body), op_block(fr->draw));
	edit_remove(fr->f, fr->rewrite->leave);

	at = cursor_end(fr->f, fr->used_up);
	chunk = hidden32(&at, fr->rewrite, HIDDEN(chunk));
	edit_code(&at, "{ .reg .pred %p; setp.eq.u32 %p, %0, 1; @%p bra %1; bra %2; }", chunk,
		  op_block(fr->draw), op_block(fr->given));
}

/* Behind the fence, what all threads of the block and whoever they know of wrote is there for the
 * whole GPU, or the system. */
static void write_fence(struct cursor *at, bool for_system)
{
	if (pass_target(at->function->module) < FENCE_SM)
		edit_code(at, for_system ? "membar.sys;" : "membar.gl;");
	else
		edit_code(at, for_system ? "fence.acq_rel.sys;" : "fence.acq_rel.gpu;");
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
			  words, op_reg(safe->parting), op_reg(safe->saved), otherwise);
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

	if (!safe)
		return;
	edit_code(at,
		  "{ .reg .pred %none; .reg .b32 %resume; min.u32 %0, %0, %1;"
		  "  setp.eq.u32 %none, %2, 0; and.pred %3, %3, %none;"
		  "  selp.b32 %resume, 0, %4, %none; st.volatile.global.u32 [%5+28], %resume; }",
		  restart, tickets, op_reg(safe->saved), is_done, serial, words);
}
static_assert(offsetof(struct weir_words, resume) == 28, "in the templates");

static void write_leave(struct frame *fr)
{
	struct cursor at = cursor_start(fr->f, fr->leave);
	struct operand end = op_block(fr->end), words, serial, tickets, report;
	struct operand is_done = op_reg(edit_register(fr->f, TYPE_pred));
	struct operand done = op_reg(edit_register(fr->f, TYPE_b32));
	struct operand evictions = op_reg(edit_register(fr->f, TYPE_b32));
	struct operand restart = op_reg(edit_register(fr->f, TYPE_b32));

	edit_code(&at, "@!%0 bra %1;", leader(&at, fr), end);
	words = hidden64(&at, fr->rewrite, HIDDEN(words));
	serial = hidden32(&at, fr->rewrite, HIDDEN(serial));
	tickets = hidden32(&at, fr->rewrite, HIDDEN(tickets));
	report = hidden64(&at, fr->rewrite, HIDDEN(report));
	write_fence(&at, false);
	write_count(&at, fr, words, end);
	write_fence(&at, false);
	edit_code(&at,
		  "{ .reg .pred %open; .reg .b32 %t;"
		  "  ld.volatile.global.v2.u32 {%t, %5}, [%0+16];"
		  "  ld.volatile.global.v2.u32 {%3, %4}, [%0+8];"
		  "  setp.ge.s32 %open, %t, 0; @%open mov.u32 %5, %1;"
		  "  setp.ge.u32 %2, %5, %1; }",
		  words, tickets, is_done, done, evictions, restart);
	write_resume(&at, fr, words, serial, restart, tickets, is_done);
	edit_code(&at,
		  "{ .reg .b32 %zero; @%1 mov.u32 %4, 0; mov.u32 %zero, 0;"
		  "  st.volatile.global.u32 [%0+24], %zero; st.volatile.global.u32 [%0+16], %4;"
		  "  @!%1 add.u32 %3, %3, 1; @!%1 st.volatile.global.u32 [%0+12], %3;"
		  "  @%1 mov.u32 %2, %5; }",
		  words, is_done, done, evictions, restart, serial);
	write_fence(&at, true);
	edit_code(&at,
		  "{ .reg .pred %told; .reg .b64 %tell; @%0 st.volatile.global.u32 [%1+8], %2;"
		  "  setp.eq.u64 %told, %4, 0; @%told bra %5;"
		  "  mov.b64 %tell, {%2, %3}; st.volatile.global.u64 [%4], %tell; }",
		  is_done, words, done, evictions, report, end);
	at = cursor_end(fr->f, fr->end);
	edit_code(&at, "ret;");
}
static_assert(offsetof(struct weir_words, left) == 24, "in the templates");
static_assert(offsetof(struct weir_words, done) == 8, "in the templates");
static_assert(offsetof(struct weir_words, evictions) == 12, "in the templates");

/* The axes that the kernel reads, and those that carry into them. */
static void find_axes(struct frame *fr)
{
	bool wanted = false;

	for (unsigned k = 3; k-- > 0;) {
		wanted = wanted || fr->rewrite->index[k];
		if (!wanted)
			continue;
		fr->axis[k] = fr->rewrite->index[k];
		if (!fr->axis[k])
			fr->axis[k] = edit_named_register(fr->f, TYPE_b32, "index");
	}
}

/* What pass-save.c goes on from. */
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
	safe->parting = edit_named_register(fr->f, TYPE_b32, "parting");
	safe->saved = edit_named_register(fr->f, TYPE_b32, "saved");
}

static int run(struct rewrite *rewrite)
{
	struct function *f = rewrite->function;
	struct frame fr = {.rewrite = rewrite, .f = f};
	struct block *enter;

	fr.body = f->entry;
	fr.slots = edit_variable(f, SPACE_SHARED, "ticket", 8, 8);
	fr.countdown = edit_named_register(f, TYPE_b32, "countdown");
	fr.ticket = edit_named_register(f, TYPE_b32, "ticket");
	fr.line = edit_named_register(f, TYPE_b32, "line");
	find_axes(&fr);
	enter = edit_block(f, NULL, "enter");
	fr.draw = edit_block(f, enter, "draw");
	fr.drawn = edit_block(f, fr.draw, "drawn");
	fr.given = edit_block(f, fr.drawn, "given");
	fr.first = edit_block(f, fr.given, "first");
	fr.go = edit_block(f, fr.first, "go");
	fr.used_up = edit_block(f, f->last, "used_up");
	fr.leave = edit_block(f, fr.used_up, "leave");
	fr.end = edit_block(f, fr.leave, "end");
	show(&fr, enter);
	write_enter(&fr, enter);
	write_draw(&fr);
	write_given(&fr);
	write_first(&fr);
	write_next(&fr);
	write_leave(&fr);
	return PASS_DONE;
}

const struct pass pass_tickets = {"tickets", run};
