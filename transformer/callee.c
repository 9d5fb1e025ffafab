/* Each function is read once in a module's life; what it does itself, and whom it calls, is kept
 * with it. What all of those do that can be reached from a call is then a walk over these notes.
 */
#include "callee.h"

#include "edit.h"
#include "parse.h"
#include "pass.h"
#include "scope.h"

#include <errno.h>
#include <string.h>

struct callee {
	int effects; /* its own */
	struct function **callees;
	unsigned count;
	unsigned walk;         /* the last one that came here */
	struct function *next; /* to be looked at in it */
};

/* What the driver provides: no barrier, no look at the block's index. */
static bool is_provided(const char *name)
{
	static const char *const provided[] = {"vprintf", "malloc", "free", "__assertfail"};

	for (size_t k = 0; k < sizeof(provided) / sizeof(provided[0]); k++)
		if (!strcmp(name, provided[k]))
			return true;
	return false;
}

/* A function may be declared before it is defined. */
static struct function *definition(struct function *f)
{
	struct function *g = f->module->functions;

	if (f->has_body || is_provided(f->name))
		return f;
	while (g && !(g->name == f->name && g->has_body))
		g = g->next;
	return g ? g : f;
}

struct function *callee_of(const struct instruction *call)
{
	for (size_t k = 0; k < call->operand_count && k < 2; k++) {
		const struct operand *o = &call->operands[k];
		const struct binding *b = o->kind == OPERAND_SYMBOL ? scope_find(o->text) : NULL;

		if (b && b->kind == BINDING_FUNCTION)
			return definition(b->function);
	}
	return NULL;
}

static int effects_of(const struct function *f)
{
	int effects = 0;

	if (edit_uses_special(f, "%ctaid") || edit_uses_special(f, "%nctaid"))
		effects |= CALLEE_INDEX;
	for (const struct block *b = f->entry; b; b = b->next) {
		for (const struct instruction *i = b->first; i; i = i->next) {
			if (i->mnemonic->op_class == OP_BARRIER)
				effects |= CALLEE_BARRIER;
			if (!strcmp(i->mnemonic->name, "exit"))
				effects |= CALLEE_EXIT;
		}
	}
	return effects | (pass_is_strange(f) ? CALLEE_OTHER : 0);
}

static int note_callees(struct callee *c, const struct function *f, struct arena *arena)
{
	unsigned n = 0;

	for (const struct block *b = f->entry; b; b = b->next)
		for (const struct instruction *i = b->first; i; i = i->next)
			n += i->mnemonic->op_class == OP_CALL;
	c->callees = arena_array(arena, n, sizeof(*c->callees));
	if (!c->callees)
		return -ENOMEM;
	for (const struct block *b = f->entry; b; b = b->next) {
		for (const struct instruction *i = b->first; i; i = i->next) {
			if (i->mnemonic->op_class != OP_CALL)
				continue;
			c->callees[c->count] = callee_of(i);
			if (c->callees[c->count])
				c->count++;
			else
				c->effects |= CALLEE_POINTER;
		}
	}
	return 0;
}

/* Reads a copy of @f, which may be in use itself. */
static int make_notes(struct function *f)
{
	struct module *module = f->module;
	struct diag *outer = module->diag, diag = {0};
	struct function *copy;
	struct arena arena;
	int r = 0;

	if (f->callee)
		return 0;
	f->callee = arena_new(module->arena, struct callee);
	if (!f->callee)
		return -ENOMEM;
	if (!f->has_body) {
		f->callee->effects = is_provided(f->name) ? 0 : CALLEE_FOREIGN;
		return 0;
	}
	arena_init(&arena, module->arena->max);
	copy = parse_copy(f, f->name);
	if (!copy || parse_body(copy, &arena, &diag)) {
		f->callee->effects = CALLEE_FOREIGN;
	} else {
		f->callee->effects = effects_of(copy);
		r = note_callees(f->callee, copy, module->arena);
	}
	module->diag = outer;
	arena_deinit(&arena);
	return r;
}

int callee_effects(struct function *function, int wanted, const char **culprit)
{
	unsigned walk = ++function->module->walks;
	struct function *todo;
	int effects = 0;

	function = definition(function);
	if (make_notes(function))
		return -ENOMEM;
	function->callee->walk = walk;
	function->callee->next = NULL;
	todo = function;
	while (todo) {
		struct function *f = todo;

		todo = f->callee->next;
		if (f->callee->effects & wanted && !effects)
			*culprit = f->name;
		effects |= f->callee->effects & wanted;
		for (unsigned k = 0; k < f->callee->count; k++) {
			struct function *g = f->callee->callees[k];

			if (make_notes(g))
				return -ENOMEM;
			if (g->callee->walk == walk)
				continue;
			g->callee->walk = walk;
			g->callee->next = todo;
			todo = g;
		}
	}
	return effects;
}
