/* The loop around the blocks. Threads go
 *
 *	enter     who is first? where do tickets come?
 *	draw      the first thread draws a ticket, and polls if it is due; all learn the ticket
 *	          -> leave if it is none
 *	first     the ticket's first block
 *	body      the kernel, a block of the grid
 *	next      one block further -> body; after the ticket's last -> draw
 *	leave     the last worker puts the words in order
 *
 * One register lives through the body besides the block's index: twice the number of blocks that
 * are left of the ticket, plus the parity of tickets, which says which of two words in shared
 *memory the next ticket is handed round in. With two of them one barrier a ticket is enough.
 *
 * What the words mean is in preempt-abi.h.
 */
#include "hidden.h"
#include "pass.h"

struct frame {
	struct rewrite *rewrite;
	struct function *f;
	struct variable *slots;             /* two words for tickets */
	struct reg *leader;                 /* draw .. leave */
	struct reg *countdown;              /* through the body */
	struct reg *ticket, *parity, *line; /* draw .. first */
	struct reg *axis[3];                /* through the body; NULL: nobody wants to know */
	struct block *draw, *given, *first, *body, *leave, *end;
};

static void write_enter(struct frame *fr, struct block *enter)
{
	struct cursor at = cursor_start(fr->f, enter);

	edit_code(&at, "mov.u32 %0, 0;", op_reg(fr->countdown));
	if (fr->rewrite->tally) /* all write the same, and a barrier follows */
		edit_code(&at, "{ .reg .b32 %zero; mov.u32 %zero, 0; st.shared.u32 [%0], %zero; }",
			  op_variable(fr->rewrite->tally));
}

static void write_draw(struct frame *fr)
{
	struct cursor at = cursor_start(fr->f, fr->draw);
	struct reg *slot = edit_register(fr->f, TYPE_b32), *next = edit_register(fr->f, TYPE_b64),
		   *done = edit_register(fr->f, TYPE_b32);
	struct operand words, serial, tickets;

	edit_code(&at,
		  "{ .reg .b32 %x, %y; mov.u32 %x, %tid.x; mov.u32 %y, %tid.y; or.b32 %x, %x, %y;"
		  "  mov.u32 %y, %tid.z; or.b32 %x, %x, %y; setp.eq.u32 %0, %x, 0;"
		  "  and.b32 %1, %2, 1; shl.b32 %x, %1, 2; mov.u32 %3, %4; add.u32 %3, %3, %x; }",
		  op_reg(fr->leader), op_reg(fr->parity), op_reg(fr->countdown), op_reg(slot),
		  op_variable(fr->slots));
	edit_code(&at, "@!%0 bra %1;", op_reg(fr->leader), op_block(fr->given));
	words = hidden64(&at, fr->rewrite, HIDDEN(words));
	serial = hidden32(&at, fr->rewrite, HIDDEN(serial));
	tickets = hidden32(&at, fr->rewrite, HIDDEN(tickets));
	edit_code(&at,
		  "{ .reg .pred %p; .reg .b32 %lo, %hi, %n;"
		  "  ld.volatile.global.v4.u32 {%lo, %hi, %0, %n}, [%1];"
		  "  mov.b64 %2, {%lo, %hi};"
		  "  atom.global.add.u32 %3, [%1+16], 1;"
		  "  setp.eq.u32 %p, %0, %4; @%p mov.u32 %3, 0x80000000;"
		  "  st.volatile.shared.u32 [%5], %3;"
		  "  setp.ge.u32 %p, %3, %6; @%p bra %7; }",
		  op_reg(done), words, op_reg(next), op_reg(fr->ticket), serial, op_reg(slot),
		  tickets, op_block(fr->given));
	hidden_poll(&at, fr->rewrite, words, op_reg(next), op_block(fr->given));

	at = cursor_end(fr->f, fr->given);
	tickets = hidden32(&at, fr->rewrite, HIDDEN(tickets));
	edit_code(&at,
		  "{ .reg .pred %p; barrier.sync %0;"
		  "  ld.volatile.shared.u32 %1, [%2];"
		  "  setp.ge.u32 %p, %1, %3; @%p bra %4; }",
		  op_int(fr->rewrite->barrier), op_reg(fr->ticket), op_reg(slot), tickets,
		  op_block(fr->leave));
}

/* Where the line number is in the grid; nothing to divide where the grid is a line. */
static void write_axes(struct cursor *at, struct frame *fr)
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
		  op_block(fr->body));
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
	struct operand chunk = hidden32(&at, fr->rewrite, HIDDEN(chunk));
	struct operand blocks = hidden32(&at, fr->rewrite, HIDDEN(blocks));

	edit_code(&at,
		  "{ .reg .b32 %n; mul.lo.u32 %0, %1, %2; sub.u32 %n, %3, %0; min.u32 %n, %n, %2;"
		  "  shl.b32 %n, %n, 1; xor.b32 %4, %4, 1; or.b32 %5, %n, %4; }",
		  op_reg(fr->line), op_reg(fr->ticket), chunk, blocks, op_reg(fr->parity),
		  op_reg(fr->countdown));
	write_axes(&at, fr);
}

static void write_next(struct frame *fr)
{
	struct cursor at = cursor_before(fr->f, fr->rewrite->leave);

	edit_code(&at, "{ .reg .pred %p; sub.u32 %0, %0, 2; setp.lt.u32 %p, %0, 2; @%p bra %1; }",
		  op_reg(fr->countdown), op_block(fr->draw));
	if (fr->rewrite->must_meet && !fr->rewrite->have_met)
		edit_code(&at, "barrier.sync %0;", op_int(fr->rewrite->barrier));
	for (unsigned k = 0; k < 3 && fr->axis[k]; k++) {
		edit_code(&at, "add.u32 %0, %0, 1;", op_reg(fr->axis[k]));
		if (k == 2)
			break;
		edit_code(&at,
			  "{ .reg .pred %p; setp.ne.u32 %p, %0, %1; @%p bra %2; mov.u32 %0, 0; }",
			  op_reg(fr->axis[k]), hidden32(&at, fr->rewrite, HIDDEN(grid) + 4 * k),
			  op_block(fr->body));
	}
	edit_code(&at, "bra %0;", op_block(fr->body));
	edit_remove(fr->f, fr->rewrite->leave);
}

static void write_leave(struct frame *fr)
{
	struct cursor at = cursor_start(fr->f, fr->leave);
	struct operand end = op_block(fr->end), words, serial, tickets, report;

	edit_code(&at, "@!%0 bra %1;", op_reg(fr->leader), end);
	words = hidden64(&at, fr->rewrite, HIDDEN(words));
	serial = hidden32(&at, fr->rewrite, HIDDEN(serial));
	tickets = hidden32(&at, fr->rewrite, HIDDEN(tickets));
	report = hidden64(&at, fr->rewrite, HIDDEN(report));
	edit_code(&at,
		  "{ .reg .pred %p; .reg .b32 %n, %all;"
		  "  membar.sys; atom.global.add.u32 %n, [%0+24], 1;"
		  "  add.u32 %n, %n, 1; mov.u32 %all, %nctaid.x; setp.ne.u32 %p, %n, %all;"
		  "  @%p bra %1; membar.sys; }",
		  words, end);
	edit_code(&at,
		  "{ .reg .pred %open, %done, %told; .reg .b64 %tell;"
		  "  .reg .b32 %t, %restart, %x, %serial, %evictions;"
		  "  ld.volatile.global.v2.u32 {%t, %restart}, [%0+16];"
		  "  ld.volatile.global.v2.u32 {%serial, %evictions}, [%0+8];"
		  "  setp.ge.s32 %open, %t, 0; @%open mov.u32 %restart, %1;"
		  "  setp.eq.u32 %done, %serial, %2; @%done mov.u32 %restart, %1;"
		  "  setp.ge.u32 %done, %restart, %1; @%done mov.u32 %restart, 0;"
		  "  mov.u32 %x, 0; st.volatile.global.u32 [%0+24], %x;"
		  "  st.volatile.global.u32 [%0+16], %restart;"
		  "  @!%done add.u32 %evictions, %evictions, 1;"
		  "  @!%done st.volatile.global.u32 [%0+12], %evictions;"
		  "  @%done mov.u32 %serial, %2;"
		  "  membar.sys; @%done st.volatile.global.u32 [%0+8], %serial;"
		  "  setp.eq.u64 %told, %3, 0; @%told bra %4;"
		  "  mov.b64 %tell, {%serial, %evictions}; st.volatile.global.u64 [%3], %tell; }",
		  words, tickets, serial, report, end);
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

static int run(struct rewrite *rewrite)
{
	struct function *f = rewrite->function;
	struct frame fr = {.rewrite = rewrite, .f = f};
	struct block *enter;

	fr.body = f->entry;
	fr.slots = edit_variable(f, SPACE_SHARED, "ticket", 8, 8);
	fr.leader = edit_named_register(f, TYPE_pred, "leader");
	fr.countdown = edit_named_register(f, TYPE_b32, "countdown");
	fr.ticket = edit_named_register(f, TYPE_b32, "ticket");
	fr.parity = edit_named_register(f, TYPE_b32, "parity");
	fr.line = edit_named_register(f, TYPE_b32, "line");
	find_axes(&fr);
	enter = edit_block(f, NULL, "enter");
	fr.draw = edit_block(f, enter, "draw");
	fr.given = edit_block(f, fr.draw, "given");
	fr.first = edit_block(f, fr.given, "first");
	fr.leave = edit_block(f, f->last, "leave");
	fr.end = edit_block(f, fr.leave, "end");
	write_enter(&fr, enter);
	write_draw(&fr);
	write_first(&fr);
	write_next(&fr);
	write_leave(&fr);
	return PASS_DONE;
}

const struct pass pass_tickets = {"tickets", run};
