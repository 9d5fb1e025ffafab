/* Moves a kernel into a module of its own ("detached"): what it takes along, and what it reaches by
 * address.
 *
 * The kernel takes along the functions that it calls, shared memory, and the compiler's read-only
 * tables. Variables in global memory stay in the program's module; their addresses follow the
 * hidden struct (symbols.c). A variable in constant memory has a copy that the launcher fills. A
 * called function has no hidden parameter. So a kernel whose functions use such variables cannot be
 * detached, nor can one that uses pointers to functions. */
#pragma once

#include "syntax/ir.h"
#include "syntax/text.h"

enum symbol_kind {
	SYMBOL_ADDRESS, /* the launcher passes its address, in the order of the list */
	SYMBOL_COPY,    /* has a copy, which the launcher fills */
	SYMBOL_KEPT,    /* declared in both modules */
};

struct symbol {
	enum symbol_kind kind;
	unsigned index; /* in its list */
	const struct variable *variable;
	struct variable *copy; /* SYMBOL_COPY: in the new module */
	struct symbol *next;
};

struct symbol_list {
	struct symbol *first, **end;
	unsigned count;
};

struct detached {
	struct module *module; /* the program's module */
	struct function *kernel;
	struct arena arena;
	struct symbol_list addresses, copies, kept;
	struct function *functions, **functions_end; /* copies with parsed bodies */
	struct diag refusal;                         /* why the kernel cannot be detached */
	bool know_stores;                            /* is_stored of the variables is valid */
};

/* Examines the kernel. At most once per module. Stops with -ENOMEM (diag.h); the refusal of a
 * kernel is no error. Always call detach_deinit(), after the last use of the module. */
void detach_init(struct detached *detached, struct function *kernel);
void detach_deinit(struct detached *detached);

/* Prints the new module without the kernel. */
void detach_print(struct text *out, const struct detached *detached);

/* The constant that is added to a variable's address outside of brackets. False: not understood. */
bool symbol_offset(const struct operand *operand, uint64_t *offset);

/* Removes .loc, because the new module has no .file. */
void detach_strip(struct function *function);
