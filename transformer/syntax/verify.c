#include "syntax/verify.h"

#include <errno.h>
#include <string.h>

struct verifier {
	const struct function *f;
	struct diag *diag;
	struct arena arena;
	struct intern names;
	const struct reg **regs; /* by id */
};

static bool wrong(struct verifier *v, const struct instruction *i, const char *what,
		  const char *name)
{
	diag_fail(v->diag, -EINVAL, i ? i->at : v->f->at, "%s: %s%s%.80s", v->f->name, what,
		  name ? ": " : "", name ? name : "");
	return false;
}

/* All names of a body must differ. */
static bool verify_name(struct verifier *v, const char *name)
{
	const char *known;

	if (!name)
		return true;
	known = intern_string(&v->names, name);
	if (!known)
		return wrong(v, NULL, "no memory", NULL);
	if (*intern_slot(known))
		return wrong(v, NULL, "a name is used twice", name);
	*intern_slot(known) = v;
	return true;
}

static bool verify_reg(struct verifier *v, const struct instruction *i, const struct reg *reg)
{
	if (!reg || reg->id >= v->f->reg_count || v->regs[reg->id] != reg)
		return wrong(v, i, "a register of another function", reg ? reg->name : NULL);
	return true;
}

static bool verify_block(struct verifier *v, const struct instruction *i, const struct block *block)
{
	if (!block || !block->placed)
		return wrong(v, i, "a jump to nowhere", block ? block->label : NULL);
	return true;
}

static bool verify_operand(struct verifier *v, const struct instruction *i,
			   const struct operand *operand)
{
	if (operand->kind == OPERAND_NONE)
		return wrong(v, i, "an operand of no kind", NULL);
	if (operand->kind == OPERAND_REGISTER)
		return verify_reg(v, i, operand->reg);
	if (operand->kind == OPERAND_BLOCK)
		return verify_block(v, i, operand->block);
	for (size_t k = 0; operand->kind == OPERAND_TABLE && k < operand->table->target_count; k++)
		if (!verify_block(v, i, operand->table->targets[k]))
			return false;
	for (size_t k = 0; k < operand_items(operand); k++)
		if (!verify_operand(v, i, &operand->items[k]))
			return false;
	return true;
}

static bool verify_instruction(struct verifier *v, const struct instruction *i)
{
	if (i->guard && (!verify_reg(v, i, i->guard) || i->guard->type != TYPE_pred))
		return wrong(v, i, "a guard that is no predicate", i->guard->name);
	if (instruction_ends_block(i) && i->next)
		return wrong(v, i, "code behind the end of a block", i->mnemonic->text);
	if (i->mnemonic->op_class == OP_BRANCH &&
	    (i->operand_count != 1 || i->operands[0].kind != OPERAND_BLOCK))
		return wrong(v, i, "a branch without a target", NULL);
	if (i->mnemonic->op_class == OP_TABLE &&
	    (i->operand_count != 2 || i->operands[1].kind != OPERAND_TABLE))
		return wrong(v, i, "a branch without a table", NULL);
	for (size_t k = 0; k < i->operand_count; k++)
		if (!verify_operand(v, i, &i->operands[k]))
			return false;
	return true;
}

static bool verify_code(struct verifier *v)
{
	const struct block *last = NULL;

	for (const struct block *b = v->f->entry; b; last = b, b = b->next) {
		const struct instruction *before = NULL;

		if (b->prev != last || !b->placed || !verify_name(v, b->label))
			return wrong(v, b->first, "the list of blocks is broken", b->label);
		for (const struct instruction *i = b->first; i; before = i, i = i->next) {
			if (i->prev != before || i->block != b)
				return wrong(v, i, "the list of instructions is broken", NULL);
			if (!verify_instruction(v, i))
				return false;
		}
		if (b->last != before)
			return wrong(v, before, "the last instruction of a block is wrong",
				     b->label);
	}
	if (v->f->last != last || !last || block_falls_through(last))
		return wrong(v, NULL, "control falls off the end", NULL);
	return true;
}

static bool verify_names(struct verifier *v)
{
	unsigned n = 0;

	for (const struct reg *r = v->f->regs; r; r = r->next, n++) {
		if (n >= v->f->reg_count || r->id != n)
			return wrong(v, NULL, "registers are not numbered", r->name);
		v->regs[n] = r;
		if (r != v->f->carry && !verify_name(v, r->name))
			return false;
	}
	if (n != v->f->reg_count)
		return wrong(v, NULL, "registers are not numbered", NULL);
	for (const struct variable *x = v->f->variables; x; x = x->next)
		if (!verify_name(v, x->name))
			return false;
	for (const struct variable *x = v->f->params; x; x = x->next)
		if (strcmp(x->name, "_") != 0 && !verify_name(v, x->name))
			return false;
	for (const struct table *t = v->f->tables; t; t = t->next)
		if (!verify_name(v, t->name))
			return false;
	return true;
}

int verify_function(const struct function *function, struct diag *diag)
{
	struct verifier v = {.f = function, .diag = diag};

	arena_init(&v.arena, SIZE_MAX);
	intern_init(&v.names, &v.arena);
	v.regs = arena_array(&v.arena, function->reg_count, sizeof(struct reg *));
	if (!v.regs)
		diag_no_memory(diag);
	else if (verify_names(&v))
		verify_code(&v);
	arena_deinit(&v.arena);
	return diag->error;
}
