/* Changing a function that has been read.
 *
 * Code is written as PTX: a template names its operands %0, %1 ... and may declare registers and
 * labels of its own inside braces, which become new ones each time:
 *
 *	struct reg *ticket = edit_register(f, TYPE_b32);
 *	struct cursor at = cursor_before(i);
 *	edit_code(&at, "{ .reg .pred %closed;"
 *		       "  atom.global.add.u32 %0, [%1+8], %2;"
 *		       "  setp.lt.s32 %closed, %0, 0;"
 *		       "  @%closed bra %3; }",
 *		  op_reg(ticket), op_reg(base), op_int(1), op_block(leave));
 *
 * An error stops the pass (diag.h), so nothing that is returned is NULL.
 */
#pragma once

#include "syntax/ir.h"

/* New code goes in front of @before, or to the end of @block if @before is NULL. The cursor then
 * stands behind the new code. Inserting an instruction that ends a block splits the block, and the
 * cursor continues in the new one. */
struct cursor {
	struct function *function;
	struct block *block;
	struct instruction *before;
};

struct cursor cursor_before(struct function *function, struct instruction *instruction);
struct cursor cursor_after(struct function *function, struct instruction *instruction);
struct cursor cursor_start(struct function *function, struct block *block);
struct cursor cursor_end(struct function *function,
			 struct block *block); /* behind its branch, if it has one */

/* Inserts a finished instruction. */
void cursor_insert(struct cursor *cursor, struct instruction *instruction);
/* Inserts a block. Control that reaches the cursor falls into it, and the cursor continues in it.
 */
void cursor_place(struct cursor *cursor, struct block *block);

struct operand op_reg(struct reg *reg);
struct operand op_int(uint64_t value);
struct operand op_block(struct block *block);
struct operand op_variable(struct variable *variable);
struct operand op_special(struct function *function, const char *name); /* "%tid.x" */

/* Inserts one or more statements. */
#define edit_code(cursor, ptx, ...)                                            \
	edit_code_operands(                                                    \
		cursor, ptx, (const struct operand[]){{0}, ##__VA_ARGS__} + 1, \
		sizeof((const struct operand[]){{0}, ##__VA_ARGS__}) / sizeof(struct operand) - 1)
void edit_code_operands(struct cursor *cursor, const char *ptx, const struct operand *operands,
			size_t n);

struct reg *edit_register(struct function *function, enum type_id type);
/* A register named %weir_NAME_7. */
struct reg *edit_named_register(struct function *function, enum type_id type, const char *name);
/* A variable of @bytes .b8 in .shared, .local etc. */
struct variable *edit_variable(struct function *function, enum space space, const char *name,
			       unsigned align, uint64_t bytes);
/* Changes the size of a variable that edit_variable() made. */
void edit_resize(struct function *function, struct variable *variable, uint64_t bytes);
/* Appends a parameter. @name is used as it is: the caller chooses one with the module's prefix. */
struct variable *edit_parameter_bytes(struct function *function, const char *name, unsigned align,
				      uint64_t bytes);

/* Adds `.NAME VALUE` to the function's head. */
void edit_directive(struct function *function, const char *name, unsigned value);

/* An empty block behind @after. NULL: in front of all others, as the new entry. */
struct block *edit_block(struct function *function, struct block *after, const char *name);
/* An empty block for cursor_place(). */
struct block *edit_new_block(struct function *function);
/* Gives the instruction in front of the cursor the guard of @like. */
void edit_guard_like(const struct cursor *cursor, const struct instruction *like);
void edit_remove(struct instruction *instruction);
/* Replaces the guard of an instruction that ends no block by a branch around it. */
void edit_unguard(struct function *function, struct instruction *instruction);

/* Replaces each read of the special register @name ("%ctaid.x") by @by and returns their number.
 * Reads of the whole vector ("%ctaid" in mov.v4) are first split into parts. */
unsigned edit_replace_special(struct function *function, const char *name, struct operand by);
/* Whether any instruction reads @name, as a whole or in part. "%ctaid" means any part of it. */
bool edit_uses_special(const struct function *function, const char *name);

/* For the parser. */
struct reg *edit_new_register(struct function *function, const char *name, enum type_id type,
			      unsigned vector);
struct table *edit_new_table(struct function *function, const char *name, struct block **targets,
			     size_t n);
void edit_declare_group(struct function *function, const char *name, enum type_id type,
			unsigned vector, uint64_t count);
void edit_declare(struct function *function, const char *text);
/* A name that is unique in the module: weir_NAME_7, with a leading % if @name has one. */
const char *edit_fresh_name(struct function *function, const char *name);
