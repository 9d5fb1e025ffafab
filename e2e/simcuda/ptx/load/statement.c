/* Parses statements: guard, opcode, modifiers, operands. Decoders give them a meaning. */
#include "simcuda/ptx/decode/decode.h"

#include <errno.h>
#include <string.h>

static int parse_operand(struct ptx_parser *p, struct ptx_statement *s, struct ptx_operand *out);

static int odd_operand(struct ptx_parser *p)
{
	return ptx_unknown(p, &p->token, "an operand that is not known, at %.*s",
			   PTX_SHOW(&p->token));
}

static struct ptx_operand *take_operands(struct ptx_parser *p, struct ptx_statement *s, uint32_t n)
{
	if (s->n_pool + n > sizeof(s->pool) / sizeof(s->pool[0])) {
		odd_operand(p);
		return NULL;
	}
	s->n_pool += n;
	return &s->pool[s->n_pool - n];
}

static int parse_name(struct ptx_parser *p, struct ptx_operand *out)
{
	out->token = p->token;
	if (ptx_token_is(&p->token, PTX_TOKEN_WORD, "_")) {
		out->kind = PTX_OPERAND_SINK;
		ptx_advance(p);
		return p->result;
	}
	out->symbol = ptx_lookup(p, p->scope, &p->token);
	if (p->result)
		return p->result;
	ptx_advance(p);
	if (!out->symbol) {
		out->kind = PTX_OPERAND_NAME;
		return p->result;
	}
	switch (out->symbol->kind) {
	case PTX_SYMBOL_REGISTER:
	case PTX_SYMBOL_SPECIAL:
		out->kind = PTX_OPERAND_REGISTER;
		break;
	case PTX_SYMBOL_VARIABLE:
		out->kind = PTX_OPERAND_VARIABLE;
		break;
	case PTX_SYMBOL_FUNCTION:
		out->kind = PTX_OPERAND_FUNCTION;
		break;
	default:
		out->kind = PTX_OPERAND_NAME;
		break;
	}
	if (out->kind == PTX_OPERAND_VARIABLE && (ptx_at_mark(p, "+") || ptx_at_mark(p, "-")))
		return ptx_parse_integer(p, (uint64_t *)&out->addend);
	return p->result;
}

/* Room for as many elements again. NULL: no memory, or too many. */
static struct ptx_operand *more_elements(struct ptx_parser *p, const struct ptx_operand *elements,
					 uint32_t n)
{
	struct ptx_operand *more =
		n < PTX_MATRIX_MAX ? ptx_arena_take(&p->local, 2 * n * sizeof(*more)) : NULL;

	if (more)
		memcpy(more, elements, n * sizeof(*more));
	else if (n < PTX_MATRIX_MAX)
		ptx_no_memory(p);
	else
		odd_operand(p);
	return more;
}

/* {a, b, ...} */
static int parse_elements(struct ptx_parser *p, struct ptx_statement *s, struct ptx_operand *out)
{
	uint32_t room = PTX_VECTOR_MAX;

	out->elements = take_operands(p, s, room);
	if (!out->elements)
		return -ENOTSUP;
	ptx_advance(p);
	do {
		if (ptx_at_mark(p, "{") || ptx_at_mark(p, "["))
			return odd_operand(p);
		if (out->n_elements == room) {
			out->elements = more_elements(p, out->elements, room);
			room *= 2;
		}
		if (!out->elements)
			return p->result ? p->result : -ENOTSUP;
		int r = parse_operand(p, s, &out->elements[out->n_elements++]);
		if (r)
			return r;
	} while (ptx_accept(p, ","));
	return ptx_expect(p, "}");
}

static int parse_vector(struct ptx_parser *p, struct ptx_statement *s, struct ptx_operand *out)
{
	out->kind = PTX_OPERAND_VECTOR;
	out->token = p->token;
	return parse_elements(p, s, out);
}

static int parse_address(struct ptx_parser *p, struct ptx_statement *s, struct ptx_operand *out)
{
	struct ptx_operand base = {0};

	ptx_advance(p);
	out->token = p->token;
	if (p->token.kind == PTX_TOKEN_WORD) {
		if (parse_name(p, &base))
			return p->result;
		if (base.kind == PTX_OPERAND_NAME)
			return ptx_fail_at(p, &base.token, "%.*s is not declared",
					   PTX_SHOW(&base.token));
		if (!base.symbol || base.kind == PTX_OPERAND_FUNCTION)
			return odd_operand(p);
		out->addend = base.addend;
		if (base.kind == PTX_OPERAND_REGISTER &&
		    (ptx_at_mark(p, "+") || ptx_at_mark(p, "-")) &&
		    ptx_parse_integer(p, (uint64_t *)&out->addend))
			return p->result;
	} else if (ptx_parse_integer(p, (uint64_t *)&out->addend)) {
		return p->result;
	}
	out->kind = PTX_OPERAND_ADDRESS;
	out->symbol = base.symbol;
	if (ptx_accept(p, ",")) {
		int r = ptx_at_mark(p, "{") ? parse_elements(p, s, out) : odd_operand(p);
		if (r)
			return r;
	}
	if (!ptx_at_mark(p, "]") && p->token.kind != PTX_TOKEN_END)
		return odd_operand(p);
	return ptx_expect(p, "]");
}

static int parse_literal(struct ptx_parser *p, struct ptx_operand *out)
{
	bool negative = ptx_at_mark(p, "-") &&
			(p->next.kind == PTX_TOKEN_FLOAT || p->next.kind == PTX_TOKEN_DOUBLE);

	if (negative)
		ptx_advance(p);
	out->token = p->token;
	if (p->token.kind == PTX_TOKEN_FLOAT || p->token.kind == PTX_TOKEN_DOUBLE) {
		bool single = p->token.kind == PTX_TOKEN_FLOAT;
		out->kind = single ? PTX_OPERAND_FLOAT : PTX_OPERAND_DOUBLE;
		out->bits = p->token.bits ^ (uint64_t)negative << (single ? 31 : 63);
		ptx_advance(p);
		return p->result;
	}
	out->kind = PTX_OPERAND_INTEGER;
	return ptx_parse_integer(p, &out->bits);
}

static int parse_operand(struct ptx_parser *p, struct ptx_statement *s, struct ptx_operand *out)
{
	int r;

	if (ptx_at_mark(p, "["))
		return parse_address(p, s, out);
	if (ptx_at_mark(p, "{"))
		return parse_vector(p, s, out);
	bool negated = ptx_at_mark(p, "!") && p->next.kind == PTX_TOKEN_WORD;
	if (negated)
		ptx_advance(p);
	r = p->token.kind == PTX_TOKEN_WORD && !ptx_token_is(&p->token, PTX_TOKEN_WORD, "WARP_SZ")
		    ? parse_name(p, out)
		    : parse_literal(p, out);
	out->negated = negated;
	if (r || !ptx_at_mark(p, "|"))
		return r;
	ptx_advance(p);
	out->also = take_operands(p, s, 1);
	return out->also ? parse_operand(p, s, out->also) : -ENOTSUP;
}

static int parse_guard(struct ptx_parser *p, struct ptx_statement *s)
{
	s->guard = PTX_NO_ROW;
	if (!ptx_accept(p, "@"))
		return p->result;
	s->guard_negated = ptx_accept(p, "!");
	struct ptx_symbol *symbol =
		p->token.kind == PTX_TOKEN_WORD ? ptx_lookup(p, p->scope, &p->token) : NULL;
	if (!symbol || symbol->kind != PTX_SYMBOL_REGISTER || symbol->bytes)
		return ptx_fail(p, "%.*s is no predicate", PTX_SHOW(&p->token));
	s->guard = symbol->row;
	ptx_advance(p);
	return p->result;
}

static int parse_opcode(struct ptx_parser *p, struct ptx_statement *s)
{
	if (p->token.kind != PTX_TOKEN_WORD)
		return ptx_fail(p, "expected an instruction, found %.*s", PTX_SHOW(&p->token));
	s->opcode = p->token;
	ptx_advance(p);
	while (p->token.kind == PTX_TOKEN_DOT) {
		if (s->n_modifiers == PTX_MODIFIERS_MAX)
			return ptx_fail(p, "too many modifiers");
		s->modifiers[s->n_modifiers++] = p->token;
		ptx_advance(p);
	}
	return p->result;
}

static int parse_operands(struct ptx_parser *p, struct ptx_statement *s)
{
	if (ptx_at_mark(p, ";"))
		return 0;
	do {
		if (s->n == PTX_OPERANDS)
			return odd_operand(p);
		int r = parse_operand(p, s, &s->operands[s->n++]);
		if (r)
			return r;
	} while (ptx_accept(p, ","));
	if (!ptx_at_mark(p, ";"))
		return ptx_expect(p, ";");
	return p->result;
}

int ptx_parse_statement(struct ptx_parser *p)
{
	struct ptx_statement s = {0};
	int r = parse_guard(p, &s);

	if (r || (r = parse_opcode(p, &s)))
		return r;
	ptx_decoder *decode = ptx_decoder_find(&s.opcode);
	if (!decode) {
		ptx_unknown(p, &s.opcode, "unknown instruction %.*s", PTX_SHOW(&s.opcode));
		return ptx_skip_statement(p);
	}
	if (decode != ptx_decode_call)
		r = parse_operands(p, &s);
	if (!r)
		r = decode(p, &s);
	if (r == -ENOTSUP)
		return ptx_skip_statement(p);
	return r ? r : ptx_expect(p, ";");
}
