/* Templates: the parser reads them like bodies, in a scope of their own. Replacing special
 * registers. */
#include "syntax/edit.h"

#include "syntax/opcode.h"
#include "syntax/parser.h"

#include <stdio.h>
#include <string.h>

void edit_code_operands(struct cursor *cursor, const char *ptx, const struct operand *operands,
			size_t n)
{
	struct function *f = cursor->function;
	struct module *module = f->module;
	struct scope scope = {.outer = module->scope, .depth = 3};
	struct parser p = {.module = module,
			   .function = f,
			   .arena = f->arena,
			   .scope = &scope,
			   .cursor = *cursor,
			   .is_template = true,
			   .operands = operands,
			   .operand_count = n};

	if (parser_run(&p, parse_statements, ptx, strlen(ptx), (struct position){1, 1})) {
		struct diag diag = diag_take(module->diag);

		diag_stop(module->diag, diag.error, (struct position){0}, "template '%.60s': %s",
			  ptx + (diag.at.column ? diag.at.column - 1 : 0), diag.message);
	}
	*cursor = p.cursor;
}

static unsigned replace_operand(struct operand *operand, const char *text, const struct operand *by)
{
	unsigned n = 0;

	if (operand->kind == OPERAND_SPECIAL && !strcmp(operand->text, text)) {
		*operand = *by;
		return 1;
	}
	for (size_t k = 0; k < operand_items(operand); k++)
		n += replace_operand(&operand->items[k], text, by);
	return n;
}

/* A 16-bit mov accepts a special register but no 32-bit register. */
static void narrow(struct function *f, struct instruction *i)
{
	static const char wanted[] = "cvt.u16.u32";

	if (strcmp(i->mnemonic->name, "mov") != 0 || i->mnemonic->first_type == TYPE_NONE ||
	    types[i->mnemonic->first_type].bits != 16)
		return;
	i->mnemonic = opcode_mnemonic(f->module, wanted, strlen(wanted));
}

/* Replaces mov.v4.u32 {a, b, c, d}, %ctaid by up to four moves. */
static void take_apart(struct function *f, struct instruction *i)
{
	static const char parts[] = "xyzw";
	const struct operand *to = &i->operands[0], *from = &i->operands[1];
	struct cursor at = cursor_before(f, i);

	for (unsigned k = 0; k < 4; k++) {
		struct operand part = *to;
		char text[64];

		if (to->kind == OPERAND_VECTOR && k >= to->item_count)
			break;
		if (to->kind == OPERAND_VECTOR)
			part = to->items[k];
		if (part.kind != OPERAND_REGISTER)
			continue;
		if (to->kind != OPERAND_VECTOR) {
			static const char *const suffixes[] = {".x", ".y", ".z", ".w"};
			part.suffix = suffixes[k];
		}
		snprintf(text, sizeof(text), "%.40s.%c", from->text, parts[k]);
		edit_code(&at, "mov.u32 %0, %1;", part, op_special(f, text));
		edit_guard_like(&at, i);
	}
	edit_remove(i);
}

static bool reads_whole(const struct instruction *i, const char *name)
{
	size_t len = strcspn(name, ".");

	return i->operand_count == 2 && i->operands[1].kind == OPERAND_SPECIAL &&
	       !strcmp(i->mnemonic->name, "mov") && !strncmp(i->operands[1].text, name, len) &&
	       !i->operands[1].text[len];
}

unsigned edit_replace_special(struct function *function, const char *name, struct operand by)
{
	unsigned n = 0;

	for (struct block *b = function->entry; b; b = b->next) {
		for (struct instruction *i = b->first, *next; i; i = next) {
			unsigned here = 0;

			if (strchr(name, '.') && reads_whole(i, name)) {
				struct instruction *before = i->prev;

				take_apart(function, i);
				next = before ? before->next : b->first;
				continue;
			}
			next = i->next;
			for (size_t k = 0; k < i->operand_count; k++)
				here += replace_operand(&i->operands[k], name, &by);
			if (here)
				narrow(function, i);
			n += here;
		}
	}
	return n;
}

/* "%ctaid" as @name means any part. "%ctaid.x" also matches a read of the whole vector %ctaid. */
static bool uses_special(const struct operand *operand, const char *name, size_t len)
{
	for (size_t k = 0; k < operand_items(operand); k++)
		if (uses_special(&operand->items[k], name, len))
			return true;
	if (operand->kind != OPERAND_SPECIAL || strncmp(operand->text, name, len) != 0)
		return false;
	return !strcmp(operand->text, name) || operand->text[len] == '\0' ||
	       (operand->text[len] == '.' && !name[len]);
}

bool edit_uses_special(const struct function *function, const char *name)
{
	size_t len = strcspn(name, ".");

	for_each_instruction (i, function)
		for (size_t k = 0; k < i->operand_count; k++)
			if (uses_special(&i->operands[k], name, len))
				return true;
	return false;
}
