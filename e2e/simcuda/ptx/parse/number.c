/* Literals and constant expressions, by precedence climbing. */
#include "simcuda/ptx/parse/parse.h"

#include <math.h>

#define NESTING_MAX 32

static int parse_expression(struct ptx_parser *p, int above, int depth, uint64_t *out);

static int parse_unary(struct ptx_parser *p, int depth, uint64_t *out)
{
	static const char marks[] = "-~!+";
	int r;

	if (depth > NESTING_MAX)
		return ptx_fail(p, "an expression is nested too deep");
	if (p->token.kind == PTX_TOKEN_INTEGER) {
		*out = p->token.bits;
		ptx_advance(p);
		return p->result;
	}
	if (ptx_token_is(&p->token, PTX_TOKEN_WORD, "WARP_SZ")) {
		*out = PTX_LANES;
		ptx_advance(p);
		return p->result;
	}
	if (ptx_accept(p, "(")) {
		/* A cast, (.s64), has no effect here. */
		if (ptx_at_dot(p, "s64") || ptx_at_dot(p, "u64")) {
			ptx_advance(p);
			r = ptx_expect(p, ")");
			return r ? r : parse_unary(p, depth + 1, out);
		}
		r = parse_expression(p, 0, depth + 1, out);
		return r ? r : ptx_expect(p, ")");
	}
	for (const char *mark = marks; *mark; mark++) {
		const char text[] = {*mark, '\0'};
		if (!ptx_accept(p, text))
			continue;
		r = parse_unary(p, depth + 1, out);
		if (r)
			return r;
		*out = *mark == '-' ? 0 - *out : *mark == '~' ? ~*out : *mark == '!' ? !*out : *out;
		return 0;
	}
	return ptx_fail(p, "expected a number, found %.*s", PTX_SHOW(&p->token));
}

enum binary { MUL, DIV, REM, ADD, SUB, SHL, SHR, LT, GT, LE, GE, EQ, NE, AND, XOR, OR, ALL, ANY };
static const struct {
	const char *mark;
	int precedence;
} binaries[] = {
	[MUL] = {"*", 10}, [DIV] = {"/", 10}, [REM] = {"%", 10}, [ADD] = {"+", 9}, [SUB] = {"-", 9},
	[SHL] = {"<<", 8}, [SHR] = {">>", 8}, [LT] = {"<", 7},   [GT] = {">", 7},  [LE] = {"<=", 7},
	[GE] = {">=", 7},  [EQ] = {"==", 6},  [NE] = {"!=", 6},  [AND] = {"&", 5}, [XOR] = {"^", 4},
	[OR] = {"|", 3},   [ALL] = {"&&", 2}, [ANY] = {"||", 1},
};

static bool apply(enum binary operation, uint64_t a, uint64_t b, uint64_t *out)
{
	int64_t signed_a = (int64_t)a, signed_b = (int64_t)b;

	if ((operation == DIV || operation == REM) && (b == 0 || b == UINT64_MAX))
		return false;
	switch (operation) {
	case MUL:
		*out = a * b;
		break;
	case DIV:
		*out = (uint64_t)(signed_a / signed_b);
		break;
	case REM:
		*out = (uint64_t)(signed_a % signed_b);
		break;
	case ADD:
		*out = a + b;
		break;
	case SUB:
		*out = a - b;
		break;
	case SHL:
		*out = b < 64 ? a << b : 0;
		break;
	case SHR:
		/* gcc and clang shift in the sign. */
		/* cppcheck-suppress shiftTooManyBitsSigned */
		*out = (uint64_t)(signed_a >> (b < 64 ? b : 63));
		break;
	case LT:
		*out = signed_a < signed_b;
		break;
	case GT:
		*out = signed_a > signed_b;
		break;
	case LE:
		*out = signed_a <= signed_b;
		break;
	case GE:
		*out = signed_a >= signed_b;
		break;
	case EQ:
		*out = a == b;
		break;
	case NE:
		*out = a != b;
		break;
	case AND:
		*out = a & b;
		break;
	case XOR:
		*out = a ^ b;
		break;
	case OR:
		*out = a | b;
		break;
	case ALL:
		*out = a && b;
		break;
	case ANY:
		*out = a || b;
		break;
	}
	return true;
}

static int parse_expression(struct ptx_parser *p, int above, int depth, uint64_t *out)
{
	int r = parse_unary(p, depth, out);

	while (!r) {
		size_t k = 0;
		while (k < sizeof(binaries) / sizeof(binaries[0]) &&
		       !(ptx_at_mark(p, binaries[k].mark) && binaries[k].precedence > above))
			k++;
		if (k == sizeof(binaries) / sizeof(binaries[0]))
			return 0;
		uint64_t right;
		ptx_advance(p);
		r = parse_expression(p, binaries[k].precedence, depth + 1, &right);
		if (!r && !apply((enum binary)k, *out, right, out))
			r = ptx_fail(p, "a division that has no value");
	}
	return r;
}

int ptx_parse_integer(struct ptx_parser *p, uint64_t *out)
{
	return parse_expression(p, 0, 0, out);
}

static uint64_t bits_of_float(double value)
{
	float narrow = (float)value;
	uint32_t bits;

	memcpy(&bits, &narrow, sizeof(bits));
	return bits;
}

bool ptx_literal(enum ptx_token_kind kind, uint64_t bits, enum ptx_type type, uint64_t *out)
{
	bool is_float = ptx_types[type].class == PTX_FLOAT;
	double number;
	float single;
	uint32_t low = (uint32_t)bits;

	*out = bits;
	memcpy(&number, &bits, sizeof(number));
	memcpy(&single, &low, sizeof(single));
	if (kind == PTX_TOKEN_INTEGER)
		return !is_float || ptx_types[type].bytes == 2;
	if (type == PTX_f32 && kind == PTX_TOKEN_DOUBLE)
		*out = bits_of_float(number);
	if (type == PTX_f64 && kind == PTX_TOKEN_FLOAT) {
		number = single;
		memcpy(out, &number, sizeof(number));
	}
	if (is_float)
		return ptx_types[type].bytes > 2;
	return ptx_types[type].class == PTX_BITS &&
	       ptx_types[type].bytes == (kind == PTX_TOKEN_FLOAT ? 4 : 8);
}

int ptx_parse_constant(struct ptx_parser *p, enum ptx_type type, uint64_t *out)
{
	bool negative = ptx_at_mark(p, "-") &&
			(p->next.kind == PTX_TOKEN_FLOAT || p->next.kind == PTX_TOKEN_DOUBLE);

	if (negative)
		ptx_advance(p);
	struct ptx_token token = p->token;
	if (token.kind != PTX_TOKEN_FLOAT && token.kind != PTX_TOKEN_DOUBLE) {
		int r = ptx_parse_integer(p, out);
		if (r)
			return r;
		token.kind = PTX_TOKEN_INTEGER;
		token.bits = *out;
		/* An initialiser may write 0 for 0.0. */
		if (ptx_types[type].class == PTX_FLOAT && ptx_types[type].bytes > 2) {
			double value = (double)(int64_t)token.bits;
			token.kind = PTX_TOKEN_DOUBLE;
			memcpy(&token.bits, &value, sizeof(value));
		}
	} else {
		ptx_advance(p);
	}
	if (negative)
		token.bits ^= 1ULL << (token.kind == PTX_TOKEN_FLOAT ? 31 : 63);
	if (!ptx_literal(token.kind, token.bits, type, out))
		return ptx_fail_at(p, &token, "a constant that is no .%s", ptx_types[type].name);
	return p->result;
}
