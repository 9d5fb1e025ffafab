/* Registers, variables, blocks and insertion points. Templates are in edit-code.c. */
#include "syntax/edit.h"

#include <stdio.h>
#include <string.h>

static void link_block(struct function *f, struct block *after, struct block *block)
{
	block->prev = after;
	block->next = after ? after->next : f->entry;
	*(after ? &after->next : &f->entry) = block;
	*(block->next ? &block->next->prev : &f->last) = block;
	block->placed = true;
}

/* Moves @first and all instructions behind it to the end of @to. */
static void move_tail(struct instruction *first, struct block *to)
{
	struct block *from = first->block;

	to->first = first;
	to->last = from->last;
	from->last = first->prev;
	*(first->prev ? &first->prev->next : &from->first) = NULL;
	first->prev = NULL;
	for (struct instruction *i = first; i; i = i->next)
		i->block = to;
}

struct cursor cursor_before(struct function *function, struct instruction *instruction)
{
	return (struct cursor){function, instruction->block, instruction};
}

struct cursor cursor_after(struct function *function, struct instruction *instruction)
{
	return (struct cursor){function, instruction->block, instruction->next};
}

struct cursor cursor_start(struct function *function, struct block *block)
{
	return (struct cursor){function, block, block->first};
}

struct cursor cursor_end(struct function *function, struct block *block)
{
	return (struct cursor){function, block, NULL};
}

void cursor_place(struct cursor *cursor, struct block *block)
{
	link_block(cursor->function, cursor->block, block);
	if (cursor->before)
		move_tail(cursor->before, block);
	cursor->block = block;
}

void cursor_insert(struct cursor *cursor, struct instruction *i)
{
	struct block *block = cursor->block;

	if (!cursor->before && block->last && instruction_ends_block(block->last)) {
		block = edit_new_block(cursor->function);
		cursor_place(cursor, block);
	}
	i->block = block;
	i->next = cursor->before;
	i->prev = cursor->before ? cursor->before->prev : block->last;
	*(i->prev ? &i->prev->next : &block->first) = i;
	*(i->next ? &i->next->prev : &block->last) = i;
	if (cursor->before && instruction_ends_block(i))
		cursor_place(cursor, edit_new_block(cursor->function));
}

struct operand op_reg(struct reg *reg)
{
	return (struct operand){.kind = OPERAND_REGISTER, .reg = reg};
}

struct operand op_int(uint64_t value)
{
	return (struct operand){.kind = OPERAND_IMMEDIATE, .value = value};
}

struct operand op_block(struct block *block)
{
	return (struct operand){.kind = OPERAND_BLOCK, .block = block};
}

struct operand op_variable(struct variable *variable)
{
	return (struct operand){.kind = OPERAND_VARIABLE, .variable = variable};
}

struct operand op_special(struct function *function, const char *name)
{
	return (struct operand){.kind = OPERAND_SPECIAL,
				.text = intern_string(&function->module->names, name)};
}

const char *edit_fresh_name(struct function *function, const char *name)
{
	const char *prefix = function->module->prefix;
	bool is_percent = *name == '%';
	size_t room = strlen(prefix) + strlen(name) + 16;
	char *text = intern_unlisted(function->arena, room);

	snprintf(text, room, "%s%s%s_%u", is_percent ? "%" : "", prefix, name + is_percent,
		 function->fresh++);
	return text;
}

struct reg *edit_new_register(struct function *function, const char *name, enum type_id type,
			      unsigned vector)
{
	struct reg *reg = arena_new(function->arena, struct reg);

	reg->name = name;
	reg->type = type;
	reg->vector = vector;
	reg->id = function->reg_count++;
	*function->regs_end = reg;
	function->regs_end = &reg->next;
	return reg;
}

struct reg *edit_named_register(struct function *function, enum type_id type, const char *name)
{
	char stem[64];

	snprintf(stem, sizeof(stem), "%%%s", name);
	return edit_new_register(function, edit_fresh_name(function, stem), type, 1);
}

struct reg *edit_register(struct function *function, enum type_id type)
{
	return edit_named_register(function, type, types[type].name);
}

void edit_declare(struct function *function, const char *text)
{
	struct declaration *d = arena_new(function->arena, struct declaration);

	d->text = text;
	*function->declarations_end = d;
	function->declarations_end = &d->next;
}

void edit_declare_group(struct function *function, const char *name, enum type_id type,
			unsigned vector, uint64_t count)
{
	size_t room = strlen(name) + 64;
	char *text = arena_alloc(function->arena, room), part[8] = "";

	if (vector > 1)
		snprintf(part, sizeof(part), ".v%u ", vector % 10);
	snprintf(text, room, ".reg %s.%s %s<%llu>;", part, types[type].name, name,
		 (unsigned long long)count);
	edit_declare(function, text);
}

void edit_resize(struct function *f, struct variable *v, uint64_t bytes)
{
	char after[24];

	snprintf(after, sizeof(after), "[%u]", (unsigned)bytes);
	v->size = bytes;
	v->after = intern_string(&f->module->names, after);
}

/* A variable of @bytes .b8. @end: where its list ends. */
static struct variable *add_variable(struct function *f, enum space space, const char *name,
				     unsigned align, uint64_t bytes, struct variable **end)
{
	struct variable *v = arena_new(f->arena, struct variable);
	char before[64];

	snprintf(before, sizeof(before), ".%s .align %u .b8 ", space_names[space], align);
	*v = (struct variable){.name = name,
			       .space = space,
			       .type = TYPE_b8,
			       .vector = 1,
			       .align = align,
			       .before = intern_string(&f->module->names, before)};
	edit_resize(f, v, bytes);
	*end = v;
	return v;
}

struct variable *edit_variable(struct function *function, enum space space, const char *name,
			       unsigned align, uint64_t bytes)
{
	struct variable *v = add_variable(function, space, edit_fresh_name(function, name), align,
					  bytes, function->variables_end);

	function->variables_end = &v->next;
	return v;
}

struct variable *edit_parameter_bytes(struct function *function, const char *name, unsigned align,
				      uint64_t bytes)
{
	struct variable **end = &function->params;

	while (*end)
		end = &(*end)->next;
	return add_variable(function, SPACE_PARAM, intern_string(&function->module->names, name),
			    align, bytes, end);
}

void edit_directive(struct function *function, const char *name, unsigned value)
{
	struct directive *d = arena_new(function->arena, struct directive);
	char text[64];

	snprintf(text, sizeof(text), ".%s %u", name, value);
	*d = (struct directive){.name = name,
				.text = intern_string(&function->module->names, text),
				.values = {value},
				.value_count = 1,
				.next = function->directives};
	function->directives = d;
}

struct block *edit_new_block(struct function *function)
{
	struct block *block = arena_new(function->arena, struct block);

	block->number = function->block_count++;
	return block;
}

struct block *edit_block(struct function *function, struct block *after, const char *name)
{
	struct block *block = edit_new_block(function);

	block->label = edit_fresh_name(function, name);
	link_block(function, after, block);
	return block;
}

void edit_guard_like(const struct cursor *cursor, const struct instruction *like)
{
	struct instruction *last = cursor->before ? cursor->before->prev : NULL;

	if (!last)
		return;
	last->guard = like->guard;
	last->guard_negated = like->guard_negated;
}

void edit_remove(struct instruction *i)
{
	*(i->prev ? &i->prev->next : &i->block->first) = i->next;
	*(i->next ? &i->next->prev : &i->block->last) = i->prev;
}

/* @p bar.sync 0;  ->  @!p bra skip; bar.sync 0; skip: */
void edit_unguard(struct function *f, struct instruction *i)
{
	struct cursor behind = cursor_after(f, i), before = cursor_before(f, i);
	struct block *skip = edit_new_block(f);

	cursor_place(&behind, skip);
	edit_code(&before, i->guard_negated ? "@%0 bra %1;" : "@!%0 bra %1;", op_reg(i->guard),
		  op_block(skip));
	i->guard = NULL;
}

struct table *edit_new_table(struct function *function, const char *name, struct block **targets,
			     size_t n)
{
	struct table *table = arena_new(function->arena, struct table);

	*table = (struct table){.name = name, .targets = targets, .target_count = n};
	*function->tables_end = table;
	function->tables_end = &table->next;
	return table;
}
