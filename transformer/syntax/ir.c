#include "syntax/ir.h"

#include <string.h>

const char *const space_names[] = {
	[SPACE_NONE] = "",         [SPACE_REG] = "reg",     [SPACE_PARAM] = "param",
	[SPACE_SHARED] = "shared", [SPACE_LOCAL] = "local", [SPACE_GLOBAL] = "global",
	[SPACE_CONST] = "const",   [SPACE_TEX] = "tex",
};

const struct directive *function_directive(const struct function *function, const char *name)
{
	for (const struct directive *d = function->directives; d; d = d->next)
		if (!strcmp(d->name, name))
			return d;
	return NULL;
}

uint32_t function_threads(const struct function *f)
{
	const struct directive *d = function_directive(f, "reqntid");
	uint64_t product = 1;

	if (!d)
		d = function_directive(f, "maxntid");
	for (unsigned k = 0; d && k < d->value_count; k++)
		if (__builtin_mul_overflow(product, d->values[k], &product))
			return 0;
	return d && product <= UINT32_MAX ? (uint32_t)product : 0;
}

unsigned variable_align(const struct variable *variable)
{
	unsigned bytes = types[variable->type].bits / 8 * variable->vector;

	if (variable->align)
		return variable->align;
	return bytes ? bytes : 1;
}

static struct instruction *first_from(const struct block *block)
{
	while (block && !block->first)
		block = block->next;
	return block ? block->first : NULL;
}

struct instruction *instruction_first(const struct function *function)
{
	return first_from(function->entry);
}

struct instruction *instruction_next(const struct instruction *instruction)
{
	return instruction->next ? instruction->next : first_from(instruction->block->next);
}

bool instruction_ends_block(const struct instruction *instruction)
{
	switch (instruction->mnemonic->op_class) {
	case OP_BRANCH:
	case OP_TABLE:
	case OP_EXIT:
	case OP_TRAP:
		return true;
	default:
		return false;
	}
}

bool block_falls_through(const struct block *block)
{
	return !block->last || block->last->guard || !instruction_ends_block(block->last);
}

bool instruction_has_target(const struct instruction *i)
{
	if (i->mnemonic->op_class == OP_BRANCH)
		return i->operand_count == 1 && i->operands[0].kind == OPERAND_BLOCK;
	return i->mnemonic->op_class != OP_TABLE ||
	       (i->operand_count == 2 && i->operands[1].kind == OPERAND_TABLE);
}

/* Visits the registers of an operand with @use. Registers inside an address are only read. */
static void visit_operand(const struct operand *operand, struct register_use use,
			  register_visit *visit, void *data)
{
	if (operand->kind == OPERAND_REGISTER) {
		use.reg = operand->reg;
		use.kills = use.kills && !operand->suffix;
		use.read = use.read || !use.written;
		visit(data, use);
		return;
	}
	if (operand->kind == OPERAND_ADDRESS)
		use = (struct register_use){.read = true};
	for (size_t k = 0; k < operand_items(operand); k++)
		visit_operand(&operand->items[k], use, visit, data);
}

/* The use of operand @index of @i. */
static struct register_use use_of(const struct instruction *i, size_t index)
{
	const struct mnemonic *m = i->mnemonic;
	struct register_use use = {.read = true};

	if (m->op_class == OP_UNKNOWN)
		return (struct register_use){.read = true, .written = true};
	if (m->op_class == OP_CALL) /* call (results), callee, ... */
		use.written = index == 0 && i->operand_count > 1 &&
			      i->operands[0].kind == OPERAND_LIST &&
			      i->operands[1].kind != OPERAND_LIST;
	else
		use.written = index == 0 && m->flags & (OP_WRITES_0 | OP_UPDATES_0);
	if (use.written) {
		use.read = m->flags & OP_UPDATES_0;
		use.kills = !use.read && !i->guard;
	}
	return use;
}

void instruction_registers(const struct function *function, const struct instruction *instruction,
			   register_visit *visit, void *data)
{
	const struct mnemonic *m = instruction->mnemonic;

	if (instruction->guard)
		visit(data, (struct register_use){.reg = instruction->guard, .read = true});
	if (m->flags & (OP_READS_CARRY | OP_WRITES_CARRY))
		visit(data, (struct register_use){.reg = function->carry,
						  .read = m->flags & OP_READS_CARRY,
						  .written = m->flags & OP_WRITES_CARRY,
						  .kills = m->flags & OP_WRITES_CARRY &&
							   !instruction->guard &&
							   !(m->flags & OP_READS_CARRY)});
	for (size_t k = 0; k < instruction->operand_count; k++)
		visit_operand(&instruction->operands[k], use_of(instruction, k), visit, data);
}
