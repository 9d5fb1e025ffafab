/* The meaning of names during parsing. An interned name's slot (intern.h) holds its innermost
 * binding. Closing a scope restores the outer bindings. */
#pragma once

#include "syntax/ir.h"

enum binding_kind {
	BINDING_REGISTER,
	BINDING_GROUP, /* .reg .b32 %r<N>: bound to the stem */
	BINDING_VARIABLE,
	BINDING_FUNCTION,
	BINDING_LABEL,
	BINDING_TABLE,
	BINDING_PROTOTYPE,
};

/* A group of registers. A member becomes a register when it is first named. */
struct reg_group {
	enum type_id type;
	unsigned vector;
	uint64_t count;
	bool printed; /* declared as a group, so members keep their names */
};

struct binding {
	enum binding_kind kind;
	const char *name; /* in the PTX text */
	union {
		struct reg *reg;
		struct reg_group *group;
		struct variable *variable;
		struct function *function;
		struct block *block;
		struct table *table;
		const char *text; /* PROTOTYPE: its name in the IR */
	};
	struct scope *scope;
	struct binding *shadowed; /* binding of the outer scope */
	struct binding *next;     /* of the scope */
};

struct scope {
	struct scope *outer;
	unsigned depth; /* 0: module, 1: parameters, 2: body, 3..: braces in it */
	struct binding *bindings;
};

#define SCOPE_DEPTH_MAX 64

/* Restores the outer bindings. Call once; the scope's own bindings stay readable. */
void scope_close(struct scope *scope);

/* The name must not be bound in this scope yet. */
struct binding *scope_bind(struct scope *scope, struct arena *arena, const char *name,
			   enum binding_kind kind);

struct binding *scope_find(const char *name); /* @name is interned; NULL: not bound */
/* The group in the innermost scope that declares @name as a member, or NULL. */
struct binding *scope_find_group(const struct intern *names, const char *name, size_t len);
