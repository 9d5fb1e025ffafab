/* Operands: %r1, [%rd1+4], {%f1, _}, %r1|%p1, (param0), $L__BB0_2 */
#include "syntax/parser.h"

#include <string.h>

#define DEPTH_MAX      6  /* nested brackets */
#define EXPRESSION_MAX 64 /* characters of an offset */

/* A growing list of operands; the first few need no allocation. */
struct operand_list {
	struct operand first[4];
	struct operand *items;
	size_t n, room;
};

static bool parse_operand(struct parser *p, struct operand *out, bool is_target, unsigned depth);

static bool add_operand(struct parser *p, struct operand_list *list, const struct operand *operand)
{
	if (!list->items) {
		list->items = list->first;
		list->room = sizeof(list->first) / sizeof(list->first[0]);
	}
	if (list->n == list->room) {
		struct operand *items = arena_array(p->arena, 2 * list->room, sizeof(*items));

		if (!items)
			return parser_no_memory(p);
		memcpy(items, list->items, list->n * sizeof(*items));
		list->items = items;
		list->room *= 2;
	}
	list->items[list->n++] = *operand;
	return true;
}

/* Copies the list to an array in the arena. */
static bool finish_list(struct parser *p, const struct operand_list *list, struct operand **items,
			size_t *n)
{
	*n = list->n;
	*items = list->items;
	if (!list->n || list->items != list->first)
		return true;
	*items = arena_array(p->arena, list->n, sizeof(**items));
	if (!*items)
		return parser_no_memory(p);
	memcpy(*items, list->first, list->n * sizeof(**items));
	return true;
}

/* Parses items up to @close. The opening bracket has been taken already. */
static bool parse_items(struct parser *p, struct operand *out, enum operand_kind kind, int close,
			unsigned depth)
{
	struct operand_list list = {.n = 0};

	if (depth == DEPTH_MAX)
		return parser_fail(p, "brackets too deep");
	while (p->token.kind != close) {
		struct operand item = {0};

		if (!parse_operand(p, &item, false, depth + 1) || !add_operand(p, &list, &item))
			return false;
		if (!parser_accept(p, ','))
			break;
	}
	*out = (struct operand){.kind = kind};
	return parser_expect(p, close) && finish_list(p, &list, &out->items, &out->item_count);
}

struct block *parse_label(struct parser *p, const char *name)
{
	struct binding *b = scope_find(name);

	if (b && b->scope == p->scope) {
		if (b->kind == BINDING_LABEL)
			return b->block;
		parser_fail(p, "'%s' is no label", name);
		return NULL;
	}
	b = parser_bind(p, name, BINDING_LABEL);
	if (!b)
		return NULL;
	b->block = edit_new_block(p->function);
	if (!b->block)
		parser_no_memory(p);
	return b->block;
}

/* Makes a group's member a register at its first use and binds it in the group's scope. */
static struct reg *group_member(struct parser *p, const struct binding *group, const char *name)
{
	const struct reg_group *g = group->group;
	struct binding *b = scope_bind(group->scope, p->arena, name, BINDING_REGISTER);
	const char *printed = g->printed ? name : parser_fresh(p, name);

	if (!b || !printed) {
		parser_no_memory(p);
		return NULL;
	}
	b->reg = edit_new_register(p->function, printed, g->type, g->vector);
	if (b->reg)
		b->reg->in_group = g->printed;
	else
		parser_no_memory(p);
	return b->reg;
}

static bool bound_operand(struct parser *p, const struct binding *b, const char *name,
			  struct operand *out)
{
	switch (b->kind) {
	case BINDING_REGISTER:
		*out = (struct operand){.kind = OPERAND_REGISTER, .reg = b->reg};
		return true;
	case BINDING_VARIABLE:
		*out = (struct operand){.kind = OPERAND_VARIABLE, .variable = b->variable};
		return true;
	case BINDING_TABLE:
		*out = (struct operand){.kind = OPERAND_TABLE, .table = b->table};
		return true;
	case BINDING_FUNCTION:
		*out = (struct operand){.kind = OPERAND_SYMBOL, .text = name};
		return true;
	case BINDING_PROTOTYPE:
		*out = (struct operand){.kind = OPERAND_SYMBOL, .text = b->text};
		return true;
	default:
		return parser_fail(p, "'%s' cannot be an operand here", name);
	}
}

/* Parses a bound name (register, variable, function) or a special register. */
static bool parse_named(struct parser *p, const struct token *token, struct operand *out)
{
	const char *name = parser_text(p, token->start, token->start + token->len);
	struct binding *b, *group;

	if (!name)
		return false;
	b = scope_find(name);
	group = scope_find_group(&p->module->names, token->start, token->len);
	if (group && (!b || b->scope->depth < group->scope->depth)) {
		*out = (struct operand){.kind = OPERAND_REGISTER,
					.reg = group_member(p, group, name)};
		return out->reg;
	}
	if (b)
		return bound_operand(p, b, name, out);
	*out = (struct operand){.text = name};
	if (*name == '%' || !strcmp(name, "WARP_SZ"))
		out->kind = OPERAND_SPECIAL;
	else if (!strcmp(name, "_"))
		out->kind = OPERAND_SYMBOL;
	else
		return parser_fail(p, "'%.80s' is not known", name);
	return true;
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
	if (!text) {
		parser_no_memory(p);
		return NULL;
	}
	text[end - start - 1] = parts[part - others];
	return parser_text(p, text, text + (end - start));
}

/* Parses a part: .x. The name of a special register includes it. */
static bool parse_part(struct parser *p, struct operand *out, const char *name_start)
{
	const char *end = p->token.start + p->token.len;

	if (out->kind == OPERAND_SPECIAL) {
		out->text = special_part(p, name_start, end);
		if (!out->text)
			return false;
	} else {
		out->suffix = parser_text(p, p->token.start, end);
		if (!out->suffix)
			return false;
	}
	parser_next(p);
	return true;
}

static bool parse_word_operand(struct parser *p, struct operand *out, bool is_target)
{
	struct token token = p->token;
	size_t index;

	if (is_template_operand(p, &token, &index)) {
		if (index >= p->operand_count)
			return parser_fail(p, "the template has no operand %zu", index);
		*out = p->operands[index];
		parser_next(p);
	} else if (is_target) {
		const char *name = parser_name(p);

		*out = (struct operand){.kind = OPERAND_BLOCK,
					.block = name ? parse_label(p, name) : NULL};
		return out->block;
	} else {
		parser_next(p);
		if (!parse_named(p, &token, out))
			return false;
	}
	if (p->token.kind == TOKEN_DOT && p->token.start == token.start + token.len)
		return parse_part(p, out, token.start);
	return true;
}

static bool parse_number_operand(struct parser *p, struct operand *out, const char *start)
{
	struct token token = p->token;
	char text[EXPRESSION_MAX + 2] = "-";
	bool minus = *start == '-';
	uint64_t value;

	if (token.len > EXPRESSION_MAX)
		return parser_fail(p, "the number is too long");
	memcpy(text + 1, token.start, token.len);
	*out = (struct operand){.kind = OPERAND_IMMEDIATE};
	out->text = parser_text(p, text + !minus, text + 1 + token.len);
	if (token_integer(token.start, token.len, &value))
		out->value = minus ? -value : value;
	parser_next(p);
	return out->text;
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
static bool parse_offset(struct parser *p, struct operand *out)
{
	struct sum sum = {.product = out->value, .last = TOKEN_NUMBER};
	char text[EXPRESSION_MAX];
	size_t n = 0;

	while (p->token.kind == '+' || p->token.kind == '-' || p->token.kind == '*' ||
	       p->token.kind == TOKEN_NUMBER) {
		if (p->token.len > sizeof(text) - n)
			return parser_fail(p, "the offset is too long");
		memcpy(text + n, p->token.start, p->token.len);
		n += p->token.len;
		add_to_sum(&sum, &p->token);
		parser_next(p);
	}
	if (out->kind == OPERAND_IMMEDIATE)
		out->value = sum.sum + sum.product;
	if (out->suffix)
		return parser_fail(p, "a part of a register has no offset");
	out->suffix = parser_text(p, text, text + n);
	return out->suffix;
}

static bool parse_leaf(struct parser *p, struct operand *out, bool is_target, unsigned depth)
{
	const char *start = p->token.start;

	if (parser_accept(p, '['))
		return parse_items(p, out, OPERAND_ADDRESS, ']', depth);
	if (parser_accept(p, '{'))
		return parse_items(p, out, OPERAND_VECTOR, '}', depth);
	if (parser_accept(p, '('))
		return parse_items(p, out, OPERAND_LIST, ')', depth);
	if (p->token.kind == '!' || p->token.kind == '-') {
		parser_next(p);
		if (p->token.kind == TOKEN_NUMBER && *start == '-')
			return parse_number_operand(p, out, start);
		if (p->token.kind != TOKEN_WORD || !parse_word_operand(p, out, false))
			return parser_fail(p, "an operand expected");
		if (out->kind != OPERAND_REGISTER)
			return parser_fail(p, "only registers can be negated");
		out->sign = *start;
		return true;
	}
	if (p->token.kind == TOKEN_NUMBER)
		return parse_number_operand(p, out, start);
	if (p->token.kind == TOKEN_WORD)
		return parse_word_operand(p, out, is_target);
	return parser_fail(p, "an operand expected");
}

static bool parse_operand(struct parser *p, struct operand *out, bool is_target, unsigned depth)
{
	struct operand_list pair = {.n = 0};

	if (!parse_leaf(p, out, is_target, depth))
		return false;
	if ((p->token.kind == '+' || p->token.kind == '-' || p->token.kind == '*') &&
	    !parse_offset(p, out))
		return false;
	if (p->token.kind != '|')
		return true;
	if (depth == DEPTH_MAX)
		return parser_fail(p, "bars too deep");
	if (!add_operand(p, &pair, out))
		return false;
	while (parser_accept(p, '|'))
		if (!parse_leaf(p, out, false, DEPTH_MAX) || !add_operand(p, &pair, out))
			return false;
	*out = (struct operand){.kind = OPERAND_PAIR};
	return finish_list(p, &pair, &out->items, &out->item_count);
}

/* cfg.c relies on the operands of branches. */
static bool check_jump(struct parser *p, const struct instruction *i)
{
	enum opcode_class op_class = i->mnemonic->op_class;

	if (op_class == OP_BRANCH &&
	    (i->operand_count != 1 || i->operands[0].kind != OPERAND_BLOCK))
		return parser_fail(p, "a branch has one target");
	if (op_class == OP_TABLE && (i->operand_count != 2 || i->operands[1].kind != OPERAND_TABLE))
		return parser_fail(p, "an indexed branch has an index and a list of targets");
	return true;
}

bool parse_operands(struct parser *p, struct instruction *i)
{
	bool is_target = i->mnemonic->op_class == OP_BRANCH;
	struct operand_list list = {.n = 0};

	while (p->token.kind != ';') {
		struct operand operand = {0};

		if (!parse_operand(p, &operand, is_target, 0) || !add_operand(p, &list, &operand))
			return false;
		if (!parser_accept(p, ','))
			break;
	}
	return parser_expect(p, ';') && finish_list(p, &list, &i->operands, &i->operand_count) &&
	       check_jump(p, i);
}

struct reg *parse_register(struct parser *p)
{
	struct operand operand = {0};

	if (p->token.kind != TOKEN_WORD) {
		parser_fail(p, "a predicate expected");
		return NULL;
	}
	if (!parse_word_operand(p, &operand, false))
		return NULL;
	if (operand.kind != OPERAND_REGISTER || operand.suffix) {
		parser_fail(p, "a predicate expected");
		return NULL;
	}
	return operand.reg;
}
