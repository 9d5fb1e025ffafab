/* Gives a detached kernel (detach.h) its variables: by address from the parameter behind the hidden
 * struct, or as a copy. An address is loaded at each use, so it lives nowhere else; the load costs
 * as much as the name did. */
#include "passes/detach.h"
#include "passes/pass.h"

#include <stdio.h>

struct replacing {
	struct rewrite *rewrite;
	struct instruction *i;
};

static struct reg *load_address(struct replacing *r, const struct symbol *symbol)
{
	struct function *f = r->rewrite->function;
	struct reg *reg = edit_named_register(f, TYPE_b64, "address");
	struct cursor at = cursor_before(f, r->i);
	char ptx[64];

	snprintf(ptx, sizeof(ptx), "ld.param.u64 %%0, [%%1+%zu];",
		 hidden_size(r->rewrite->form) + symbol->index * sizeof(uint64_t));
	edit_code(&at, ptx, op_reg(reg), op_variable(r->rewrite->hidden));
	return reg;
}

static void replace_address(struct replacing *r, struct operand *operand, bool in_brackets)
{
	struct cursor at = cursor_before(r->rewrite->function, r->i);
	struct reg *reg = load_address(r, operand->variable->symbol);
	const char *suffix = operand->suffix;
	uint64_t offset;

	if (!in_brackets && suffix && symbol_offset(operand, &offset)) {
		edit_code(&at, "add.u64 %0, %0, %1;", op_reg(reg), op_int(offset));
		suffix = NULL;
	}
	*operand = op_reg(reg);
	operand->suffix = suffix;
}

static void replace(struct replacing *r, struct operand *operand, bool in_brackets)
{
	const struct symbol *symbol;

	for (size_t k = 0; k < operand_items(operand); k++)
		replace(r, &operand->items[k], in_brackets || operand->kind == OPERAND_ADDRESS);
	if (operand->kind != OPERAND_VARIABLE || !operand->variable->of_module)
		return;
	symbol = operand->variable->symbol;
	if (symbol && symbol->kind == SYMBOL_ADDRESS)
		replace_address(r, operand, in_brackets);
	else if (symbol && symbol->kind == SYMBOL_COPY)
		operand->variable = symbol->copy;
}

static void run(struct rewrite *rewrite)
{
	const struct detached *detached = rewrite->detached;
	struct function *f = rewrite->function;

	if (!detached)
		return;
	if (detached->refusal.error)
		pass_refuse(rewrite, detached->refusal.at, "%s", detached->refusal.message);
	detach_strip(f);
	f->linkage = ".visible .entry";
	for_each_instruction (i, f) {
		struct replacing r = {rewrite, i};

		for (size_t k = 0; k < i->operand_count; k++)
			replace(&r, &i->operands[k], false);
	}
}

const struct pass pass_symbols = {"symbols", run};
