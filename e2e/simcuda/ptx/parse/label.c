/* Labels and lists of labels. A label may be used before its definition: uses are resolved at the
 * function's end. */
#include "simcuda/ptx/parse/parse.h"

static int parse_targets(struct ptx_parser *p, const struct ptx_token *name)
{
	struct ptx_symbol *symbol = ptx_declare(p, p->scope, name, PTX_SYMBOL_TARGETS);
	struct ptx_target_list *list = ptx_arena_take(&p->local, sizeof(*list));

	if (!symbol || !list)
		return ptx_no_memory(p);
	list->last = &list->names;
	list->scope = p->scope;
	symbol->list = list;
	do {
		struct ptx_target_name *target = ptx_arena_take(&p->local, sizeof(*target));
		if (!target)
			return ptx_no_memory(p);
		if (p->token.kind != PTX_TOKEN_WORD)
			return ptx_fail(p, "expected a label, found %.*s", PTX_SHOW(&p->token));
		target->name = p->token;
		*list->last = target;
		list->last = &target->next;
		list->n++;
		ptx_advance(p);
	} while (ptx_accept(p, ","));
	return ptx_expect(p, ";");
}

/* name: at the name. The word after the colon tells what kind of name it is. */
int ptx_parse_label(struct ptx_parser *p)
{
	struct ptx_token name = p->token;

	ptx_advance(p);
	ptx_advance(p);
	if (ptx_at_dot(p, "branchtargets")) {
		ptx_advance(p);
		return parse_targets(p, &name);
	}
	if (ptx_at_dot(p, "callprototype") || ptx_at_dot(p, "calltargets")) {
		if (!ptx_declare(p, p->scope, &name, PTX_SYMBOL_PROTOTYPE))
			return p->result;
		return ptx_skip_statement(p);
	}
	struct ptx_symbol *symbol = ptx_declare(p, p->scope, &name, PTX_SYMBOL_LABEL);
	if (symbol)
		symbol->pc = (uint32_t)p->module->n_code;
	return p->result;
}

static int find_pc(struct ptx_parser *p, struct ptx_scope *scope, const struct ptx_token *name,
		   uint32_t *out)
{
	struct ptx_symbol *symbol = ptx_lookup(p, scope, name);

	if (!symbol || symbol->kind != PTX_SYMBOL_LABEL)
		return ptx_fail_at(p, name, "there is no label %.*s", PTX_SHOW(name));
	*out = symbol->pc;
	return 0;
}

static int resolve_targets(struct ptx_parser *p, const struct ptx_pending *pending)
{
	struct ptx_symbol *symbol = ptx_lookup(p, pending->scope, &pending->name);

	if (!symbol || symbol->kind != PTX_SYMBOL_TARGETS)
		return ptx_fail_at(p, &pending->name, "there is no list of labels %.*s",
				   PTX_SHOW(&pending->name));
	struct ptx_targets *targets = ptx_arena_take(
		&p->module->arena, sizeof(*targets) + symbol->list->n * sizeof(targets->pc[0]));
	if (!targets)
		return ptx_no_memory(p);
	for (struct ptx_target_name *t = symbol->list->names; t; t = t->next)
		if (find_pc(p, symbol->list->scope, &t->name, &targets->pc[targets->n++]))
			return p->result;
	p->module->code[pending->insn].targets = targets;
	return 0;
}

int ptx_resolve_labels(struct ptx_parser *p)
{
	for (struct ptx_pending *pending = p->pending; pending; pending = pending->next) {
		uint32_t pc = 0;
		if (pending->is_list) {
			if (resolve_targets(p, pending))
				return p->result;
		} else if (find_pc(p, pending->scope, &pending->name, &pc)) {
			return p->result;
		} else {
			p->module->code[pending->insn].imm = pc;
		}
	}
	p->pending = NULL;
	return 0;
}
