/* Decoders of branches, calls and barriers. */
#include "simcuda/ptx/decode/decode.h"

#include "simcuda/ptx/execute/executors.h"
#include "simcuda/ptx/execute/sync.h"
#include "simcuda/ptx/execute/warp.h"

#define ARGUMENTS_MAX 255
#define COUNT(array)  (sizeof(array) / sizeof((array)[0]))

/* No operand, `.uni` at most. */
static int decode_bare(struct ptx_parser *p, struct ptx_statement *s, ptx_exec *exec)
{
	struct ptx_insn insn = {.exec = exec};
	int r;

	ptx_take(s, "uni");
	if ((r = ptx_no_more(p, s)) || (r = ptx_want(p, s, 0, 0)))
		return r;
	return ptx_emit(p, s, &insn);
}

int ptx_decode_ret(struct ptx_parser *p, struct ptx_statement *s)
{
	return decode_bare(p, s, ptx_exec_ret);
}

int ptx_decode_exit(struct ptx_parser *p, struct ptx_statement *s)
{
	return decode_bare(p, s, ptx_exec_exit);
}

int ptx_decode_trap(struct ptx_parser *p, struct ptx_statement *s)
{
	return decode_bare(p, s, ptx_exec_trap);
}

int ptx_decode_griddepcontrol(struct ptx_parser *p, struct ptx_statement *s)
{
	if (ptx_take(s, "launch_dependents"))
		return decode_bare(p, s, ptx_exec_permit);
	if (ptx_take(s, "wait"))
		return decode_bare(p, s, ptx_exec_await_grids);
	return ptx_unknown(p, &s->opcode, "this form of griddepcontrol");
}

/* Hints to caches. */
int ptx_decode_hint(struct ptx_parser *p, struct ptx_statement *s)
{
	struct ptx_insn insn = {.exec = ptx_exec_nothing};

	return ptx_emit(p, s, &insn);
}

/* Only a name, not a symbol: labels have scopes of their own. */
static int decode_jump(struct ptx_parser *p, struct ptx_statement *s, uint32_t at, ptx_exec *exec,
		       bool is_list)
{
	struct ptx_insn insn = {.exec = exec};
	int r;

	ptx_take(s, "uni");
	if ((r = ptx_no_more(p, s)) || (r = ptx_want(p, s, at + 1, at + 1)))
		return r;
	if (at && (r = ptx_source(p, s, &s->operands[0], PTX_u32, &insn.op[0])))
		return r;
	if (s->operands[at].kind != PTX_OPERAND_NAME)
		return ptx_fail_at(p, &s->opcode, "operand %.*s of %.*s is no label",
				   PTX_SHOW(&s->operands[at].token), PTX_SHOW(&s->opcode));
	r = ptx_emit(p, s, &insn);
	return r ? r : ptx_pend(p, &s->operands[at].token, is_list);
}

int ptx_decode_bra(struct ptx_parser *p, struct ptx_statement *s)
{
	return decode_jump(p, s, 0, ptx_exec_bra, false);
}

int ptx_decode_brx(struct ptx_parser *p, struct ptx_statement *s)
{
	if (!ptx_take(s, "idx"))
		return ptx_unknown(p, &s->opcode, "this form of brx");
	return decode_jump(p, s, 1, ptx_exec_brx, true);
}

/* ( a, b ): arguments of a call, up to the closing parenthesis. */
static int parse_arguments(struct ptx_parser *p, struct ptx_statement *s,
			   const struct ptx_argument **out, uint8_t *n)
{
	struct ptx_argument list[ARGUMENTS_MAX];

	*n = 0;
	while (!ptx_accept(p, ")")) {
		struct ptx_symbol *symbol =
			p->token.kind == PTX_TOKEN_WORD ? ptx_lookup(p, p->scope, &p->token) : NULL;
		if (p->result)
			return p->result;
		if (*n == ARGUMENTS_MAX || !symbol)
			return ptx_unknown(p, &p->token, "this argument of call: %.*s",
					   PTX_SHOW(&p->token));
		struct ptx_argument *argument = &list[(*n)++];
		if (symbol->kind == PTX_SYMBOL_REGISTER && symbol->bytes)
			*argument = (struct ptx_argument){symbol->row, symbol->bytes, true};
		else if (symbol->kind == PTX_SYMBOL_VARIABLE &&
			 symbol->variable->space == PTX_SPACE_LOCAL)
			*argument = (struct ptx_argument){(uint32_t)symbol->variable->offset,
							  (uint32_t)symbol->variable->size, false};
		else
			return ptx_unknown(p, &p->token, "this argument of call: %.*s",
					   PTX_SHOW(&p->token));
		ptx_advance(p);
		if (!ptx_accept(p, ",") && !ptx_at_mark(p, ")"))
			return ptx_expect(p, ")");
	}
	struct ptx_argument *copy = ptx_arena_take(&p->module->arena, (*n + 1u) * sizeof(*copy));
	if (!copy)
		return ptx_no_memory(p);
	memcpy(copy, list, *n * sizeof(*copy));
	*out = copy;
	(void)s;
	return p->result;
}

static int parse_target(struct ptx_parser *p, struct ptx_statement *s, struct ptx_call *call,
			struct ptx_insn *insn)
{
	struct ptx_symbol *symbol =
		p->token.kind == PTX_TOKEN_WORD ? ptx_lookup(p, p->scope, &p->token) : NULL;

	if (symbol && symbol->kind == PTX_SYMBOL_FUNCTION && !symbol->function->is_kernel) {
		call->function = symbol->function;
	} else if (symbol && symbol->kind == PTX_SYMBOL_REGISTER && symbol->bytes == 8) {
		insn->op[0] = symbol->row;
		p->function->calls_by_address = true;
	} else {
		return ptx_fail(p, "%.*s cannot be called", PTX_SHOW(&p->token));
	}
	ptx_advance(p);
	(void)s;
	return p->result;
}

static int add_callee(struct ptx_parser *p, struct ptx_function *function)
{
	struct ptx_callee *callee = ptx_arena_take(&p->module->arena, sizeof(*callee));

	if (!callee)
		return ptx_no_memory(p);
	callee->function = function;
	callee->next = p->function->callees;
	p->function->callees = callee;
	return 0;
}

/* call{.uni} {(results),} target {, (arguments)} {, prototype or targets}; parses its own operands.
 */
int ptx_decode_call(struct ptx_parser *p, struct ptx_statement *s)
{
	struct ptx_call *call = ptx_arena_take(&p->module->arena, sizeof(*call));
	struct ptx_insn insn = {.exec = ptx_exec_call, .call = call};
	int r;

	if (!call)
		return ptx_no_memory(p);
	ptx_take(s, "uni");
	if ((r = ptx_no_more(p, s)))
		return r;
	if (ptx_accept(p, "(") && ((r = parse_arguments(p, s, &call->results, &call->n_results)) ||
				   (r = ptx_expect(p, ","))))
		return r;
	if ((r = parse_target(p, s, call, &insn)))
		return r;
	if (ptx_accept(p, ",") && ptx_accept(p, "(") &&
	    (r = parse_arguments(p, s, &call->arguments, &call->n_arguments)))
		return r;
	/* The prototype says what the call says. */
	if (!ptx_at_mark(p, ";")) {
		ptx_accept(p, ",");
		if (p->token.kind != PTX_TOKEN_WORD)
			return ptx_fail(p, "expected a prototype, found %.*s", PTX_SHOW(&p->token));
		ptx_advance(p);
	}
	if (call->function && (r = add_callee(p, call->function)))
		return r;
	return ptx_emit(p, s, &insn);
}

/* bar.sync, barrier{.cta}.sync{.aligned}, .arrive, .red; bar.warp.sync. op: barrier, count, result,
 * predicate. */
static int decode_reduction(struct ptx_parser *p, struct ptx_statement *s, struct ptx_insn *insn)
{
	static const char *const words[] = {"popc", "and", "or"};
	static const uint8_t variants[] = {PTX_BARRIER_POPC, PTX_BARRIER_AND, PTX_BARRIER_OR};
	size_t k = ptx_take_one_of(s, words, COUNT(words));
	bool negated;
	int r;

	if (k == COUNT(words) || !ptx_take(s, k == 0 ? "u32" : "pred"))
		return ptx_unknown(p, &s->opcode, "this reduction at a barrier");
	insn->sync.variant = variants[k];
	if ((r = ptx_no_more(p, s)) || (r = ptx_want(p, s, 3, 4)) ||
	    (r = ptx_destination(p, s, &s->operands[0], k == 0 ? 4 : 0, &insn->op[2])) ||
	    (r = ptx_source(p, s, &s->operands[1], PTX_u32, &insn->op[0])) ||
	    (r = ptx_predicate(p, s, &s->operands[s->n - 1], &insn->op[3], &negated)))
		return r;
	insn->sync.negated = negated;
	insn->sync.count = s->n == 4;
	if (s->n == 4 && (r = ptx_source(p, s, &s->operands[2], PTX_u32, &insn->op[1])))
		return r;
	return ptx_emit(p, s, insn);
}

static int decode_warp_barrier(struct ptx_parser *p, struct ptx_statement *s)
{
	struct ptx_insn insn = {.exec = ptx_exec_sync, .sync = {.kind = PTX_SYNC_BARRIER}};
	int r;

	if (!ptx_take(s, "sync"))
		return ptx_unknown(p, &s->opcode, "this form of bar.warp");
	if ((r = ptx_no_more(p, s)) || (r = ptx_want(p, s, 1, 1)) ||
	    (r = ptx_source(p, s, &s->operands[0], PTX_b32, &insn.op[PTX_SYNC_MEMBERS])))
		return r;
	return ptx_emit(p, s, &insn);
}

int ptx_decode_barrier(struct ptx_parser *p, struct ptx_statement *s)
{
	struct ptx_insn insn = {.exec = ptx_exec_barrier};
	int r;

	if (ptx_take(s, "warp"))
		return decode_warp_barrier(p, s);
	ptx_take(s, "cta");
	ptx_take(s, "aligned");
	if (ptx_take(s, "red"))
		return decode_reduction(p, s, &insn);
	if (ptx_take(s, "arrive"))
		insn.sync.variant = PTX_BARRIER_ARRIVE;
	else if (ptx_take(s, "sync"))
		insn.sync.variant = PTX_BARRIER_SYNC;
	else
		return ptx_unknown(p, &s->opcode, "this form of %.*s", PTX_SHOW(&s->opcode));
	insn.sync.count = s->n == 2;
	uint32_t least = insn.sync.variant == PTX_BARRIER_ARRIVE ? 2 : 1;
	if ((r = ptx_no_more(p, s)) || (r = ptx_want(p, s, least, 2)) ||
	    (r = ptx_source(p, s, &s->operands[0], PTX_u32, &insn.op[0])))
		return r;
	if (s->n == 2 && (r = ptx_source(p, s, &s->operands[1], PTX_u32, &insn.op[1])))
		return r;
	return ptx_emit(p, s, &insn);
}
