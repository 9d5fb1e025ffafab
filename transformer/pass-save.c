/* Leaving a block at a safe point, and going on there in a later launch. Each thread saves the
 * registers that are alive at its point, and its point's number; when all have come they save
 *shared and local memory, and the worker leaves with its save's header set. The same worker of a
 *later launch finds the header, and each thread goes on where it was.
 *
 * A worker's save, of T threads rounded up to whole warps:
 *
 *	header		serial of the launch, 0: nothing is saved; words of the group (safe.h)
 *	shared memory	each variable
 *	T x 4 bytes	point
 *	T x 8 bytes	registers of 64 bits: all threads' first, all threads' second ...
 *	T x 4 bytes	others, likewise, and ...
 *	T x ...		local memory
 *	dynamic shared memory
 *
 * with room for what is alive at the point with most, as threads may have left at different ones.
 *
 *	enter		words.resume == serial and header == serial?  the ticket is
 *`resume` leave		the ticket is `resume`?  restore; header = 0 point's leave
 *registers; who has left alone votes; final
 *	final		barrier; memory; barrier; header = serial; leave
 *	restore		memory; barrier; into the loop that the point is in
 *	a loop's head	on the way to a point in it?  into the next one, or to the point's resume
 *	point's resume	registers; the point
 */
#include "hidden.h"
#include "pass.h"
#include "safe.h"
#include "vote.h"

#include <errno.h>
#include <stdio.h>

#define HEADER_BYTES  16u
#define ALIGN         256u
#define WARP          32u
#define VOTES_BEFORE  2u /* next one, when all have restored: they came by the first */
#define VARIABLES_MAX 64u
#define MEMORY_MAX    (1u << 20) /* of a variable */
#define REGISTERS_MAX 20000u     /* saved at all points together */

struct slot {
	struct reg *base;             /* address of the save */
	struct reg *thread, *rounded; /* number of this thread; of all, rounded up */
	struct reg *count;            /* of all */
};

/* What is alive at a point, by size. */
struct alive {
	struct reg **wide, **whole, **half, **flags;
	unsigned n_wide, n_whole, n_half, n_flags;
	struct reg *strange; /* what cannot be saved */
};

/* Variables in shared and local memory, each once. Those without a size all lie in one place: the
 * first with the largest alignment stands for them. */
struct variable_set {
	struct variable *list[VARIABLES_MAX];
	unsigned n;               /* above VARIABLES_MAX: too many, and not all are in the list */
	struct variable *dynamic; /* without a size, or NULL */
};

struct saver {
	struct rewrite *rewrite;
	struct function *f;
	struct safe *safe;
	struct cfg cfg;
	struct live live;
	struct block *farewell, *final;
	struct block **resume;      /* by point */
	uint32_t fixed;             /* header and shared memory */
	uint32_t wide, words;       /* registers that a thread saves: of 64 bits, others */
	uint32_t registers, locals; /* bytes of a thread */
	struct variable_set variables;
	bool calls, copies;
};

static uint64_t round_up(uint64_t n, uint64_t to)
{
	return (n + to - 1) / to * to;
}

static uint32_t larger(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

/* Where am I? */
static struct slot write_slot(struct cursor *at, struct saver *s)
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

/* The address of this thread's value of @bytes, @offset bytes of each thread behind the fixed part.
 */
static struct reg *write_place(struct cursor *at, struct saver *s, const struct slot *slot,
			       uint32_t offset, uint32_t bytes)
{
	struct reg *place = edit_named_register(s->f, TYPE_b64, "place");

	edit_code(at,
		  "{ .reg .b64 %x; mul.wide.u32 %x, %1, %2; add.u64 %0, %3, %x;"
		  "  mul.wide.u32 %x, %4, %5; add.u64 %0, %0, %x; add.u64 %0, %0, %6; }",
		  op_reg(place), op_reg(slot->rounded), op_int(offset), op_reg(slot->base),
		  op_reg(slot->thread), op_int(bytes), op_int(s->fixed));
	return place;
}

/* Each thread's next. */
static struct reg *write_step(struct cursor *at, struct saver *s, const struct slot *slot,
			      uint32_t bytes)
{
	struct reg *step = edit_named_register(s->f, TYPE_b64, "step");

	edit_code(at, "mul.wide.u32 %0, %1, %2;", op_reg(step), op_reg(slot->rounded),
		  op_int(bytes));
	return step;
}

static void sort_register(struct alive *alive, struct reg *reg)
{
	/* A set has no gaps. NOLINTNEXTLINE(clang-analyzer-core.NullDereference) */
	const struct type *type = &types[reg->type];
	bool is_plain = reg->vector == 1 && type->register_class != CLASS_OPAQUE;

	if (type->register_class == CLASS_PREDICATE)
		alive->flags[alive->n_flags++] = reg;
	else if (is_plain && type->bits == 64)
		alive->wide[alive->n_wide++] = reg;
	else if (is_plain && type->bits == 32)
		alive->whole[alive->n_whole++] = reg;
	else if (is_plain && type->bits == 16)
		alive->half[alive->n_half++] = reg;
	else
		alive->strange = reg;
}

/* Nobody needs its old value; `parting` only seems to be alive while nothing writes it. */
static bool is_made_anew(const struct saver *s, const struct reg *reg)
{
	return reg == s->safe->since || reg == s->safe->parting || reg == s->rewrite->votes->next;
}

static int find_alive(struct saver *s, const struct block *at, struct alive *alive)
{
	struct arena *arena = s->f->arena;
	size_t n = s->live.count;

	*alive = (struct alive){.wide = arena_array(arena, n, sizeof(struct reg *)),
				.whole = arena_array(arena, n, sizeof(struct reg *)),
				.half = arena_array(arena, n, sizeof(struct reg *)),
				.flags = arena_array(arena, n, sizeof(struct reg *))};
	if (!alive->wide || !alive->whole || !alive->half || !alive->flags)
		return -ENOMEM;
	for (size_t k = 0; k < n; k++) {
		struct reg *reg = s->live.regs[k];

		if (is_made_anew(s, reg) || !live_at_start(&s->live, at, reg))
			continue;
		if (reg == s->f->carry)
			alive->strange = reg;
		else
			sort_register(alive, reg);
	}
	return 0;
}

static uint32_t words_of(const struct alive *alive)
{
	return alive->n_whole + (alive->n_half + 1) / 2 + (alive->n_flags + 31) / 32;
}

static void move_register(struct cursor *at, bool saves, const char *bits, struct operand value,
			  struct reg *place, struct reg *step)
{
	char ptx[128];

	snprintf(ptx, sizeof(ptx),
		 saves ? "st.global.b%s [%%1], %%0; add.u64 %%1, %%1, %%2;"
		       : "ld.global.b%s %%0, [%%1]; add.u64 %%1, %%1, %%2;",
		 bits);
	edit_code(at, ptx, value, op_reg(place), op_reg(step));
}

static void move_halves(struct cursor *at, bool saves, struct saver *s, const struct alive *alive,
			struct reg *place, struct reg *step)
{
	struct operand word = op_reg(edit_register(s->f, TYPE_b32));
	struct operand unused = op_reg(edit_register(s->f, TYPE_b16));

	for (unsigned k = 0; k < alive->n_half; k += 2) {
		bool is_pair = k + 1 < alive->n_half;
		struct operand low = op_reg(alive->half[k]);
		struct operand high = is_pair ? op_reg(alive->half[k + 1]) : saves ? low : unused;

		if (saves)
			edit_code(at, "mov.b32 %0, {%1, %2};", word, low, high);
		move_register(at, saves, "32", word, place, step);
		if (!saves)
			edit_code(at, "mov.b32 {%1, %2}, %0;", word, low, high);
	}
}

static void move_flags(struct cursor *at, bool saves, struct saver *s, const struct alive *alive,
		       struct reg *place, struct reg *step)
{
	struct operand word = op_reg(edit_register(s->f, TYPE_b32));

	for (unsigned first = 0; first < alive->n_flags; first += 32) {
		if (saves)
			edit_code(at, "mov.u32 %0, 0;", word);
		else
			move_register(at, saves, "32", word, place, step);
		for (unsigned k = 0; k < 32 && first + k < alive->n_flags; k++)
			edit_code(at,
				  saves ? "{ .reg .b32 %x; selp.b32 %x, %2, 0, %1; or.b32 %0, %0, "
					  "%x; }"
					: "{ .reg .b32 %x; and.b32 %x, %0, %2; setp.ne.u32 %1, %x, "
					  "0; }",
				  word, op_reg(alive->flags[first + k]), op_int((uint64_t)1 << k));
		if (saves)
			move_register(at, saves, "32", word, place, step);
	}
}

static void move_registers(struct cursor *at, bool saves, struct saver *s, const struct slot *slot,
			   const struct alive *alive)
{
	struct reg *place, *step;

	if (alive->n_wide) {
		place = write_place(at, s, slot, 4, 8);
		step = write_step(at, s, slot, 8);
		for (unsigned k = 0; k < alive->n_wide; k++)
			move_register(at, saves, "64", op_reg(alive->wide[k]), place, step);
	}
	if (!words_of(alive))
		return;
	place = write_place(at, s, slot, 4 + 8 * s->wide, 4);
	step = write_step(at, s, slot, 4);
	for (unsigned k = 0; k < alive->n_whole; k++)
		move_register(at, saves, "32", op_reg(alive->whole[k]), place, step);
	move_halves(at, saves, s, alive, place, step);
	move_flags(at, saves, s, alive, place, step);
}

static void write_leaving(struct saver *s, struct safe_point *point, const struct alive *alive,
			  unsigned number)
{
	struct cursor at = safe_point_leaving(s->rewrite, point);
	struct instruction *trap = at.before;
	struct slot slot = write_slot(&at, s);
	struct reg *place = write_place(&at, s, &slot, 0, 4);

	edit_code(&at, "{ .reg .b32 %n; mov.u32 %n, %1; st.global.b32 [%0], %n; }", op_reg(place),
		  op_int(number));
	move_registers(&at, true, s, &slot, alive);
	if (!point->is_common)
		vote_left(&at, s->rewrite);
	edit_code(&at, "bra %0;", op_block(s->final));
	if (trap)
		edit_remove(s->f, trap);
}

static struct block *write_resuming(struct saver *s, const struct safe_point *point,
				    const struct alive *alive)
{
	struct block *resume = edit_block(s->f, s->f->last, "resume");
	struct cursor at = cursor_end(s->f, resume);
	struct slot slot = write_slot(&at, s);

	move_registers(&at, false, s, &slot, alive);
	edit_code(&at, "mov.u32 %0, %clock; mov.u32 %1, %2; bra %3;", op_reg(s->safe->since),
		  op_reg(s->rewrite->votes->next), op_int(VOTES_BEFORE), op_block(point->at));
	return resume;
}

/* The loop inside @outer, NULL: around the tickets, that @b is in; NULL: none. */
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

/* One step of the way from the restore to the points in @loop, NULL: to all: to the heads of the
 * loops in it, or to the points themselves. */
static void write_ways(struct saver *s, struct cursor *at, const struct loop *loop)
{
	struct safe_point *point = s->safe->points;
	struct block *to = NULL;

	for (unsigned k = 0; point; k++, point = point->next) {
		struct loop *inner;

		if (point->at->order == CFG_UNREACHED || !is_in(loop, point->at))
			continue;
		inner = inner_loop(s, loop, point->at);
		to = inner ? inner->head : s->resume[k];
		edit_code(at, "{ .reg .pred %p; setp.eq.u32 %p, %0, %1; @%p bra %2; }",
			  op_reg(s->rewrite->votes->next), op_int(~k & UINT32_MAX), op_block(to));
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

/* Where to ask at the head of the loop; where there is a check, only if it is made. */
static struct block *asking(const struct saver *s, const struct loop *loop)
{
	for (const struct safe_point *p = s->safe->points; p; p = p->next)
		if (p->head == loop->head)
			return p->check;
	return loop->head;
}

/* Who goes on inside a loop enters it at its head, as everybody does: ptxas lets lanes of a warp
 * meet again only in loops that have no other entry. */
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
			  op_reg(s->rewrite->votes->next), op_block(ways));
		at = cursor_end(s->f, ways);
		write_ways(s, &at, loop);
	}
}

/* Between shared memory, from @start on, and the save: all threads together, @width bytes each. */
static void copy_shared(struct cursor *at, bool saves, struct reg *base, const struct slot *slot,
			struct operand start, struct operand size, unsigned width)
{
	static const char *const widths[] = {"u8", "u16", "u32", "v2.u32", "v4.u32"};
	static const char *const values[] = {"%a", "%a", "%a", "{%a, %b}", "{%a, %b, %c, %d}"};
	unsigned which = (unsigned)__builtin_ctz(width);
	char ptx[640];

	snprintf(ptx, sizeof(ptx),
		 "{ .reg .pred %%p; .reg .b32 %%o, %%s, %%step, %%a, %%b, %%c, %%d; .reg .b64 %%g;"
		 "  mul.lo.u32 %%o, %%0, %u; mul.lo.u32 %%step, %%1, %u;"
		 "again: setp.ge.u32 %%p, %%o, %%3; @%%p bra out;"
		 "  add.u32 %%s, %%2, %%o; cvt.u64.u32 %%g, %%o; add.u64 %%g, %%4, %%g;"
		 "  ld.%s.%s %s, [%%%c]; st.%s.%s [%%%c], %s;"
		 "  add.u32 %%o, %%o, %%step; bra again; out: }",
		 width, width, saves ? "shared" : "global", widths[which], values[which],
		 saves ? 's' : 'g', saves ? "global" : "shared", widths[which], saves ? 'g' : 's',
		 values[which]);
	edit_code(at, ptx, op_reg(slot->thread), op_reg(slot->count), start, size, op_reg(base));
}

/* The largest power of two that divides all. */
static unsigned width_of(uint64_t a, uint64_t b)
{
	uint64_t bits = a | b | 16;

	return (unsigned)(bits & -bits);
}

static void copy_variable(struct cursor *at, bool saves, struct saver *s, const struct slot *slot,
			  struct variable *v, uint32_t offset)
{
	struct reg *start = edit_register(s->f, TYPE_b32), *base = edit_register(s->f, TYPE_b64);

	edit_code(at, "mov.u32 %0, %1; add.u64 %2, %3, %4;", op_reg(start), op_variable(v),
		  op_reg(base), op_reg(slot->base), op_int(offset));
	copy_shared(at, saves, base, slot, op_reg(start), op_int(v->size),
		    width_of(v->size, variable_align(v)));
}

/* What is behind the last 16 bytes goes byte by byte. */
static void copy_dynamic(struct cursor *at, bool saves, struct saver *s, const struct slot *slot)
{
	struct reg *start = edit_register(s->f, TYPE_b32), *base = edit_register(s->f, TYPE_b64),
		   *size = edit_register(s->f, TYPE_b32), *rest = edit_register(s->f, TYPE_b32);
	struct variable *dynamic = s->variables.dynamic;
	unsigned align = variable_align(dynamic);

	edit_code(at,
		  "{ .reg .b64 %x; mov.u32 %0, %1; mul.wide.u32 %x, %2, %3; add.u64 %4, %5, %x;"
		  "  add.u64 %4, %4, %6; mov.u32 %7, %dynamic_smem_size; and.b32 %8, %7, 15;"
		  "  sub.u32 %7, %7, %8; }",
		  op_reg(start), op_variable(dynamic), op_reg(slot->rounded),
		  op_int(4 + s->registers + s->locals), op_reg(base), op_reg(slot->base),
		  op_int(s->fixed), op_reg(size), op_reg(rest));
	copy_shared(at, saves, base, slot, op_reg(start), op_reg(size), width_of(align, align));
	edit_code(at,
		  "{ .reg .b64 %x; cvt.u64.u32 %x, %1; add.u32 %0, %0, %1; add.u64 %2, %2, %x; }",
		  op_reg(start), op_reg(size), op_reg(base));
	copy_shared(at, saves, base, slot, op_reg(start), op_reg(rest), 1);
}

static void copy_local(struct cursor *at, bool saves, struct saver *s, const struct slot *slot,
		       struct variable *v, uint32_t offset)
{
	unsigned width = width_of(v->size | 4, variable_align(v));
	struct reg *place = write_place(at, s, slot, offset, width);
	struct reg *step = write_step(at, s, slot, width);
	const char *type = width == 4 ? "u32" : width == 2 ? "u16" : "u8";
	char ptx[512];

	snprintf(ptx, sizeof(ptx),
		 "{ .reg .pred %%p; .reg .b32 %%s, %%end, %%a;"
		 "  mov.u32 %%s, %%0; add.u32 %%end, %%s, %%1;"
		 "again: setp.ge.u32 %%p, %%s, %%end; @%%p bra out;"
		 "  ld.%s.%s %%a, [%s]; st.%s.%s [%s], %%a;"
		 "  add.u64 %%2, %%2, %%3; add.u32 %%s, %%s, %u; bra again; out: }",
		 saves ? "local" : "global", type, saves ? "%s" : "%2", saves ? "global" : "local",
		 type, saves ? "%2" : "%s", width);
	edit_code(at, ptx, op_variable(v), op_int(v->size), op_reg(place), op_reg(step));
}

/* Shared and local memory, to or from the save. */
static void copy_memory(struct cursor *at, bool saves, struct saver *s, const struct slot *slot)
{
	uint32_t offset = HEADER_BYTES, local = 4 + s->registers;

	for (unsigned k = 0; k < s->variables.n; k++) {
		struct variable *v = s->variables.list[k];

		if (v->space == SPACE_LOCAL) {
			copy_local(at, saves, s, slot, v, local);
			local += (uint32_t)round_up(v->size, 4);
		} else {
			copy_variable(at, saves, s, slot, v, offset);
			offset += (uint32_t)round_up(v->size, 16);
		}
	}
	if (s->variables.dynamic)
		copy_dynamic(at, saves, s, slot);
}

static void write_final(struct saver *s)
{
	struct cursor at = cursor_end(s->f, s->final);
	struct reg *leader = edit_register(s->f, TYPE_pred);
	struct slot slot;

	if (s->copies)
		edit_code(&at, "cp.async.wait_all;");
	edit_code(&at, "barrier.sync %0;", op_int(s->rewrite->barrier));
	slot = write_slot(&at, s);
	copy_memory(&at, true, s, &slot);
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
	slot = write_slot(&at, s);
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
	slot = write_slot(&at, s);
	edit_code(&at,
		  "{ .reg .pred %p; .reg .b32 %zero; mov.u32 %zero, 0; setp.eq.u32 %p, %0, 0;"
		  "  @%p st.global.u32 [%1], %zero; }",
		  op_reg(slot.thread), op_reg(slot.base));
	cursor_place(&at, s->farewell);
	again = cursor_end(f, redraw);
	edit_code(&again, "barrier.sync %0; bra %1;", op_int(s->rewrite->barrier),
		  op_block(safe->draw));
}

/* While a thread is on its way to the point that it left at, the number of its next vote is the
 * complement of the point's. */
static void write_restore(struct saver *s, struct cursor *at)
{
	struct operand number = op_int(s->rewrite->barrier);
	struct slot slot;

	edit_code(at, "barrier.sync %0;", number);
	slot = write_slot(at, s);
	copy_memory(at, false, s, &slot);
	edit_code(at, "barrier.sync %0;", number);
	renew_tickets(at, s, &slot);
	edit_code(at, "barrier.sync %0; ld.global.b32 %1, [%2]; not.b32 %1, %1;", number,
		  op_reg(s->rewrite->votes->next), op_reg(write_place(at, s, &slot, 0, 4)));
}

static void add_variable(struct variable_set *set, struct variable *v)
{
	if (v->space != SPACE_SHARED && v->space != SPACE_LOCAL)
		return;
	if (!v->size) {
		if (!set->dynamic || variable_align(set->dynamic) < variable_align(v))
			set->dynamic = v;
		return;
	}
	for (unsigned k = 0; k < set->n && k < VARIABLES_MAX; k++)
		if (set->list[k] == v)
			return;
	if (set->n < VARIABLES_MAX)
		set->list[set->n] = v;
	set->n++;
}

/* A variable that the kernel has, or that somebody names; but for the passes' own. */
static void add_kernels(struct saver *s, struct variable *v)
{
	if (v != s->safe->watch && v != s->rewrite->votes->told)
		add_variable(&s->variables, v);
}

static void add_named(struct saver *s, const struct operand *operand)
{
	switch (operand->kind) {
	case OPERAND_VARIABLE:
		add_kernels(s, operand->variable);
		return;
	case OPERAND_ADDRESS:
	case OPERAND_VECTOR:
	case OPERAND_LIST:
	case OPERAND_PAIR:
		for (size_t k = 0; k < operand->item_count; k++)
			add_named(s, &operand->items[k]);
		return;
	default:
		return;
	}
}

/* Whoever is called may use any variable of the module; in one of the kernel's own, those that came
 * with it. They are looked for once, not for each kernel. NULL: no memory. */
static const struct variable_set *find_callees(const struct rewrite *rewrite)
{
	struct module *module = rewrite->function->module;
	struct variable_set *set = module->callees_variables;

	if (set)
		return set;
	set = arena_new(module->arena, struct variable_set);
	for (struct variable *v = module->variables; v && set; v = v->next)
		if (!rewrite->detached || v->symbol)
			add_variable(set, v);
	module->callees_variables = set;
	return set;
}

static int add_callees(struct saver *s)
{
	const struct variable_set *set = find_callees(s->rewrite);

	if (!set)
		return -ENOMEM;
	for (unsigned k = 0; k < set->n && k < VARIABLES_MAX; k++)
		add_variable(&s->variables, set->list[k]);
	if (set->n > VARIABLES_MAX)
		s->variables.n = set->n;
	if (set->dynamic)
		add_variable(&s->variables, set->dynamic);
	return 0;
}

static int find_variables(struct saver *s)
{
	for (struct variable *v = s->f->variables; v; v = v->next)
		add_kernels(s, v);
	for (const struct block *b = s->f->entry; b; b = b->next) {
		for (const struct instruction *i = b->first; i; i = i->next) {
			s->calls = s->calls || i->mnemonic->op_class == OP_CALL;
			s->copies = s->copies || i->mnemonic->op_class == OP_ASYNC;
			for (size_t k = 0; k < i->operand_count; k++)
				add_named(s, &i->operands[k]);
		}
	}
	return s->calls ? add_callees(s) : 0;
}

static int measure_memory(struct saver *s)
{
	uint64_t shared = HEADER_BYTES, local = 0;
	int r = find_variables(s);

	if (r)
		return r;
	if (s->variables.n > VARIABLES_MAX)
		return pass_refuse(s->rewrite, s->f->at, "more than %u variables to be saved",
				   VARIABLES_MAX);
	for (unsigned k = 0; k < s->variables.n; k++) {
		const struct variable *v = s->variables.list[k];

		if (v->size > MEMORY_MAX)
			return pass_refuse(s->rewrite, s->f->at, "%.80s is too large to be saved",
					   v->name);
		*(v->space == SPACE_SHARED ? &shared : &local) +=
			round_up(v->size, v->space == SPACE_SHARED ? 16 : 4);
	}
	s->fixed = (uint32_t)round_up(shared, ALIGN);
	s->locals = (uint32_t)local;
	return PASS_DONE;
}

static int measure_points(struct saver *s, struct alive *alive)
{
	uint64_t total = 0;
	struct safe_point *p = s->safe->points;

	for (unsigned k = 0; p; k++, p = p->next) {
		int r = p->at->order == CFG_UNREACHED ? 0 : find_alive(s, p->at, &alive[k]);

		if (r)
			return r;
		if (alive[k].strange)
			return pass_refuse(s->rewrite, s->f->at,
					   "%.80s is alive at a safe point, and cannot be saved",
					   alive[k].strange->name ? alive[k].strange->name
								  : "the carry flag");
		total += alive[k].n_wide + words_of(&alive[k]);
		s->wide = larger(s->wide, alive[k].n_wide);
		s->words = larger(s->words, words_of(&alive[k]));
	}
	s->registers = 8 * s->wide + 4 * s->words;
	if (total > REGISTERS_MAX)
		return pass_refuse(s->rewrite, s->f->at, "too much is alive at its safe points");
	return PASS_DONE;
}

static int run(struct rewrite *rewrite)
{
	struct saver s = {.rewrite = rewrite, .f = rewrite->function, .safe = rewrite->safe};
	struct safe_point *point;
	struct alive *alive;
	struct block *restore;
	struct cursor at;
	int r;

	if (!s.safe)
		return PASS_DONE;
	alive = arena_array(s.f->arena, s.safe->count, sizeof(*alive));
	s.resume = arena_array(s.f->arena, s.safe->count, sizeof(struct block *));
	r = alive && s.resume ? cfg_build(s.f, &s.cfg) : -ENOMEM;
	if (!r)
		r = live_build(s.f, &s.cfg, &s.live);
	if (!r)
		r = measure_memory(&s);
	if (!r)
		r = measure_points(&s, alive);
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
	point = s.safe->points;
	for (unsigned k = 0; point; k++, point = point->next) {
		if (point->at->order == CFG_UNREACHED)
			continue;
		write_leaving(&s, point, &alive[k], k);
		s.resume[k] = write_resuming(&s, point, &alive[k]);
	}
	write_entries(&s);
	write_ways(&s, &at, NULL);
	rewrite->save_per_thread = 4 + s.registers + s.locals;
	rewrite->save_fixed = s.fixed + (WARP - 1) * rewrite->save_per_thread + 16;
	return PASS_DONE;
}

const struct pass pass_save = {"save", run};
