// clang-format off
/* Leaving a block at a safe point, and resuming it in a later launch. Each thread saves the number
 * of its safe point and the registers that are live there. When all threads have come, they save
 * shared and local memory, and the worker leaves with the header of its save set. In a later
 * launch the same worker finds the header, and each thread resumes at its safe point.
 *
 *	enter		words.resume == serial and header == serial?  the ticket is SAFE_RESUME
 *	leave		the ticket is SAFE_RESUME?  restore;  header = 0
 *	point's leave	registers; a thread that leaves alone joins the exit barrier; final
 *	final		barrier; memory that is needed; barrier; header = serial; leave
 *	restore		memory; barrier; into the loop of the safe point
 *	a loop's head	resuming inside this loop?  into the next loop, or to the point's resume
 *	point's resume	registers; the safe point
 *
 * A thread resumes inside a loop through the loop's head: ptxas reconverges lanes only in loops
 * with one entry. While a thread is on this path, `next` holds the complement of its safe point's
 * number, which is negative; loop heads test for that.
 */
// clang-format on
#include "passes/exit-barrier.h"
#include "passes/hidden.h"
#include "passes/save/drain.h"
#include "passes/save/save.h"

#define WARP 32u
#define BARRIERS_BEFORE \
	2u /* number of the next exit barrier after all have restored: each passed the first */

struct slot save_slot(struct cursor *at, struct saver *s)
{
	struct slot slot = {edit_named_register(s->f, TYPE_b64, "save"),
			    edit_named_register(s->f, TYPE_b32, "thread"),
			    edit_named_register(s->f, TYPE_b32, "rounded"),
			    edit_named_register(s->f, TYPE_b32, "count")};
	struct operand saves = hidden64(at, s->rewrite, HIDDEN(saves));
	struct operand stride = hidden64(at, s->rewrite, HIDDEN(save_stride));

	edit_code(at,
		  "{ .reg .b32 %w; .reg .b64 %w64; mov.u32 %w, %ctaid.x; cvt.u64.u32 %w64, %w;"
		  "  mad.lo.u64 %0, %w64, %1, %2; }",
		  op_reg(slot.base), stride, saves);
	edit_code(at,
		  "{ .reg .b32 %x, %y, %t;"
		  "  mov.u32 %x, %ntid.x; mov.u32 %y, %ntid.y; mov.u32 %t, %ntid.z;"
		  "  mul.lo.u32 %t, %t, %y; mul.lo.u32 %2, %t, %x;"
		  "  add.u32 %1, %2, 31; and.b32 %1, %1, -32;"
		  "  mov.u32 %0, %tid.z; mov.u32 %t, %tid.y; mad.lo.u32 %0, %0, %y, %t;"
		  "  mov.u32 %t, %tid.x; mad.lo.u32 %0, %0, %x, %t; }",
		  op_reg(slot.thread), op_reg(slot.rounded), op_reg(slot.count));
	return slot;
}

struct reg *save_place(struct cursor *at, struct saver *s, const struct slot *slot, uint32_t offset,
		       uint32_t bytes)
{
	struct reg *place = edit_named_register(s->f, TYPE_b64, "place");

	edit_code(at,
		  "{ .reg .b64 %x; mul.wide.u32 %x, %1, %2; add.u64 %0, %3, %x;"
		  "  mul.wide.u32 %x, %4, %5; add.u64 %0, %0, %x; add.u64 %0, %0, %6; }",
		  op_reg(place), op_reg(slot->rounded), op_int(offset), op_reg(slot->base),
		  op_reg(slot->thread), op_int(bytes), op_int(s->fixed));
	return place;
}

struct reg *save_step(struct cursor *at, struct saver *s, const struct slot *slot, uint32_t bytes)
{
	struct reg *step = edit_named_register(s->f, TYPE_b64, "step");

	edit_code(at, "mul.wide.u32 %0, %1, %2;", op_reg(step), op_reg(slot->rounded),
		  op_int(bytes));
	return step;
}

static void write_leaving(struct saver *s, struct safe_point *point)
{
	struct cursor at = safe_point_leaving(s->rewrite, point);
	struct instruction *trap = at.before;
	struct slot slot = save_slot(&at, s);
	struct reg *place = save_place(&at, s, &slot, 0, 4);

	edit_code(&at, "{ .reg .b32 %n; mov.u32 %n, %1; st.global.b32 [%0], %n; }", op_reg(place),
		  op_int(point->number));
	save_move_registers(&at, true, s, &slot, &s->alive[point->number]);
	kept_note(&at, s, point);
	if (!point->is_common)
		exit_barrier_left(&at, s->rewrite);
	edit_code(&at, "bra %0;", op_block(s->final));
	if (trap)
		edit_remove(trap);
}

static void write_resuming(struct saver *s, struct safe_point *point)
{
	struct cursor at;
	struct slot slot;

	point->resume = edit_block(s->f, s->f->last, "resume");
	at = cursor_end(s->f, point->resume);
	slot = save_slot(&at, s);
	save_move_registers(&at, false, s, &slot, &s->alive[point->number]);
	safe_point_begin_period(&at, s->rewrite);
	edit_code(&at, "mov.u32 %0, %1; bra %2;", op_reg(s->rewrite->exit_barriers->next),
		  op_int(BARRIERS_BEFORE), op_block(point->at));
}

static void write_points(struct saver *s)
{
	for (struct safe_point *point = s->safe->points; point; point = point->next) {
		if (point->at->order == CFG_UNREACHED)
			continue;
		write_leaving(s, point);
		write_resuming(s, point);
	}
}

static bool starts_copies(const struct function *f)
{
	for_each_instruction (i, f)
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
		  op_reg(s->safe->exit_count), op_reg(slot.base),
		  hidden32(&at, s->rewrite, HIDDEN(serial)), op_block(s->leave_rest));
}

/* Whether a saved block waits for this worker; all threads see the same. The launch's number, which
 * flags are compared with, is evictions + serial. It grows with each launch, even if a launch asked
 * to leave finished instead. */
static void write_enter(struct saver *s)
{
	struct function *f = s->f;
	struct safe *safe = s->safe;
	struct cursor at = cursor_end(f, safe->enter);
	struct slot slot;
	struct block *draw = edit_new_block(f);
	struct operand words, serial;

	safe_point_begin_period(&at, s->rewrite);
	edit_code(&at,
		  "{ .reg .b32 %zero; mov.u32 %zero, 0;"
		  "  st.shared.u32 [%0], %zero; st.shared.u32 [%0+4], %zero; }",
		  op_variable(safe->watch));
	kept_begin(&at, s);
	drain_enter(&at, s->rewrite);
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

/* A saved ticket may be one that an earlier launch refused. The first thread marks such tickets to
 * be drawn again. */
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

/* Leaves for good unless the ticket is one of the special values. */
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
		  op_reg(safe->ticket), op_block(restore), op_block(redraw),
		  op_reg(safe->exit_count));
	slot = save_slot(&at, s);
	edit_code(&at,
		  "{ .reg .pred %p; .reg .b32 %zero; mov.u32 %zero, 0; setp.eq.u32 %p, %0, 0;"
		  "  @%p st.global.u32 [%1], %zero; }",
		  op_reg(slot.thread), op_reg(slot.base));
	cursor_place(&at, s->leave_rest);
	again = cursor_end(f, redraw);
	edit_code(&again, "barrier.sync %0; bra %1;", op_int(s->rewrite->barrier),
		  op_block(safe->draw));
}

static void restore_time(struct cursor *at, struct saver *s, const struct slot *slot)
{
	struct operand first = op_reg(edit_register(s->f, TYPE_pred));

	edit_code(at, "setp.eq.u32 %0, %1, 0;", first, op_reg(slot->thread));
	drain_restore_time(at, s->rewrite, op_reg(slot->base), first);
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
	restore_time(at, s, &slot);
	edit_code(at, "barrier.sync %0; ld.global.b32 %1, [%2]; not.b32 %1, %1;", number,
		  op_reg(s->rewrite->exit_barriers->next), op_reg(save_place(at, s, &slot, 0, 4)));
}

/* The outermost loop inside @outer that contains @b; NULL: none. @outer NULL: the loop around the
 * tickets. */
static struct loop *inner_loop(const struct saver *s, const struct loop *outer,
			       const struct block *b)
{
	struct loop *inner = NULL;

	for (struct loop *l = b->loop; l && l != outer && l->head != s->safe->given; l = l->parent)
		inner = l;
	return inner;
}

static bool is_in(const struct loop *loop, const struct block *b)
{
	return !loop || (b->order != CFG_UNREACHED && loop_contains(loop, b));
}

/* Writes one step of the path from restore to the safe points in @loop (NULL: all): to the heads of
 * inner loops, or to the safe points themselves. */
static void write_paths(struct saver *s, struct cursor *at, const struct loop *loop)
{
	struct block *to = NULL;

	for (const struct safe_point *point = s->safe->points; point; point = point->next) {
		struct loop *inner;

		if (point->at->order == CFG_UNREACHED || !is_in(loop, point->at))
			continue;
		inner = inner_loop(s, loop, point->at);
		to = inner ? inner->head : point->resume;
		edit_code(at, "{ .reg .pred %p; setp.eq.u32 %p, %0, %1; @%p bra %2; }",
			  op_reg(s->rewrite->exit_barriers->next),
			  op_int(~point->number & UINT32_MAX), op_block(to));
	}
	if (to)
		edit_code(at, "bra %0;", op_block(to));
}

static bool has_points(const struct saver *s, const struct loop *loop)
{
	for (const struct safe_point *p = s->safe->points; p; p = p->next)
		if (p->at->order != CFG_UNREACHED && loop_contains(loop, p->at))
			return true;
	return false;
}

/* The block of the loop where resuming threads are detected: the check, if it has one. */
static struct block *asking(const struct saver *s, const struct loop *loop)
{
	for (const struct safe_point *p = s->safe->points; p; p = p->next)
		if (p->head == loop->head)
			return p->check;
	return loop->head;
}

static void write_entries(struct saver *s)
{
	for (struct loop *loop = s->f->loops; loop; loop = loop->next) {
		struct block *ways;
		struct cursor at;

		if (loop->head == s->safe->given || !has_points(s, loop))
			continue;
		ways = edit_block(s->f, s->f->last, "ways");
		at = cursor_start(s->f, asking(s, loop));
		edit_code(&at, "{ .reg .pred %p; setp.lt.s32 %p, %0, 0; @%p bra %1; }",
			  op_reg(s->rewrite->exit_barriers->next), op_block(ways));
		at = cursor_end(s->f, ways);
		write_paths(s, &at, loop);
	}
}

static void write_all_paths(struct saver *s, struct cursor *at)
{
	write_entries(s);
	write_paths(s, at, NULL);
}

static void measure(struct saver *s)
{
	s->alive = arena_array(s->f->arena, s->safe->count, sizeof(*s->alive));
	cfg_build(s->f, &s->cfg);
	live_build(s->f, &s->cfg, &s->live);
	save_find_constants(s);
	save_measure_memory(s);
	save_measure_registers(s);
}

static void run(struct rewrite *rewrite)
{
	struct saver s = {.rewrite = rewrite, .f = rewrite->function, .safe = rewrite->safe};
	struct block *restore;
	struct cursor at;

	if (!s.safe)
		return;
	measure(&s);
	s.leave_rest = edit_new_block(s.f);
	s.final = edit_block(s.f, s.f->last, "final");
	restore = edit_block(s.f, s.f->last, "restore");
	at = cursor_end(s.f, restore);
	write_enter(&s);
	write_leave(&s, restore);
	write_final(&s);
	write_restore(&s, &at);
	write_points(&s);
	write_all_paths(&s, &at);
	rewrite->save_per_thread = 4 + s.registers + s.locals;
	rewrite->save_spared = s.spared;
	rewrite->save_fixed = s.fixed + (WARP - 1) * rewrite->save_per_thread + 16;
}

const struct pass pass_save = {"save", run};
