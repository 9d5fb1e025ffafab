/* What names mean while a text is read. The slot of an interned name (intern.h) holds its innermost
 * binding; closing a scope brings the outer ones back.
 */
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

/* A group of registers; each becomes real when it is first named. */
struct reg_group {
	enum type_id type;
	unsigned vector;
	uint64_t count;
	bool printed; /* declared as a group, its registers keep their names */
};

struct binding {
	enum binding_kind kind;
	const char *name; /* in the text */
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
	struct binding *shadowed; /* what the name meant outside */
	struct binding *next;     /* of the scope */
};

struct scope {
	struct scope *outer;
	unsigned depth; /* 0: module, 1: parameters, 2: body, 3..: braces in it */
	struct binding *bindings;
};

#define SCOPE_DEPTH_MAX 64

/* Brings back what the scope's names meant outside. Once only; the bindings can still be read. */
void scope_close(struct scope *scope);

/* NULL: no memory. A binding of the name in the same scope is an error of the caller. */
struct binding *scope_bind(struct scope *scope, struct arena *arena, const char *name,
			   enum binding_kind kind);

struct binding *scope_find(const char *name); /* @name is interned; NULL: it means nothing */
/* The group that declares @name as a member, at the innermost scope, or NULL. */
struct binding *scope_find_group(const struct intern *names, const char *name, size_t len);
