#include "syntax/emit.h"

#include <string.h>

static void add_block_name(struct text *out, const struct function *f, const struct block *block)
{
	if (block->label)
		text_string(out, block->label);
	else {
		text_string(out, f->module->prefix);
		text_print(out, "b%u", block->number);
	}
}

static void add_operand(struct text *out, const struct function *f, const struct operand *operand);

static void add_items(struct text *out, const struct function *f, const char *open,
		      const struct operand *operand, const char *between, const char *close)
{
	text_string(out, open);
	for (size_t k = 0; k < operand->item_count; k++) {
		if (k)
			text_string(out, between);
		add_operand(out, f, &operand->items[k]);
	}
	text_string(out, close);
}

static void add_operand(struct text *out, const struct function *f, const struct operand *operand)
{
	if (operand->sign)
		text_add(out, &operand->sign, 1);
	switch (operand->kind) {
	case OPERAND_NONE:
		break;
	case OPERAND_REGISTER:
		text_string(out, operand->reg->name);
		break;
	case OPERAND_IMMEDIATE:
		if (operand->text)
			text_string(out, operand->text);
		else
			text_print(out, "%lld", (long long)operand->value);
		break;
	case OPERAND_SPECIAL:
	case OPERAND_SYMBOL:
		text_string(out, operand->text);
		break;
	case OPERAND_VARIABLE:
		text_string(out, operand->variable->name);
		break;
	case OPERAND_BLOCK:
		add_block_name(out, f, operand->block);
		break;
	case OPERAND_TABLE:
		text_string(out, operand->table->name);
		break;
	case OPERAND_ADDRESS:
		add_items(out, f, "[", operand, ", ", "]");
		break;
	case OPERAND_VECTOR:
		add_items(out, f, "{", operand, ", ", "}");
		break;
	case OPERAND_LIST:
		add_items(out, f, "(", operand, ", ", ")");
		break;
	case OPERAND_PAIR:
		add_items(out, f, "", operand, "|", "");
		break;
	}
	if (operand->suffix) {
		if (!strchr(".+*", *operand->suffix))
			text_string(out, "+");
		text_string(out, operand->suffix);
	}
}

void emit_instruction(struct text *out, const struct function *f,
		      const struct instruction *instruction)
{
	text_string(out, "\t");
	if (instruction->mnemonic->op_class == OP_DIRECTIVE) {
		add_operand(out, f, &instruction->operands[0]);
		text_string(out, "\n");
		return;
	}
	if (instruction->guard)
		text_strings(out, instruction->guard_negated ? "@!" : "@", instruction->guard->name,
			     " ");
	text_string(out, instruction->mnemonic->text);
	for (size_t k = 0; k < instruction->operand_count; k++) {
		text_string(out, k ? ", " : "\t");
		add_operand(out, f, &instruction->operands[k]);
	}
	text_string(out, ";\n");
}

static void add_list(struct text *out, const struct variable *first)
{
	text_string(out, "(");
	for (const struct variable *v = first; v; v = v->next)
		text_strings(out, "\n\t", v->before, v->name, v->after, v->next ? "," : "\n");
	text_string(out, ")");
}

static void add_head(struct text *out, const struct function *f)
{
	text_strings(out, f->linkage, " ");
	if (f->returns) {
		add_list(out, f->returns);
		text_string(out, " ");
	}
	text_string(out, f->name);
	add_list(out, f->params);
	for (const struct directive *d = f->directives; d; d = d->next)
		text_strings(out, "\n", d->text);
	text_string(out, "\n");
}

/* Registers outside of printed groups. Neighbours of one type share a line. */
static void add_registers(struct text *out, const struct function *f)
{
	const struct reg *last = NULL;
	unsigned on_line = 0;

	for (const struct reg *r = f->regs; r; r = r->next) {
		if (r->in_group)
			continue;
		if (last && last->type == r->type && last->vector == r->vector && on_line < 8)
			text_string(out, ", ");
		else {
			text_string(out, last ? ";\n\t.reg " : "\t.reg ");
			if (r->vector > 1)
				text_print(out, ".v%u ", r->vector);
			text_print(out, ".%s ", types[r->type].name);
			on_line = 0;
		}
		text_string(out, r->name);
		on_line++;
		last = r;
	}
	if (last)
		text_string(out, ";\n");
}

static void add_tables(struct text *out, const struct function *f)
{
	for (const struct table *t = f->tables; t; t = t->next) {
		text_strings(out, "\t", t->name, ": .branchtargets ");
		for (size_t k = 0; k < t->target_count; k++) {
			text_string(out, k ? ", " : "");
			add_block_name(out, f, t->targets[k]);
		}
		text_string(out, ";\n");
	}
}

static void add_declarations(struct text *out, const struct function *f)
{
	for (const struct declaration *d = f->declarations; d; d = d->next)
		text_strings(out, "\t", d->text, "\n");
	add_registers(out, f);
	for (const struct variable *v = f->variables; v; v = v->next)
		text_strings(out, "\t", v->before, v->name, v->after, ";\n");
	add_tables(out, f);
}

/* Labels that no branch names are not printed: debug sections may refer to the original's label. */
static void find_targets(const struct function *f)
{
	for (struct block *b = f->entry; b; b = b->next)
		b->is_target = false;
	for_each_instruction (i, f)
		for (size_t k = 0; k < i->operand_count; k++)
			if (i->operands[k].kind == OPERAND_BLOCK)
				i->operands[k].block->is_target = true;
	for (struct table *t = f->tables; t; t = t->next)
		for (size_t k = 0; k < t->target_count; k++)
			t->targets[k]->is_target = true;
}

void emit_declaration(struct text *out, const struct function *function)
{
	add_head(out, function);
	text_string(out, ";\n");
}

void emit_function(struct text *out, const struct function *function)
{
	find_targets(function);
	add_head(out, function);
	text_string(out, "{\n");
	add_declarations(out, function);
	for (const struct block *b = function->entry; b; b = b->next) {
		if (b->is_target) {
			text_string(out, "\n");
			add_block_name(out, function, b);
			text_string(out, ":\n");
		}
		for (const struct instruction *i = b->first; i; i = i->next)
			emit_instruction(out, function, i);
	}
	text_string(out, "}");
}
