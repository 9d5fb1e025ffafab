#include "syntax/scope.h"

#include "syntax/lex.h"

#include <string.h>

void scope_close(struct scope *scope)
{
	for (struct binding *b = scope->bindings; b; b = b->next)
		*intern_slot(b->name) = b->shadowed;
}

struct binding *scope_bind(struct scope *scope, struct arena *arena, const char *name,
			   enum binding_kind kind)
{
	struct binding *b = arena_new(arena, struct binding);

	*b = (struct binding){.kind = kind,
			      .name = name,
			      .scope = scope,
			      .shadowed = scope_find(name),
			      .next = scope->bindings};
	scope->bindings = b;
	*intern_slot(name) = b;
	return b;
}

struct binding *scope_find(const char *name)
{
	return *intern_slot(name);
}

/* %r12 may be member 12 of %r<N> or member 2 of %r1<N>. */
struct binding *scope_find_group(const struct intern *names, const char *name, size_t len)
{
	struct binding *best = NULL;

	for (size_t stem = len; stem > 1 && len - stem < 10; stem--) {
		const char *known;
		struct binding *b;
		uint64_t number;

		if (name[stem - 1] < '0' || name[stem - 1] > '9')
			break;
		if (name[stem - 1] == '0' && stem < len)
			continue; /* %r07 is no member */
		known = intern_find(names, name, stem - 1);
		b = known ? scope_find(known) : NULL;
		if (!b || b->kind != BINDING_GROUP ||
		    (best && best->scope->depth >= b->scope->depth))
			continue;
		if (token_integer(name + stem - 1, len - stem + 1, &number) &&
		    number < b->group->count)
			best = b;
	}
	return best;
}
