/* Moves the registers that are live at a safe point to and from the save. Register by register, all
 * threads' values lie side by side, so that stores coalesce. Two 16-bit registers share a word, and
 * so do 32 predicates. */
#include "passes/exit-barrier.h"
#include "passes/save/save.h"

#include <stdio.h>

/* At all safe points together. ptxas takes 1 to 2 ms for each; it has 30 s. */
#define REGISTERS_MAX   14000u
#define POINT_REGISTERS 12u /* the rest of a safe point's code takes as long as so many */

#define SM_REGISTERS     65536u
#define THREAD_REGISTERS 255u

static uint32_t larger(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
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
		alive->unsavable = reg;
}

/* The code that resumes sets these. exit_count only seems live until leave writes it. */
static bool is_made_anew(const struct saver *s, const struct reg *reg)
{
	return s->is_constant[reg->id] || reg == s->safe->since || reg == s->safe->exit_count ||
	       reg == s->rewrite->exit_barriers->next;
}

static void find_alive(struct saver *s, const struct block *at, struct alive *alive)
{
	struct arena *arena = s->f->arena;
	size_t n = s->live.count;

	*alive = (struct alive){.wide = arena_array(arena, n, sizeof(struct reg *)),
				.whole = arena_array(arena, n, sizeof(struct reg *)),
				.half = arena_array(arena, n, sizeof(struct reg *)),
				.flags = arena_array(arena, n, sizeof(struct reg *))};
	for (size_t k = 0; k < n; k++) {
		struct reg *reg = s->live.regs[k];

		if (is_made_anew(s, reg) || !live_at_start(&s->live, at, reg))
			continue;
		if (reg == s->f->carry)
			alive->unsavable = reg;
		else
			sort_register(alive, reg);
	}
}

static uint32_t words_of(const struct alive *alive)
{
	return alive->n_whole + (alive->n_half + 1) / 2 + (alive->n_flags + 31) / 32;
}

/* How many registers ptxas may give to a thread, by the kernel's own head: a build with fewer may
 * spill. */
static uint32_t registers_of_thread(const struct rewrite *rewrite)
{
	const struct function *f = rewrite->function;
	const struct directive *limit = function_directive(f, "maxnreg");
	const struct directive *blocks = function_directive(f, "minnctapersm");
	uint64_t threads = function_threads(f);

	if (limit && limit->value_count && limit->values[0] &&
	    limit->values[0] != rewrite->registers_max)
		return limit->values[0];
	if (blocks && blocks->value_count && blocks->values[0])
		threads *= blocks->values[0];
	return threads > SM_REGISTERS / THREAD_REGISTERS ? (uint32_t)(SM_REGISTERS / threads)
							 : THREAD_REGISTERS;
}

/* If so many registers are live at a safe point, the code around it needs more than a thread has.
 * ptxas then spills kilobytes, also in the loop, and takes 10 to 200 times as long as for the
 * original. */
static void refuse_spilling(struct saver *s)
{
	uint32_t live = 2 * s->wide + s->words, most = registers_of_thread(s->rewrite);

	if (live > most / 5 * 4)
		pass_refuse(s->rewrite, s->f->at, "%u of %u registers are live at its safe points",
			    live, most);
}

void save_measure_registers(struct saver *s)
{
	uint64_t total = 0;

	for (const struct safe_point *p = s->safe->points; p; p = p->next) {
		struct alive *alive = &s->alive[p->number];
		const struct reg *unsavable;

		if (p->at->order == CFG_UNREACHED)
			continue;
		find_alive(s, p->at, alive);
		unsavable = alive->unsavable;
		if (unsavable)
			pass_refuse(s->rewrite, s->f->at,
				    "%.80s is live at a safe point and cannot be saved",
				    unsavable == s->f->carry ? "the carry flag" : unsavable->name);
		total += POINT_REGISTERS + alive->n_wide + words_of(alive);
		s->wide = larger(s->wide, alive->n_wide);
		s->words = larger(s->words, words_of(alive));
	}
	s->registers = 8 * s->wide + 4 * s->words;
	if (total > REGISTERS_MAX)
		pass_refuse(s->rewrite, s->f->at, "too many live registers at its safe points");
	refuse_spilling(s);
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

void save_move_registers(struct cursor *at, bool saves, struct saver *s, const struct slot *slot,
			 const struct alive *alive)
{
	struct reg *place, *step;

	if (alive->n_wide) {
		place = save_place(at, s, slot, 4, 8);
		step = save_step(at, s, slot, 8);
		for (unsigned k = 0; k < alive->n_wide; k++)
			move_register(at, saves, "64", op_reg(alive->wide[k]), place, step);
	}
	if (!words_of(alive))
		return;
	place = save_place(at, s, slot, 4 + 8 * s->wide, 4);
	step = save_step(at, s, slot, 4);
	for (unsigned k = 0; k < alive->n_whole; k++)
		move_register(at, saves, "32", op_reg(alive->whole[k]), place, step);
	move_halves(at, saves, s, alive, place, step);
	move_flags(at, saves, s, alive, place, step);
}
