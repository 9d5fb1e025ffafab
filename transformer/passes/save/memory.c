/* Shared and local memory in the save: which variables, their size, and loops that copy them. */
#include "passes/callee.h"
#include "passes/exit-barrier.h"
#include "passes/save/save.h"

#include <stdio.h>

#define ALIGN      256u
#define MEMORY_MAX (1u << 20) /* bytes of a variable */

static void add(struct variable_set *set, struct variable *v)
{
	if (v->space != SPACE_SHARED && v->space != SPACE_LOCAL)
		return;
	if (!v->size) {
		if (!set->dynamic || variable_align(set->dynamic) < variable_align(v))
			set->dynamic = v;
		return;
	}
	for (unsigned k = 0; k < set->n && k < SAVE_VARIABLES_MAX; k++)
		if (set->list[k] == v)
			return;
	if (set->n < SAVE_VARIABLES_MAX)
		set->list[set->n] = v;
	set->n++;
}

/* Variables that the passes use while threads leave are not saved. */
static void find(struct saver *s, struct variable *v)
{
	if (v != s->safe->watch && v != s->rewrite->exit_barriers->announced)
		add(&s->variables, v);
}

static void find_named(struct saver *s, const struct operand *operand)
{
	if (operand->kind == OPERAND_VARIABLE)
		find(s, operand->variable);
	for (size_t k = 0; k < operand_items(operand); k++)
		find_named(s, &operand->items[k]);
}

/* A called function may use any variable of the module, or of those that a detached kernel took
 * along. Cached per module. */
static const struct variable_set *callees_variables(const struct rewrite *rewrite)
{
	struct module *module = rewrite->function->module;
	struct variable_set *set = module->callees_variables;

	if (set)
		return set;
	set = arena_new(module->arena, struct variable_set);
	for (struct variable *v = module->variables; v; v = v->next)
		if (!rewrite->detached || v->symbol)
			add(set, v);
	module->callees_variables = set;
	return set;
}

static void add_callees(struct variable_set *set, const struct rewrite *rewrite)
{
	const struct variable_set *theirs = callees_variables(rewrite);

	for (unsigned k = 0; k < theirs->n && k < SAVE_VARIABLES_MAX; k++)
		add(set, theirs->list[k]);
	if (theirs->n > SAVE_VARIABLES_MAX)
		set->n = theirs->n;
	if (theirs->dynamic)
		add(set, theirs->dynamic);
}

static void find_variables(struct saver *s)
{
	bool calls = false;

	for (struct variable *v = s->f->variables; v; v = v->next)
		find(s, v);
	for_each_instruction (i, s->f) {
		if (i->mnemonic->op_class == OP_CALL) {
			calls = true;
			/* The kernel cannot name a function's own variables. */
			callee_refuse(s->rewrite, i, CALLEE_SHARED, "calls",
				      "has shared memory of its own that cannot be saved");
		}
		for (size_t k = 0; k < i->operand_count; k++)
			find_named(s, &i->operands[k]);
	}
	if (calls)
		add_callees(&s->variables, s->rewrite);
}

static uint64_t round_up(uint64_t n, uint64_t to)
{
	return (n + to - 1) / to * to;
}

void save_measure_memory(struct saver *s)
{
	uint64_t shared = SAFE_POINT_HEADER, local = 0;

	find_variables(s);
	if (s->variables.n > SAVE_VARIABLES_MAX)
		pass_refuse(s->rewrite, s->f->at, "more than %u variables to save",
			    SAVE_VARIABLES_MAX);
	kept_find(s);
	for (unsigned k = 0; k < s->variables.n; k++) {
		const struct variable *v = s->variables.list[k];

		if (v->size > MEMORY_MAX)
			pass_refuse(s->rewrite, s->f->at, "%.80s is too large to be saved",
				    v->name);
		*(v->space == SPACE_SHARED ? &shared : &local) +=
			round_up(v->size, v->space == SPACE_SHARED ? 16 : 4);
	}
	s->fixed = (uint32_t)round_up(shared, ALIGN);
	s->locals = (uint32_t)local;
}

/* Copies between shared memory at @start and the save. All threads take part, @width bytes each. */
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

/* The largest power of two, up to 16, that divides both. */
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

/* Copies 16 bytes at a time, then the rest byte by byte. */
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
	struct reg *place = save_place(at, s, slot, offset, width);
	struct reg *step = save_step(at, s, slot, width);
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

void save_copy_memory(struct cursor *at, bool saves, struct saver *s, const struct slot *slot)
{
	uint32_t offset = SAFE_POINT_HEADER, local = 4 + s->registers;
	struct reg *which = kept_which(at, saves, s, slot);
	struct block *behind;

	for (unsigned k = 0; k < s->variables.n; k++) {
		struct variable *v = s->variables.list[k];

		if (v->space == SPACE_LOCAL) {
			copy_local(at, saves, s, slot, v, local);
			local += (uint32_t)round_up(v->size, 4);
		} else {
			behind = kept_unless(at, s, which, v);
			copy_variable(at, saves, s, slot, v, offset);
			if (behind)
				cursor_place(at, behind);
			offset += (uint32_t)round_up(v->size, 16);
		}
	}
	if (!s->variables.dynamic)
		return;
	behind = kept_unless(at, s, which, s->variables.dynamic);
	copy_dynamic(at, saves, s, slot);
	if (behind)
		cursor_place(at, behind);
}
