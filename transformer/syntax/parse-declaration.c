/* .reg .b32 %r<9>; .shared .align 8 .b8 sums[256]; .param .u64 .ptr .global .align 4 in */
#include "syntax/parser.h"

#include <string.h>

/* The part from the first dot to the first name. */
struct declared {
	enum space space;
	enum type_id type;
	unsigned vector, align;
};

static enum space space_find(const char *name)
{
	for (unsigned k = SPACE_NONE + 1; k <= SPACE_TEX; k++)
		if (!strcmp(space_names[k], name))
			return (enum space)k;
	return SPACE_NONE;
}

static bool parse_number(struct parser *p, uint64_t max, uint64_t *value)
{
	struct token token = p->token;

	if (!parser_expect(p, TOKEN_NUMBER))
		return false;
	if (!token_integer(token.start, token.len, value) || *value > max)
		return parser_fail(p, "a smaller integer expected");
	return true;
}

/* Parses one word of a declaration. Space and alignment behind .ptr describe the pointer's target.
 */
static bool parse_word(struct parser *p, struct declared *d, bool *is_pointer)
{
	const char *word = parser_text(p, p->token.start + 1, p->token.start + p->token.len);
	enum space space;
	enum type_id type;
	uint64_t align = 0;

	if (!word)
		return false;
	space = space_find(word);
	type = type_find(word);
	parser_next(p);
	if (!strcmp(word, "ptr"))
		*is_pointer = true;
	else if (!strcmp(word, "align")) {
		if (!parse_number(p, 1u << 20, &align))
			return false;
		if (!*is_pointer)
			d->align = (unsigned)align;
	} else if (!strcmp(word, "v2") || !strcmp(word, "v4") || !strcmp(word, "v8"))
		d->vector = (unsigned)(word[1] - '0');
	else if (!strcmp(word, "attribute"))
		return p->token.kind == '(' ? parser_skip_group(p) : parser_expect(p, '(');
	else if (!strncmp(word, "shared::", 8) && !*is_pointer && d->space == SPACE_NONE)
		d->space = SPACE_SHARED;
	else if (space != SPACE_NONE) {
		if (!*is_pointer && d->space == SPACE_NONE)
			d->space = space;
	} else if (type != TYPE_NONE)
		d->type = type;
	else
		return *is_pointer ? true : parser_fail(p, "'.%s' is not known here", word);
	return true;
}

static bool parse_words(struct parser *p, struct declared *d)
{
	bool is_pointer = false;

	*d = (struct declared){.vector = 1};
	while (p->token.kind == TOKEN_DOT)
		if (!parse_word(p, d, &is_pointer))
			return false;
	if (d->space == SPACE_NONE || d->type == TYPE_NONE)
		return parser_fail(p, "a state space and a type expected");
	return true;
}

/* Parses [4][8]. The size is unknown for [] and [2*N]. */
static bool parse_dimensions(struct parser *p, uint64_t *size)
{
	while (parser_accept(p, '[')) {
		struct token token = p->token;
		unsigned count = 0;
		uint64_t n;

		for (; p->token.kind != ']'; parser_next(p), count++)
			if (p->token.kind == TOKEN_END || p->token.kind == TOKEN_BAD ||
			    p->token.kind == ';')
				return parser_expect(p, ']');
		if (count != 1 || !token_integer(token.start, token.len, &n) ||
		    __builtin_mul_overflow(*size, n, size))
			*size = 0;
		parser_next(p);
	}
	return true;
}

/* Skips = {1, 2}, which is printed as it was. It may name only variables of the module. */
static bool skip_initializer(struct parser *p, const char *ends)
{
	size_t depth = 0;

	while (p->token.kind != TOKEN_END && p->token.kind != TOKEN_BAD) {
		if (!depth && p->token.kind < 128 && strchr(ends, p->token.kind))
			return true;
		if (p->token.kind == '{' || p->token.kind == '(')
			depth++;
		if ((p->token.kind == '}' || p->token.kind == ')') && depth-- == 0)
			break;
		if (p->token.kind == TOKEN_WORD && p->function)
			break;
		parser_next(p);
	}
	return parser_fail(p, "an initializer that cannot be parsed");
}

static bool parse_variable(struct parser *p, const struct declared *d, const char *before,
			   const char *ends, struct variable *v)
{
	const char *name = parser_name(p), *after = p->token.start;
	uint64_t bits = (uint64_t)types[d->type].bits * d->vector;

	if (!name)
		return false;
	*v = (struct variable){.name = name,
			       .space = d->space,
			       .type = d->type,
			       .vector = d->vector,
			       .align = d->align,
			       .before = before,
			       .at = p->token.at,
			       .size = (bits + 7) / 8};
	if (p->token.kind == '<')
		return parser_fail(p, "only registers can be declared as a group");
	if (!parse_dimensions(p, &v->size))
		return false;
	v->is_initialized = p->token.kind == '=';
	if (v->is_initialized && !skip_initializer(p, ends))
		return false;
	if (p->token.kind == TOKEN_END || p->token.kind >= 128 || !strchr(ends, p->token.kind))
		return parser_fail(p, "'%c' expected", *ends);
	v->after = parser_text(p, after, p->end > after ? p->end : after);
	return v->after;
}

/* Binds a variable of a body and renames it if needed. */
static bool bind_variable(struct parser *p, struct variable *v)
{
	bool renames = parser_renames(p, v->name);
	struct binding *b = parser_bind(p, v->name, BINDING_VARIABLE);

	if (!b)
		return false;
	b->variable = v;
	v->of_body = true;
	if (renames)
		v->name = parser_fresh(p, v->name);
	return v->name;
}

bool parse_variables(struct parser *p, const char *ends, struct variable ***end)
{
	const char *start = p->token.start, *before;
	struct declared d;
	bool several = !strchr(ends, ','); /* otherwise each variable has its own type */

	if (!parse_words(p, &d))
		return false;
	before = parser_text(p, start, p->token.start);
	if (!before)
		return false;
	do {
		struct variable *v = arena_new(p->arena, struct variable);

		if (!v)
			return parser_no_memory(p);
		if (!parse_variable(p, &d, before, several ? ",;" : ends, v))
			return false;
		if (p->function && !bind_variable(p, v))
			return false;
		**end = v;
		*end = &v->next;
	} while (several && parser_accept(p, ','));
	return true;
}

static bool declare_group(struct parser *p, const char *name, const struct declared *d)
{
	bool printed = !parser_renames(p, name);
	struct binding *b;
	uint64_t count;

	if (!parse_number(p, 1u << 30, &count) || !parser_expect(p, '>'))
		return false;
	b = parser_bind(p, name, BINDING_GROUP);
	if (!b)
		return false;
	b->group = arena_new(p->arena, struct reg_group);
	if (!b->group)
		return parser_no_memory(p);
	*b->group = (struct reg_group){d->type, d->vector, count, printed};
	return !printed || edit_declare_group(p->function, name, d->type, d->vector, count) ||
	       parser_no_memory(p);
}

static bool declare_register(struct parser *p, const char *name, const struct declared *d)
{
	bool renames = parser_renames(p, name);
	struct binding *b = parser_bind(p, name, BINDING_REGISTER);

	if (b && renames)
		name = parser_fresh(p, name);
	if (!b || !name)
		return false;
	b->reg = edit_new_register(p->function, name, d->type, d->vector);
	return b->reg || parser_no_memory(p);
}

bool parse_registers(struct parser *p)
{
	struct declared d;

	if (!parse_words(p, &d))
		return false;
	do {
		const char *name = parser_name(p);

		if (!name || !(parser_accept(p, '<') ? declare_group(p, name, &d)
						     : declare_register(p, name, &d)))
			return false;
	} while (parser_accept(p, ','));
	return parser_expect(p, ';');
}
