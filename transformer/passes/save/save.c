/* Leaving a block at a safe point, and going on there in a later launch. Each thread saves the
 * registers that are alive at its point, and its point's number; when all have come they save
 * shared and local memory, and the worker leaves with its save's header set. The same worker of a
 * later launch finds the header, and each thread goes on where it was.
 *
 *	enter		words.resume == serial and header == serial?  the ticket is `resume`
 *	leave		the ticket is `resume`?  restore;  header = 0
 *	point's leave	registers; who has left alone votes; final
 *	final		barrier; memory; barrier; header = serial; leave
 *	restore		memory; barrier; into the loop that the point is in (save/ways.c)
 *	a loop's head	on the way to a point in it?  into the next one, or to the point's resume
 *	point's resume	registers; the point
 */
#include "passes/hidden.h"
#include "passes/save/save.h"
#include "passes/exit-barrier.h"

#include <errno.h>

#define WARP         32u
#define VOTES_BEFORE 2u /* next one, when all have restored: they came by the first */

static void write_leaving(struct saver *s, struct safe_point *point, unsigned number)
{
	struct cursor at = safe_point_leaving(s->rewrite, point);
	struct instruction *trap = at.before;
	struct slot slot = save_slot(&at, s);
	struct reg *place = save_place(&at, s, &slot, 0, 4);

	edit_code(&at, "{ .reg .b32 %n; mov.u32 %n, %1; st.global.b32 [%0], %n; }", op_reg(place),
		  op_int(number));
	save_move_registers(&at, true, s, &slot, &s->alive[number]);
	if (!point->is_common)
		vote_left(&at, s->rewrite);
	edit_code(&at, "bra %0;", op_block(s->final));
	if (trap)
		edit_remove(s->f, trap);
}

static void write_resuming(struct saver *s, const struct safe_point *point, unsigned number)
{
	struct block *resume = edit_block(s->f, s->f->last, "resume");
	struct cursor at = cursor_end(s->f, resume);
	struct slot slot = save_slot(&at, s);

	save_move_registers(&at, false, s, &slot, &s->alive[number]);
	edit_code(&at, "mov.u32 %0, %clock; mov.u32 %1, %2; bra %3;", op_reg(s->safe->since),
		  op_reg(s->rewrite->votes->next), op_int(VOTES_BEFORE), op_block(point->at));
	s->resume[number] = resume;
}

static void write_points(struct saver *s)
{
	struct safe_point *point = s->safe->points;

	for (unsigned k = 0; point; k++, point = point->next) {
		if (point->at->order == CFG_UNREACHED)
			continue;
		write_leaving(s, point, k);
		write_resuming(s, point, k);
	}
}

static bool starts_copies(const struct function *f)
{
	for (const struct block *b = f->entry; b; b = b->next)
		for (const struct instruction *i = b->first; i; i = i->next)
			if (i->mnemonic->op_class == OP_ASYNC)
				return true;
	return false;
}

static void write_final(struct saver *s)
{
	struct cursor at = cursor_end(s->f, s->final);
	struct reg *leader = edit_register(s->f, TYPE_pred);
	struct slot slot;

	if (starts_copies(s->f))
		edit_code(&at, "cp.async.wait_all;");
	edit_code(&at, "barrier.sync %0;", op_int(s->rewrite->barrier));
	slot = save_slot(&at, s);
	save_copy_memory(&at, true, s, &slot);
	edit_code(&at,
		  "barrier.sync %0; setp.eq.u32 %1, %2, 0; mov.u32 %3, 0x10001;"
		  "@%1 st.global.u32 [%4], %5; bra %6;",
		  op_int(s->rewrite->barrier), op_reg(leader), op_reg(slot.thread),
		  op_reg(s->safe->parting), op_reg(slot.base),
		  hidden32(&at, s->rewrite, HIDDEN(serial)), op_block(s->farewell));
}

/* Whether a saved block waits for this worker: all threads see the same. The launch's number, which
 * flags are compared with, is evictions + serial: it grows with each launch, also behind one that
 * was told to leave, but whose last blocks ended instead. */
static void write_enter(struct saver *s)
{
	struct function *f = s->f;
	struct safe *safe = s->safe;
	struct cursor at = cursor_end(f, safe->enter);
	struct slot slot;
	struct block *draw = edit_new_block(f);
	struct operand words, serial;

	if (!draw)
		return;
	edit_code(&at,
		  "{ .reg .b32 %zero; mov.u32 %0, %clock; mov.u32 %zero, 0;"
		  "  st.shared.u32 [%1], %zero; st.shared.u32 [%1+4], %zero; }",
		  op_reg(safe->since), op_variable(safe->watch));
	slot = save_slot(&at, s);
	words = hidden64(&at, s->rewrite, HIDDEN(words));
	serial = hidden32(&at, s->rewrite, HIDDEN(serial));
	edit_code(&at,
		  "{ .reg .pred %p; .reg .b32 %x, %id;"
		  "  ld.volatile.global.u32 %id, [%1+12]; ld.volatile.global.u32 %x, [%1+28];"
		  "  add.u32 %id, %id, %2; st.volatile.shared.u32 [%6+8], %id;"
		  "  setp.ne.u32 %p, %x, %2; @%p bra %0;"
		  "  ld.volatile.global.u32 %x, [%3]; setp.ne.u32 %p, %x, %2; @%p bra %0;"
		  "  mov.u32 %4, -1; bra %5; }",
		  op_block(draw), words, serial, op_reg(slot.base), op_reg(safe->drawn),
		  op_block(safe->given), op_variable(safe->watch));
	cursor_place(&at, draw);
}
static_assert(offsetof(struct weir_words, resume) == 28, "in the templates");
static_assert(offsetof(struct weir_words, evictions) == 12, "in the templates");

/* The first thread looks at the tickets that came with the save: one that an earlier launch refused
 * says nothing about this one. */
static void renew_tickets(struct cursor *at, struct saver *s, const struct slot *slot)
{
	struct operand tickets = hidden32(at, s->rewrite, HIDDEN(tickets));

	for (unsigned k = 0; k < 2; k++)
		edit_code(at,
			  "{ .reg .pred %p, %first; .reg .b32 %x, %a; mov.u32 %a, %0;"
			  "  add.u32 %a, %a, %1; ld.volatile.shared.u32 %x, [%a];"
			  "  setp.eq.u32 %first, %2, 0; setp.ge.and.u32 %p, %x, %3, %first;"
			  "  mov.u32 %x, 0xfffffffe; @%p st.volatile.shared.u32 [%a], %x; }",
			  op_variable(s->safe->slots), op_int(4 * k), op_reg(slot->thread),
			  tickets);
}

/* It is no ticket that came: to leave, unless it is one of ours. */
static void write_leave(struct saver *s, struct block *restore)
{
	struct function *f = s->f;
	struct safe *safe = s->safe;
	struct cursor at = cursor_start(f, safe->leave), again;
	struct block *redraw = edit_block(f, f->last, "redraw");
	struct slot slot;

	edit_code(&at,
		  "{ .reg .pred %p; setp.eq.u32 %p, %0, 0xffffffff; @%p bra %1;"
		  "  setp.eq.u32 %p, %0, 0xfffffffe; @%p bra %2; mov.u32 %3, 1; }",
		  op_reg(safe->ticket), op_block(restore), op_block(redraw), op_reg(safe->parting));
	slot = save_slot(&at, s);
	edit_code(&at,
		  "{ .reg .pred %p; .reg .b32 %zero; mov.u32 %zero, 0; setp.eq.u32 %p, %0, 0;"
		  "  @%p st.global.u32 [%1], %zero; }",
		  op_reg(slot.thread), op_reg(slot.base));
	cursor_place(&at, s->farewell);
	again = cursor_end(f, redraw);
	edit_code(&again, "barrier.sync %0; bra %1;", op_int(s->rewrite->barrier),
		  op_block(safe->draw));
}

static void write_restore(struct saver *s, struct cursor *at)
{
	struct operand number = op_int(s->rewrite->barrier);
	struct slot slot;

	edit_code(at, "barrier.sync %0;", number);
	slot = save_slot(at, s);
	save_copy_memory(at, false, s, &slot);
	edit_code(at, "barrier.sync %0;", number);
	renew_tickets(at, s, &slot);
	edit_code(at, "barrier.sync %0; ld.global.b32 %1, [%2]; not.b32 %1, %1;", number,
		  op_reg(s->rewrite->votes->next), op_reg(save_place(at, s, &slot, 0, 4)));
}

static int measure(struct saver *s)
{
	struct arena *arena = s->f->arena;
	int r;

	s->alive = arena_array(arena, s->safe->count, sizeof(*s->alive));
	s->resume = arena_array(arena, s->safe->count, sizeof(struct block *));
	r = s->alive && s->resume ? cfg_build(s->f, &s->cfg) : -ENOMEM;
	if (!r)
		r = live_build(s->f, &s->cfg, &s->live);
	if (!r)
		r = save_measure_memory(s);
	return r ? r : save_measure_registers(s);
}

static int run(struct rewrite *rewrite)
{
	struct saver s = {.rewrite = rewrite, .f = rewrite->function, .safe = rewrite->safe};
	struct block *restore;
	struct cursor at;
	int r;

	if (!s.safe)
		return PASS_DONE;
	r = measure(&s);
	if (r)
		return r;
	s.farewell = edit_new_block(s.f);
	if (!s.farewell)
		return -ENOMEM;
	s.final = edit_block(s.f, s.f->last, "final");
	restore = edit_block(s.f, s.f->last, "restore");
	at = cursor_end(s.f, restore);
	write_enter(&s);
	write_leave(&s, restore);
	write_final(&s);
	write_restore(&s, &at);
	write_points(&s);
	save_write_ways(&s, &at);
	rewrite->save_per_thread = 4 + s.registers + s.locals;
	rewrite->save_fixed = s.fixed + (WARP - 1) * rewrite->save_per_thread + 16;
	return PASS_DONE;
}

const struct pass pass_save = {"save", run};
