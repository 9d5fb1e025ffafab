#include "syntax/opcode.h"

#include <stdlib.h>
#include <string.h>

static const struct opcode opcodes[] = {
#define OPCODE(name, with, op_class, flags) {#name, with, op_class, flags},
#include "syntax/opcodes.def"
#undef OPCODE
};
#define OPCODE_COUNT (sizeof(opcodes) / sizeof(opcodes[0]))

const struct type types[TYPE_COUNT] = {
#define TYPE(name, bits, register_class) [TYPE_##name] = {#name, bits, register_class},
#include "syntax/types.def"
#undef TYPE
};

enum type_id type_find(const char *name)
{
	for (unsigned k = TYPE_NONE + 1; k < TYPE_COUNT; k++)
		if (!strcmp(types[k].name, name))
			return (enum type_id)k;
	return TYPE_NONE;
}

bool mnemonic_has(const struct mnemonic *mnemonic, const char *modifier)
{
	return name_in(modifier, mnemonic->modifiers);
}

bool name_in(const char *name, const char *const *names)
{
	while (*names && strcmp(*names, name) != 0)
		names++;
	return *names;
}

static int compare_name(const void *name, const void *row)
{
	return strcmp(name, ((const struct opcode *)row)->name);
}

static const struct opcode *find(const struct mnemonic *mnemonic)
{
	const struct opcode *row =
		bsearch(mnemonic->name, opcodes, OPCODE_COUNT, sizeof(opcodes[0]), compare_name);

	if (!row)
		return NULL;
	while (row > opcodes && !strcmp(row[-1].name, mnemonic->name))
		row--;
	for (; row < opcodes + OPCODE_COUNT && !strcmp(row->name, mnemonic->name); row++)
		if (!*row->with || mnemonic_has(mnemonic, row->with))
			return row;
	return NULL;
}

/* Splits a copy of the text at its dots. */
static bool split(struct mnemonic *mnemonic, struct module *module, size_t len)
{
	char *copy = arena_text(module->arena, mnemonic->text, len), *dot;
	const char **modifiers = arena_array(module->arena, MODIFIER_MAX + 1, sizeof(*modifiers));
	size_t n = 0;

	mnemonic->name = copy;
	mnemonic->modifiers = modifiers;
	for (dot = strchr(copy, '.'); dot; dot = strchr(dot, '.')) {
		if (n == MODIFIER_MAX)
			return false;
		*dot++ = '\0';
		modifiers[n++] = dot;
	}
	return true;
}

static void find_type(struct mnemonic *mnemonic)
{
	for (const char *const *m = mnemonic->modifiers; *m && !mnemonic->first_type; m++)
		mnemonic->first_type = type_find(*m);
}

const struct mnemonic *opcode_mnemonic(struct module *module, const char *text, size_t len)
{
	const char *spelling = intern_text(&module->mnemonics, text, len);
	struct mnemonic *mnemonic;
	const struct opcode *row;

	if (*intern_slot(spelling))
		return *intern_slot(spelling);
	mnemonic = arena_new(module->arena, struct mnemonic);
	mnemonic->text = spelling;
	if (!split(mnemonic, module, len))
		return NULL;
	find_type(mnemonic);
	row = find(mnemonic);
	if (*mnemonic->name == '\0')
		mnemonic->op_class = OP_DIRECTIVE; /* ".loc" */
	else if (row) {
		mnemonic->op_class = row->op_class;
		mnemonic->flags = row->flags;
	}
	*intern_slot(spelling) = mnemonic;
	return mnemonic;
}
