/* Parses each function once per module and caches its effects, including those of all functions
 * that it reaches. Functions whose effects are not known yet are solved together: each effect
 * travels once from a function to each of its callers. */
#include "passes/callee.h"

#include "analysis/warp-mask.h"
#include "analysis/warp-pair.h"
#include "passes/pass.h"
#include "syntax/edit.h"
#include "syntax/parse.h"
#include "syntax/scope.h"

#include <string.h>

struct caller {
	struct callee *callee;
	struct caller *next;
};

struct callee {
	int effects; /* its own; once is_known, also those of its callees */
	const char *culprits[CALLEE_EFFECTS]; /* by effect: the function that causes it */
	struct function **callees;
	unsigned count;
	bool is_known; /* effects are complete */

	/* While effects are being computed. */
	struct caller *callers;
	struct callee *next;
	struct callee *todo; /* next of those whose callers need an update */
	bool is_todo;
};

/* Functions of the driver: they contain no barrier and do not read the block index. */
static bool is_provided(const char *name)
{
	return name_is(name, "vprintf", "malloc", "free", "__assertfail");
}

struct function *callee_of(const struct instruction *call)
{
	for (size_t k = 0; k < call->operand_count && k < 2; k++) {
		const struct operand *o = &call->operands[k];
		const struct binding *b = o->kind == OPERAND_SYMBOL ? scope_find(o->text) : NULL;

		if (b && b->kind == BINDING_FUNCTION)
			return b->function; /* the definition, if the module has one */
	}
	return NULL;
}

bool calls_driver(const struct instruction *i)
{
	const struct function *called = i->mnemonic->op_class == OP_CALL ? callee_of(i) : NULL;

	return called && !called->has_body && name_is(called->name, "malloc", "free", "vprintf");
}

static int effects_of(struct function *f)
{
	struct warp_pairs *pairs;
	struct cfg cfg;
	int effects = 0;

	cfg_build(f, &cfg);
	pairs = warp_pairs_find(f, &cfg);

	if (edit_uses_special(f, "%ctaid") || edit_uses_special(f, "%nctaid") ||
	    edit_uses_special(f, "%clusterid") || edit_uses_special(f, "%nclusterid"))
		effects |= CALLEE_INDEX;
	for (const struct variable *v = f->variables; v; v = v->next)
		if (v->space == SPACE_SHARED)
			effects |= CALLEE_SHARED;
	for_each_instruction (i, f) {
		if (i->mnemonic->op_class == OP_BARRIER)
			effects |= CALLEE_BARRIER;
		if (!strcmp(i->mnemonic->name, "exit"))
			effects |= CALLEE_EXIT;
		if (warp_has_mask(i) && !warp_is_paired(pairs, i))
			effects |= CALLEE_WARP;
		if (i->mnemonic->op_class == OP_CALL && !callee_of(i))
			effects |= CALLEE_POINTER;
	}
	return effects | (pass_has_unsupported(f) ? CALLEE_UNSUPPORTED : 0);
}

static void list_callees(struct callee *c, const struct function *f, struct arena *arena)
{
	unsigned n = 0;

	for_each_instruction (i, f)
		n += i->mnemonic->op_class == OP_CALL;
	c->callees = arena_array(arena, n, sizeof(*c->callees));
	for_each_instruction (i, f) {
		if (i->mnemonic->op_class != OP_CALL)
			continue;
		c->callees[c->count] = callee_of(i);
		c->count += c->callees[c->count] != NULL;
	}
}

struct effects_reader {
	struct callee *callee;
	struct function *f;
	struct arena arena;
};

/* Parses a copy of the function, because the caller may be rewriting the function itself. */
static void read_copy(void *data)
{
	struct effects_reader *r = data;
	struct function *copy = parse_copy(r->f, r->f->name);

	parse_body(copy, &r->arena);
	list_callees(r->callee, copy, r->f->module->arena);
	r->callee->effects = effects_of(copy);
}

static int read_effects(struct callee *callee, struct function *f)
{
	struct diag *diag = f->module->diag;
	struct effects_reader r = {.callee = callee, .f = f};

	if (!f->has_body)
		return is_provided(f->name) ? 0 : CALLEE_EXTERNAL;
	arena_init(&r.arena, f->module->arena->max, diag);
	diag_try(diag, read_copy, &r);
	arena_deinit(&r.arena);
	return diag_take(diag).error ? CALLEE_EXTERNAL : callee->effects;
}

static struct callee *callee_new(struct function *f)
{
	f->callee = arena_new(f->module->arena, struct callee);
	f->callee->effects = read_effects(f->callee, f);
	for (unsigned k = 0; k < CALLEE_EFFECTS; k++)
		f->callee->culprits[k] = f->name;
	return f->callee;
}

/* True: @to has new effects. */
static bool inherit(struct callee *to, const struct callee *from)
{
	int more = from->effects & ~to->effects;

	for (unsigned k = 0; k < CALLEE_EFFECTS; k++)
		if (more & 1 << k)
			to->culprits[k] = from->culprits[k];
	to->effects |= more;
	return more;
}

/* Registers @c as a caller of @f. A function without effects yet is appended to the list. */
static void add_caller(struct callee *c, struct function *f, struct callee ***end)
{
	struct caller *caller;

	if (!f->callee) {
		**end = callee_new(f);
		*end = &(**end)->next;
	}
	if (f->callee->is_known) {
		inherit(c, f->callee);
		return;
	}
	caller = arena_new(f->module->arena, struct caller);
	*caller = (struct caller){c, f->callee->callers};
	f->callee->callers = caller;
}

static void add_todo(struct callee **todo, struct callee *c)
{
	if (c->is_todo)
		return;
	c->is_todo = true;
	c->todo = *todo;
	*todo = c;
}

static void propagate(struct callee *list)
{
	struct callee *todo = NULL;

	for (struct callee *c = list; c; c = c->next)
		add_todo(&todo, c);
	while (todo) {
		struct callee *c = todo;

		todo = c->todo;
		c->is_todo = false;
		for (struct caller *caller = c->callers; caller; caller = caller->next)
			if (inherit(caller->callee, c))
				add_todo(&todo, caller->callee);
	}
	for (struct callee *c = list; c; c = c->next)
		c->is_known = true;
}

/* The complete effects of @f. */
static const struct callee *look_up(struct function *f)
{
	struct callee *list, **end;

	if (f->callee && f->callee->is_known)
		return f->callee;
	list = callee_new(f);
	end = &list->next;
	for (struct callee *c = list; c; c = c->next)
		for (unsigned k = 0; k < c->count; k++)
			add_caller(c, c->callees[k], &end);
	propagate(list);
	return f->callee;
}

/* A call through a pointer may reach any function of the module. */
static const struct callee *any_callee(struct module *module)
{
	struct callee *all = module->any_callee;

	if (all)
		return all;
	all = arena_new(module->arena, struct callee);
	for (struct function *f = module->functions; f; f = f->next)
		if (!f->is_kernel)
			inherit(all, look_up(scope_find(f->name)->function));
	module->any_callee = all;
	return all;
}

void callee_refuse(struct rewrite *rewrite, const struct instruction *call,
		   enum callee_effect effect, const char *what, const char *why)
{
	struct module *module = rewrite->function->module;
	struct function *f = callee_of(call);
	const struct callee *c = f ? look_up(f) : any_callee(module);

	if (!(c->effects & effect) && c->effects & CALLEE_POINTER)
		c = any_callee(module);
	if (c->effects & effect)
		pass_refuse(rewrite, call->at, "%s %.80s, which %s", what,
			    c->culprits[__builtin_ctz(effect)], why);
}
