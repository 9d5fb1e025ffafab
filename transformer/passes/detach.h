/* What a kernel takes along into a module of its own, and what it reaches from there by address.
 *
 * Functions that it calls go with it, callees of callees included, and so do shared memory and the
 * compiler's own read-only tables. Variables in global memory stay where they are: their addresses
 * stand behind the hidden struct (symbols.c). Variables in constant memory have a copy that
 * the launcher fills. Functions have no hidden parameter, so those that use such variables, and
 * pointers to functions, keep a kernel where it is.
 */
#pragma once

#include "syntax/ir.h"
#include "syntax/text.h"

enum symbol_kind {
	SYMBOL_ADDRESS, /* comes by address, in the order of the list */
	SYMBOL_COPY,    /* has a copy for the launcher to fill */
	SYMBOL_KEPT,    /* is declared in both modules alike */
};

struct symbol {
	enum symbol_kind kind;
	unsigned index; /* in its list */
	const struct variable *variable;
	struct variable *copy; /* COPY: in the new module */
	struct symbol *next;
};

struct symbol_list {
	struct symbol *first, **end;
	unsigned count;
};

struct detached {
	struct module *module; /* the program's */
	struct arena arena;
	struct symbol_list addresses, copies, kept;
	struct function *functions, **functions_end; /* copies, with bodies that have been read */
	struct diag refusal;                         /* why the kernel has to stay */
	bool know_stores;                            /* variables have is_stored */
};

/* Looks at the kernel; at most one for each module. 0 or -ENOMEM; a kernel that has to stay is no
 * error. To be deinitialised in any case, behind the last use of the module. */
int detach_init(struct detached *detached, struct function *kernel);
void detach_deinit(struct detached *detached);

/* All of the new module but the kernel. */
void detach_print(struct text *out, const struct detached *detached);

/* What is added to the address of a variable named outside of brackets; false: not understood. */
bool symbol_offset(const struct operand *operand, uint64_t *offset);

/* Takes out what says where code came from: the new module has no names of files. */
void detach_strip(struct function *function);
