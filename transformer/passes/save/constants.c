// clang-format off
/* Registers that have one value in all blocks and launches, because it comes from parameters,
 * numbers, addresses of variables and the thread's index. They are computed once, where the worker
 * begins, and not saved:
 *
 *	enter:  ld.param.u64 %rd1, [data]; mov.u32 %r1, %tid.x; ...   before the ways part
 *	given:  the blocks, which use them, resumed ones as well
 *
 * This costs fewer registers than saving does. Where a restored value meets that of a parameter,
 * ptxas needs a register; with one origin it reads the parameter where it is used. */
// clang-format on
#include "passes/save/save.h"

#include <string.h>

#define ROUNDS_MAX 16u /* one is enough for code in the order of its execution */

/* What writes a register. */
struct origin {
	struct instruction *first;
	bool differs;  /* others write it as well, and compute something else */
	bool is_known; /* it is constant */
	bool is_needed;
};

struct constants {
	struct saver *s;
	struct origin *origins;    /* by reg->id */
	struct instruction **list; /* compute constants, sources first */
	unsigned n;
	struct instruction *at; /* of a visit ... */
	bool answer;            /* ... and what it finds */
};

static bool is_same_operand(const struct operand *a, const struct operand *b)
{
	bool is_same = a->kind == b->kind && a->sign == b->sign && a->suffix == b->suffix;

	if (is_same && operand_items(a) != operand_items(b))
		return false;
	for (size_t k = 0; is_same && k < operand_items(a); k++)
		is_same = is_same_operand(&a->items[k], &b->items[k]);
	if (!is_same || operand_items(a))
		return is_same;
	return a->kind == OPERAND_IMMEDIATE ? a->text == b->text && a->value == b->value
					    : a->text == b->text; /* any of the pointers */
}

static bool is_same(const struct instruction *a, const struct instruction *b)
{
	if (a->mnemonic != b->mnemonic || a->operand_count != b->operand_count)
		return false;
	for (size_t k = 0; k < a->operand_count; k++)
		if (!is_same_operand(&a->operands[k], &b->operands[k]))
			return false;
	return true;
}

/* The kernel's own parameters; not those of its calls. */
static bool is_parameter(const struct operand *operand)
{
	const struct operand *item = operand->kind == OPERAND_ADDRESS ? operand->items : NULL;

	return item && operand->item_count == 1 && item->kind == OPERAND_VARIABLE &&
	       item->variable->space == SPACE_PARAM && !item->variable->of_body;
}

/* Whether it is the same in all blocks of this worker, and in the launch that resumes one. */
static bool is_constant_operand(const struct operand *operand)
{
	for (size_t k = 0; k < operand_items(operand); k++)
		if (!is_constant_operand(&operand->items[k]))
			return false;
	return operand->kind != OPERAND_SPECIAL || !strncmp(operand->text, "%tid", 4) ||
	       !strncmp(operand->text, "%ntid", 5) || name_is(operand->text, "WARP_SZ", "%laneid");
}

/* Whether its results depend on its operands only, and these may be constant. */
static bool is_pure(const struct instruction *i)
{
	const struct mnemonic *m = i->mnemonic;

	if (i->guard || m->flags != OP_WRITES_0 || i->operand_count < 2)
		return false;
	if (m->op_class == OP_MEMORY)
		return !strcmp(m->name, "ld") && mnemonic_has(m, "param") &&
		       is_parameter(&i->operands[1]);
	if (m->op_class != OP_PLAIN)
		return false;
	for (size_t k = 1; k < i->operand_count; k++)
		if (!is_constant_operand(&i->operands[k]))
			return false;
	return true;
}

static void note_write(void *data, struct register_use use)
{
	struct constants *c = data;
	struct origin *origin = &c->origins[use.reg->id];
	struct instruction *i = c->at;

	if (!use.written)
		return;
	if (!origin->first)
		origin->first = i;
	if (!use.kills || !is_pure(i) || !is_same(origin->first, i))
		origin->differs = true;
}

/* Clears the answer if the instruction reads what is not constant, or another one writes, too. */
static void judge(void *data, struct register_use use)
{
	struct constants *c = data;
	const struct origin *origin = &c->origins[use.reg->id];

	if (use.written ? origin->differs : !origin->is_known)
		c->answer = false;
}

static void set_known(void *data, struct register_use use)
{
	struct constants *c = data;

	if (use.written)
		c->origins[use.reg->id].is_known = true;
}

static bool writes_known(const struct constants *c, const struct instruction *i)
{
	const struct operand *to = &i->operands[0];

	while (operand_items(to))
		to = to->items;
	return to->kind != OPERAND_REGISTER || c->origins[to->reg->id].is_known;
}

/* False: nothing new. */
static bool find_more(struct constants *c)
{
	const struct function *f = c->s->f;
	unsigned before = c->n;

	for_each_instruction (i, f) {
		if (!is_pure(i) || writes_known(c, i))
			continue;
		c->answer = true;
		instruction_registers(f, i, judge, c);
		if (!c->answer)
			continue;
		instruction_registers(f, i, set_known, c);
		c->list[c->n++] = i;
	}
	return c->n > before;
}

/* The answer: whether one of the written registers is needed. */
static void ask_needed(void *data, struct register_use use)
{
	struct constants *c = data;

	if (use.written && c->origins[use.reg->id].is_needed)
		c->answer = true;
}

static void set_needed(void *data, struct register_use use)
{
	struct constants *c = data;

	c->origins[use.reg->id].is_needed = true;
}

static bool is_needed(struct constants *c, const struct instruction *i)
{
	c->answer = false;
	instruction_registers(c->s->f, i, ask_needed, c);
	return c->answer;
}

static bool is_live_at_a_point(const struct saver *s, const struct reg *reg)
{
	for (const struct safe_point *p = s->safe->points; p; p = p->next)
		if (p->at->order != CFG_UNREACHED && live_at_start(&s->live, p->at, reg))
			return true;
	return false;
}

static void find_needed(struct constants *c)
{
	const struct saver *s = c->s;

	for (unsigned k = 0; k < s->live.count; k++) {
		struct origin *origin = &c->origins[s->live.regs[k]->id];

		origin->is_needed = origin->is_known && is_live_at_a_point(s, s->live.regs[k]);
	}
	for (unsigned k = c->n; k-- > 0;)
		if (is_needed(c, c->list[k]))
			instruction_registers(s->f, c->list[k], set_needed, c);
}

/* Computes what is needed at the kernel's begin, and nowhere else. */
static void move(struct constants *c)
{
	struct function *f = c->s->f;
	struct cursor at;

	for_each_instruction (i, f)
		if (is_pure(i) && is_needed(c, i))
			edit_remove(i);
	at = cursor_start(f, f->entry);
	for (unsigned k = 0; k < c->n; k++)
		if (is_needed(c, c->list[k]))
			cursor_insert(&at, c->list[k]);
}

void save_find_constants(struct saver *s)
{
	struct function *f = s->f;
	struct constants c = {.s = s};
	size_t n = 0;

	for_each_instruction (i, f)
		n++;
	c.origins = arena_array(f->arena, f->reg_count, sizeof(*c.origins));
	c.list = arena_array(f->arena, n, sizeof(struct instruction *));
	for_each_instruction (i, f) {
		c.at = i;
		instruction_registers(f, i, note_write, &c);
	}
	for (unsigned round = 0; round < ROUNDS_MAX; round++)
		if (!find_more(&c))
			break;
	find_needed(&c);
	move(&c);
	s->is_constant = arena_array(f->arena, f->reg_count, sizeof(bool));
	for (size_t k = 0; k < f->reg_count; k++)
		s->is_constant[k] = c.origins[k].is_needed;
}
