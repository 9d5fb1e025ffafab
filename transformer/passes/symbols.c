/* Gives a detached kernel (detach.h) its variables: by address from the parameter behind the hidden
 * struct, or as a copy. An address is loaded at each use, so it lives nowhere else; the load costs
 * as much as the name did. */
#include "passes/detach.h"
#include "passes/pass.h"

#include <stdio.h>

/* The code goes to @at. */
static void replace_address(struct cursor *at, struct rewrite *rewrite, struct operand *operand,
			    bool in_brackets)
{
	struct reg *reg = edit_named_register(at->function, TYPE_b64, "address");
	const char *suffix = operand->suffix;
	uint64_t offset;
	char ptx[64];

	snprintf(ptx, sizeof(ptx), "ld.param.u64 %%0, [%%1+%zu];",
		 hidden_size(rewrite->form) + operand->variable->symbol->index * sizeof(uint64_t));
	edit_code(at, ptx, op_reg(reg), op_variable(rewrite->hidden));
	if (!in_brackets && suffix && symbol_offset(operand, &offset)) {
		edit_code(at, "add.u64 %0, %0, %1;", op_reg(reg), op_int(offset));
		suffix = NULL;
	}
	*operand = op_reg(reg);
	operand->suffix = suffix;
}

static void replace(struct cursor *at, struct rewrite *rewrite, struct operand *operand,
		    bool in_brackets)
{
	const struct symbol *symbol;

	for (size_t k = 0; k < operand_items(operand); k++)
		replace(at, rewrite, &operand->items[k],
			in_brackets || operand->kind == OPERAND_ADDRESS);
	if (operand->kind != OPERAND_VARIABLE || !operand->variable->of_module)
		return;
	symbol = operand->variable->symbol;
	if (symbol && symbol->kind == SYMBOL_ADDRESS)
		replace_address(at, rewrite, operand, in_brackets);
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
		struct cursor at = cursor_before(f, i);

		for (size_t k = 0; k < i->operand_count; k++)
			replace(&at, rewrite, &i->operands[k], false);
	}
}

const struct pass pass_symbols = {"symbols", run};
