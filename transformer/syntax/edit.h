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
 * Nothing here fails visibly: an error sticks in the module's diag, later edits do nothing useful,
 * and the pipeline looks at the diag behind each pass. What is returned is never NULL.
 */
#pragma once

#include "syntax/ir.h"

/* Code goes in front of @before, or to the end of @block if that is NULL; the cursor then stands
 * behind what it inserted. Inserting something that ends a block splits it, and the cursor goes on
 * in the new block. */
struct cursor {
	struct function *function;
	struct block *block;
	struct instruction *before;
};

struct cursor cursor_before(struct function *function, struct instruction *instruction);
struct cursor cursor_after(struct function *function, struct instruction *instruction);
struct cursor cursor_start(struct function *function, struct block *block);
struct cursor cursor_end(struct function *function, struct block *block); /* behind a branch too */

/* Puts a finished instruction there. */
void cursor_insert(struct cursor *cursor, struct instruction *instruction);
/* Puts a block there: control that reaches the cursor falls into it, and the cursor goes on in it.
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
/* The same, with a name that says what it is for: %weir_NAME_7. */
struct reg *edit_named_register(struct function *function, enum type_id type, const char *name);
/* .shared, .local and so on: @bytes of .b8. */
struct variable *edit_variable(struct function *function, enum space space, const char *name,
			       unsigned align, uint64_t bytes);
/* A parameter behind the others. @name as it is; callers choose one with the module's prefix. */
struct variable *edit_parameter_bytes(struct function *function, const char *name, unsigned align,
				      uint64_t bytes);

/* .NAME VALUE in the head. */
void edit_directive(struct function *function, const char *name, unsigned value);

/* An empty block behind @after (NULL: in front of all; it is the new entry). */
struct block *edit_block(struct function *function, struct block *after, const char *name);
/* The instruction in front of the cursor is executed only where @like is. */
void edit_guard_like(const struct cursor *cursor, const struct instruction *like);
void edit_remove(struct function *function, struct instruction *instruction);

/* Each operand that reads the special register @name ("%ctaid.x") becomes @by. Returns how many.
 * Reads of the whole vector ("%ctaid" in mov.v4) are first taken apart. */
unsigned edit_replace_special(struct function *function, const char *name, struct operand by);
/* Does anything read it, as a whole or a part? @name as above, or "%ctaid" for all parts. */
bool edit_uses_special(const struct function *function, const char *name);

/* What the parser makes a body of. NULL or false: no memory. */
struct reg *edit_new_register(struct function *function, const char *name, enum type_id type,
			      unsigned vector);
struct table *edit_new_table(struct function *function, const char *name, struct block **targets,
			     size_t n);
struct block *edit_new_block(struct function *function); /* not placed yet */
bool edit_declare_group(struct function *function, const char *name, enum type_id type,
			unsigned vector, uint64_t count);
bool edit_declare(struct function *function, const char *text);
/* weir_NAME_7, behind a % if @name has one: no other name of the module. */
const char *edit_fresh_name(struct function *function, const char *name);
