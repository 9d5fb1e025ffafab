#include "syntax/verify.h"

#include <errno.h>
#include <string.h>

struct verifier {
	const struct function *f;
	struct intern names;
	const struct reg **regs; /* by id */
};

static _Noreturn void wrong(const struct verifier *v, const struct instruction *i, const char *what,
			    const char *name)
{
	diag_stop(v->f->module->diag, -EINVAL, i ? i->at : v->f->at, "%s: %s%s%.80s", v->f->name,
		  what, name ? ": " : "", name ? name : "");
}

/* All names of a body must differ. */
static void verify_name(struct verifier *v, const char *name)
{
	const char *known = intern_string(&v->names, name);

	if (*intern_slot(known))
		wrong(v, NULL, "a name is used twice", name);
	*intern_slot(known) = v;
}

static void verify_reg(const struct verifier *v, const struct instruction *i, const struct reg *reg)
{
	if (!reg || reg->id >= v->f->reg_count || v->regs[reg->id] != reg)
		wrong(v, i, "a register of another function", reg ? reg->name : NULL);
}

static void verify_block(const struct verifier *v, const struct instruction *i,
			 const struct block *block)
{
	if (!block || !block->placed)
		wrong(v, i, "a jump to nowhere", block ? block->label : NULL);
}

static void verify_operand(const struct verifier *v, const struct instruction *i,
			   const struct operand *operand)
{
	if (operand->kind == OPERAND_NONE)
		wrong(v, i, "an operand of no kind", NULL);
	if (operand->kind == OPERAND_REGISTER)
		verify_reg(v, i, operand->reg);
	if (operand->kind == OPERAND_BLOCK)
		verify_block(v, i, operand->block);
	for (size_t k = 0; operand->kind == OPERAND_TABLE && k < operand->table->target_count; k++)
		verify_block(v, i, operand->table->targets[k]);
	for (size_t k = 0; k < operand_items(operand); k++)
		verify_operand(v, i, &operand->items[k]);
}

static void verify_instruction(const struct verifier *v, const struct instruction *i)
{
	if (i->guard)
		verify_reg(v, i, i->guard);
	if (i->guard && i->guard->type != TYPE_pred)
		wrong(v, i, "a guard that is no predicate", i->guard->name);
	if (instruction_ends_block(i) && i->next)
		wrong(v, i, "code behind the end of a block", i->mnemonic->text);
	if (!instruction_has_target(i))
		wrong(v, i, "a branch without a target", NULL);
	for (size_t k = 0; k < i->operand_count; k++)
		verify_operand(v, i, &i->operands[k]);
}

static void verify_code(struct verifier *v)
{
	const struct block *last = NULL;

	for (const struct block *b = v->f->entry; b; last = b, b = b->next) {
		const struct instruction *before = NULL;

		if (b->prev != last || !b->placed)
			wrong(v, b->first, "the list of blocks is broken", b->label);
		if (b->label)
			verify_name(v, b->label);
		for (const struct instruction *i = b->first; i; before = i, i = i->next) {
			if (i->prev != before || i->block != b)
				wrong(v, i, "the list of instructions is broken", NULL);
			verify_instruction(v, i);
		}
		if (b->last != before)
			wrong(v, before, "the last instruction of a block is wrong", b->label);
	}
	if (v->f->last != last || !last || block_falls_through(last))
		wrong(v, NULL, "control falls off the end", NULL);
}

static void verify_names(struct verifier *v)
{
	unsigned n = 0;

	for (const struct reg *r = v->f->regs; r; r = r->next, n++) {
		if (n >= v->f->reg_count || r->id != n)
			wrong(v, NULL, "registers are not numbered", r->name);
		v->regs[n] = r;
		if (r != v->f->carry)
			verify_name(v, r->name);
	}
	if (n != v->f->reg_count)
		wrong(v, NULL, "registers are not numbered", NULL);
	for (const struct variable *x = v->f->variables; x; x = x->next)
		verify_name(v, x->name);
	for (const struct variable *x = v->f->params; x; x = x->next)
		if (strcmp(x->name, "_") != 0)
			verify_name(v, x->name);
	for (const struct table *t = v->f->tables; t; t = t->next)
		verify_name(v, t->name);
}

void verify_function(const struct function *function, struct arena *scratch)
{
	struct verifier v = {.f = function};

	arena_reset(scratch);
	intern_init(&v.names, scratch);
	v.regs = arena_array(scratch, function->reg_count, sizeof(struct reg *));
	verify_names(&v);
	verify_code(&v);
}
