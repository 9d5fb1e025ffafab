/* Which variables in shared and local memory a save holds: the kernel's own, those that it names,
 * and all that somebody who is called may use.
 */
#include "passes/callee.h"
#include "passes/save/save.h"
#include "passes/exit-barrier.h"

#include <errno.h>

struct search {
	struct variable_set *set;
	const struct rewrite *rewrite;
	bool calls;
};

static void add(struct variable_set *set, struct variable *v)
{
	if (v->space != SPACE_SHARED && v->space != SPACE_LOCAL)
		return;
	if (!v->size) {
		if (!set->dynamic || variable_align(set->dynamic) < variable_align(v))
			set->dynamic = v;
		return;
	}
	for (unsigned k = 0; k < set->n && k < SAVE_VARIABLES_MAX; k++)
		if (set->list[k] == v)
			return;
	if (set->n < SAVE_VARIABLES_MAX)
		set->list[set->n] = v;
	set->n++;
}

/* What the passes use while threads leave is not the kernel's. */
static void find(struct search *s, struct variable *v)
{
	if (v != s->rewrite->safe->watch && v != s->rewrite->votes->told)
		add(s->set, v);
}

static void find_named(struct search *s, const struct operand *operand)
{
	switch (operand->kind) {
	case OPERAND_VARIABLE:
		find(s, operand->variable);
		return;
	case OPERAND_ADDRESS:
	case OPERAND_VECTOR:
	case OPERAND_LIST:
	case OPERAND_PAIR:
		for (size_t k = 0; k < operand->item_count; k++)
			find_named(s, &operand->items[k]);
		return;
	default:
		return;
	}
}

/* Whoever is called may use any variable of the module; in one of the kernel's own, those that came
 * with it. They are looked for once, not for each kernel. NULL: no memory. */
static const struct variable_set *callees_variables(const struct rewrite *rewrite)
{
	struct module *module = rewrite->function->module;
	struct variable_set *set = module->callees_variables;

	if (set)
		return set;
	set = arena_new(module->arena, struct variable_set);
	for (struct variable *v = module->variables; v && set; v = v->next)
		if (!rewrite->detached || v->symbol)
			add(set, v);
	module->callees_variables = set;
	return set;
}

static int add_callees(struct variable_set *set, const struct rewrite *rewrite)
{
	const struct variable_set *theirs = callees_variables(rewrite);

	if (!theirs)
		return -ENOMEM;
	for (unsigned k = 0; k < theirs->n && k < SAVE_VARIABLES_MAX; k++)
		add(set, theirs->list[k]);
	if (theirs->n > SAVE_VARIABLES_MAX)
		set->n = theirs->n;
	if (theirs->dynamic)
		add(set, theirs->dynamic);
	return 0;
}

/* What a function declares cannot be named from here. */
static int check_call(struct rewrite *rewrite, const struct instruction *call)
{
	const char *culprit = "";
	int r = callee_has(call, rewrite->function->module, CALLEE_SHARED, &culprit);

	if (r > 0)
		return pass_refuse(rewrite, call->at,
				   "calls %.80s, which has shared memory of its own, to be saved",
				   culprit);
	return r;
}

int save_find_variables(struct variable_set *set, struct rewrite *rewrite)
{
	const struct function *f = rewrite->function;
	struct search s = {set, rewrite, false};
	int r = 0;

	for (struct variable *v = f->variables; v; v = v->next)
		find(&s, v);
	for (const struct block *b = f->entry; b && !r; b = b->next) {
		for (const struct instruction *i = b->first; i && !r; i = i->next) {
			if (i->mnemonic->op_class == OP_CALL) {
				s.calls = true;
				r = check_call(rewrite, i);
			}
			for (size_t k = 0; k < i->operand_count; k++)
				find_named(&s, &i->operands[k]);
		}
	}
	return !r && s.calls ? add_callees(set, rewrite) : r;
}
