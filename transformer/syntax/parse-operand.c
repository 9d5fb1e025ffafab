/* Operands: %r1, [%rd1+4], {%f1, _}, %r1|%p1, (param0), $L__BB0_2 */
#include "syntax/parser.h"

#include <string.h>

#define DEPTH_MAX      6  /* nested brackets */
#define EXPRESSION_MAX 64 /* characters of an offset */

static struct operand parse_operand(struct parser *p, bool is_target, unsigned depth);

/* A growing list of operands; the first few need no allocation. */
struct operand_list {
	struct operand first[4];
	struct operand *items;
	size_t n, room;
};

static void add_operand(struct parser *p, struct operand_list *list, struct operand operand)
{
	if (!list->n) {
		list->items = list->first;
		list->room = sizeof(list->first) / sizeof(list->first[0]);
	}
	list->items = arena_grow(p->arena, list->items, list->n, &list->room, sizeof(operand));
	list->items[list->n++] = operand;
}

/* An operand of @kind with the list's items, which are moved to the arena. */
static struct operand finish_list(struct parser *p, const struct operand_list *list,
				  enum operand_kind kind)
{
	struct operand all = {.kind = kind, .items = list->items, .item_count = list->n};

	if (list->n && list->items == list->first) {
		all.items = arena_array(p->arena, list->n, sizeof(*all.items));
		memcpy(all.items, list->first, list->n * sizeof(*all.items));
	}
	return all;
}

/* Parses items up to @close. The opening bracket has been taken already. */
static struct operand parse_items(struct parser *p, enum operand_kind kind, int close,
				  bool is_target, unsigned depth)
{
	struct operand_list list = {.n = 0};

	if (depth > DEPTH_MAX)
		parser_fail(p, "brackets too deep");
	while (p->token.kind != close) {
		add_operand(p, &list, parse_operand(p, is_target, depth));
		if (!parser_accept(p, ','))
			break;
	}
	parser_expect(p, close);
	return finish_list(p, &list, kind);
}

struct block *parse_label(struct parser *p, const char *name)
{
	struct binding *b = scope_find(name);

	if (b && b->scope == p->scope) {
		if (b->kind != BINDING_LABEL)
			parser_fail(p, "'%s' is no label", name);
		return b->block;
	}
	b = parser_bind(p, name, BINDING_LABEL);
	b->block = edit_new_block(p->function);
	return b->block;
}

/* Makes a group's member a register at its first use and binds it in the group's scope. */
static struct reg *group_member(struct parser *p, const struct binding *group, const char *name)
{
	const struct reg_group *g = group->group;
	struct binding *b = scope_bind(group->scope, p->arena, name, BINDING_REGISTER);

	if (!g->printed)
		name = edit_fresh_name(p->function, name);
	b->reg = edit_new_register(p->function, name, g->type, g->vector);
	b->reg->in_group = g->printed;
	return b->reg;
}

static struct operand bound_operand(struct parser *p, const struct binding *b, const char *name)
{
	switch (b->kind) {
	case BINDING_REGISTER:
		return op_reg(b->reg);
	case BINDING_VARIABLE:
		return op_variable(b->variable);
	case BINDING_TABLE:
		return (struct operand){.kind = OPERAND_TABLE, .table = b->table};
	case BINDING_FUNCTION:
		return (struct operand){.kind = OPERAND_SYMBOL, .text = name};
	case BINDING_PROTOTYPE:
		return (struct operand){.kind = OPERAND_SYMBOL, .text = b->text};
	default:
		parser_fail(p, "'%s' cannot be an operand here", name);
	}
}

/* Parses a bound name (register, variable, function) or a special register. */
static struct operand parse_named(struct parser *p, const struct token *token)
{
	const char *name = parser_token_text(p, token);
	const struct binding *b = scope_find(name);
	const struct binding *group = scope_find_group(&p->module->names, token->start, token->len);

	if (group && (!b || b->scope->depth < group->scope->depth))
		return op_reg(group_member(p, group, name));
	if (b)
		return bound_operand(p, b, name);
	if (*name == '%' || !strcmp(name, "WARP_SZ"))
		return (struct operand){.kind = OPERAND_SPECIAL, .text = name};
	if (strcmp(name, "_") != 0)
		parser_fail(p, "'%.80s' is not known", name);
	return (struct operand){.kind = OPERAND_SYMBOL, .text = name};
}

/* Whether the token is a template's operand: %0, %1 ... */
static bool is_template_operand(const struct parser *p, const struct token *token, size_t *index)
{
	uint64_t n;

	if (!p->is_template || token->len < 2 || token->start[0] != '%' || token->start[1] < '0' ||
	    token->start[1] > '9' || !token_integer(token->start + 1, token->len - 1, &n))
		return false;
	*index = (size_t)n;
	return true;
}

/* %tid.r, .g, .b and .a are other spellings of %tid.x, .y, .z and .w. The IR has only the latter.
 */
static const char *special_part(struct parser *p, const char *start, const char *end)
{
	static const char parts[] = "xyzw", others[] = "rgba";
	const char *part = p->token.len == 2 ? strchr(others, end[-1]) : NULL;
	char *text;

	if (!part)
		return parser_text(p, start, end);
	text = arena_text(p->arena, start, (size_t)(end - start));
	text[end - start - 1] = parts[part - others];
	return parser_text(p, text, text + (end - start));
}

/* Parses a part: .x. The name of a special register includes it. */
static void parse_part(struct parser *p, struct operand *out, const char *name_start)
{
	if (out->kind == OPERAND_SPECIAL)
		out->text = special_part(p, name_start, p->token.start + p->token.len);
	else
		out->suffix = parser_token_text(p, &p->token);
	parser_next(p);
}

static struct operand parse_word_operand(struct parser *p, bool is_target)
{
	struct token token = p->token;
	struct operand out;
	size_t index;
	bool is_template = is_template_operand(p, &token, &index);

	if (is_template && index >= p->operand_count)
		parser_fail(p, "the template has no operand %zu", index);
	parser_next(p);
	if (!is_template && is_target)
		return op_block(parse_label(p, parser_token_text(p, &token)));
	out = is_template ? p->operands[index] : parse_named(p, &token);
	if (p->token.kind == TOKEN_DOT && p->token.start == token.start + token.len)
		parse_part(p, &out, token.start);
	return out;
}

static struct operand parse_number_operand(struct parser *p, const char *start)
{
	struct operand out = {.kind = OPERAND_IMMEDIATE};
	struct token token = p->token;
	char text[EXPRESSION_MAX + 2] = "-";
	bool minus = *start == '-';
	uint64_t value;

	if (token.len > EXPRESSION_MAX)
		parser_fail(p, "the number is too long");
	memcpy(text + 1, token.start, token.len);
	out.text = parser_text(p, text + !minus, text + 1 + token.len);
	if (token_integer(token.start, token.len, &value))
		out.value = minus ? -value : value;
	parser_next(p);
	return out;
}

/* The value of 4*2+-1, as far as it has been read. */
struct sum {
	uint64_t sum, product; /* of all products but the last; the last one */
	int last;              /* an operator, or TOKEN_NUMBER */
	bool times, minus;     /* apply to the next number */
};

static void add_to_sum(struct sum *s, const struct token *token)
{
	bool is_sign = s->last != TOKEN_NUMBER && token->kind != TOKEN_NUMBER;
	uint64_t n;

	s->last = token->kind;
	if (is_sign) {
		s->minus = s->minus != (token->kind == '-');
	} else if (token->kind != TOKEN_NUMBER) {
		s->times = token->kind == '*';
		s->minus = token->kind == '-';
	} else if (token_integer(token->start, token->len, &n)) {
		n = s->minus ? -n : n;
		s->sum += s->times ? 0 : s->product;
		s->product = s->times ? s->product * n : n;
	}
}

/* Parses +4, + -8, +4*2. It is printed as spelled, without blanks. Behind a number it is computed.
 */
static void parse_offset(struct parser *p, struct operand *out)
{
	struct sum sum = {.product = out->value, .last = TOKEN_NUMBER};
	char text[EXPRESSION_MAX];
	size_t n = 0;

	while (p->token.kind == '+' || p->token.kind == '-' || p->token.kind == '*' ||
	       p->token.kind == TOKEN_NUMBER) {
		if (p->token.len > sizeof(text) - n)
			parser_fail(p, "the offset is too long");
		memcpy(text + n, p->token.start, p->token.len);
		n += p->token.len;
		add_to_sum(&sum, &p->token);
		parser_next(p);
	}
	if (out->kind == OPERAND_IMMEDIATE)
		out->value = sum.sum + sum.product;
	if (out->suffix)
		parser_fail(p, "a part of a register has no offset");
	out->suffix = parser_text(p, text, text + n);
}

static struct operand parse_leaf(struct parser *p, bool is_target, unsigned depth)
{
	const char *start = p->token.start;
	struct operand out;

	if (parser_accept(p, '['))
		return parse_items(p, OPERAND_ADDRESS, ']', false, depth + 1);
	if (parser_accept(p, '{'))
		return parse_items(p, OPERAND_VECTOR, '}', false, depth + 1);
	if (parser_accept(p, '('))
		return parse_items(p, OPERAND_LIST, ')', false, depth + 1);
	if (p->token.kind == '!' || p->token.kind == '-') {
		parser_next(p);
		if (p->token.kind == TOKEN_NUMBER && *start == '-')
			return parse_number_operand(p, start);
		if (p->token.kind != TOKEN_WORD)
			parser_fail(p, "an operand expected");
		out = parse_word_operand(p, false);
		if (out.kind != OPERAND_REGISTER)
			parser_fail(p, "only registers can be negated");
		out.sign = *start;
		return out;
	}
	if (p->token.kind == TOKEN_NUMBER)
		return parse_number_operand(p, start);
	if (p->token.kind == TOKEN_WORD)
		return parse_word_operand(p, is_target);
	parser_fail(p, "an operand expected");
}

static struct operand parse_operand(struct parser *p, bool is_target, unsigned depth)
{
	struct operand_list pair = {.n = 0};
	struct operand out = parse_leaf(p, is_target, depth);

	if (p->token.kind == '+' || p->token.kind == '-' || p->token.kind == '*')
		parse_offset(p, &out);
	if (p->token.kind != '|')
		return out;
	if (depth == DEPTH_MAX)
		parser_fail(p, "bars too deep");
	add_operand(p, &pair, out);
	while (parser_accept(p, '|'))
		add_operand(p, &pair, parse_leaf(p, false, DEPTH_MAX));
	return finish_list(p, &pair, OPERAND_PAIR);
}

void parse_operands(struct parser *p, struct instruction *i)
{
	enum opcode_class op_class = i->mnemonic->op_class;
	struct operand all = parse_items(p, OPERAND_LIST, ';', op_class == OP_BRANCH, 0);

	i->operands = all.items;
	i->operand_count = all.item_count;
	if (!instruction_has_target(i))
		parser_fail(p, op_class == OP_BRANCH
				       ? "a branch has one target"
				       : "an indexed branch has an index and a list of targets");
}

struct reg *parse_register(struct parser *p)
{
	struct operand operand = {0};

	if (p->token.kind == TOKEN_WORD)
		operand = parse_word_operand(p, false);
	if (operand.kind != OPERAND_REGISTER || operand.suffix)
		parser_fail(p, "a predicate expected");
	return operand.reg;
}
