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

static uint64_t parse_number(struct parser *p, uint64_t max)
{
	return parser_integer(p, max, "a smaller integer expected");
}

/* Parses one word of a declaration. Space and alignment behind .ptr describe the pointer's target.
 */
static void parse_word(struct parser *p, struct declared *d, bool *is_pointer)
{
	const char *word = parser_text(p, p->token.start + 1, p->token.start + p->token.len);
	enum space space = space_find(word);
	enum type_id type = type_find(word);

	parser_next(p);
	if (!strcmp(word, "ptr"))
		*is_pointer = true;
	else if (!strcmp(word, "align")) {
		uint64_t align = parse_number(p, 1u << 20);

		if (!*is_pointer)
			d->align = (unsigned)align;
	} else if (!strcmp(word, "v2") || !strcmp(word, "v4") || !strcmp(word, "v8"))
		d->vector = (unsigned)(word[1] - '0');
	else if (!strcmp(word, "attribute"))
		parser_skip_group(p, '(');
	else if (!strncmp(word, "shared::", 8) && !*is_pointer && d->space == SPACE_NONE)
		d->space = SPACE_SHARED;
	else if (space != SPACE_NONE) {
		if (!*is_pointer && d->space == SPACE_NONE)
			d->space = space;
	} else if (type != TYPE_NONE)
		d->type = type;
	else if (!*is_pointer)
		parser_fail(p, "'.%s' is not known here", word);
}

static struct declared parse_words(struct parser *p)
{
	struct declared d = {.vector = 1};
	bool is_pointer = false;

	while (p->token.kind == TOKEN_DOT)
		parse_word(p, &d, &is_pointer);
	if (d.space == SPACE_NONE || d.type == TYPE_NONE)
		parser_fail(p, "a state space and a type expected");
	return d;
}

/* Parses [4][8] for items of @size bytes: the size of all. 0, unknown, for [] and [2*N]. */
static uint64_t parse_dimensions(struct parser *p, uint64_t size)
{
	while (parser_accept(p, '[')) {
		struct token token = p->token;
		unsigned count = 0;
		uint64_t n;

		for (; p->token.kind != ']'; parser_next(p), count++)
			if (p->token.kind == TOKEN_END || p->token.kind == TOKEN_BAD ||
			    p->token.kind == ';')
				parser_expect(p, ']');
		if (count != 1 || !token_integer(token.start, token.len, &n) ||
		    __builtin_mul_overflow(size, n, &size))
			size = 0;
		parser_next(p);
	}
	return size;
}

/* Skips = {1, 2}, which is printed as it was. It may name only variables of the module. */
static void skip_initializer(struct parser *p, const char *ends)
{
	size_t depth = 0;

	while (p->token.kind != TOKEN_END && p->token.kind != TOKEN_BAD) {
		if (!depth && p->token.kind < 128 && strchr(ends, p->token.kind))
			return;
		if (p->token.kind == '{' || p->token.kind == '(')
			depth++;
		if ((p->token.kind == '}' || p->token.kind == ')') && depth-- == 0)
			break;
		if (p->token.kind == TOKEN_WORD && p->function)
			break;
		parser_next(p);
	}
	parser_fail(p, "an initializer that cannot be parsed");
}

static struct variable *parse_variable(struct parser *p, const struct declared *d,
				       const char *before, const char *ends)
{
	struct variable *v = arena_new(p->arena, struct variable);
	const char *name = parser_name(p), *after = p->token.start;

	*v = (struct variable){.name = name,
			       .space = d->space,
			       .type = d->type,
			       .vector = d->vector,
			       .align = d->align,
			       .before = before,
			       .at = p->token.at};
	if (p->token.kind == '<')
		parser_fail(p, "only registers can be declared as a group");
	v->size = parse_dimensions(p, ((uint64_t)types[d->type].bits * d->vector + 7) / 8);
	v->is_initialized = p->token.kind == '=';
	if (v->is_initialized)
		skip_initializer(p, ends);
	if (p->token.kind == TOKEN_END || p->token.kind >= 128 || !strchr(ends, p->token.kind))
		parser_fail(p, "'%c' expected", *ends);
	v->after = parser_text(p, after, p->end > after ? p->end : after);
	return v;
}

void parse_variables(struct parser *p, const char *ends, struct variable ***end)
{
	bool several = !strchr(ends, ','); /* otherwise each variable has its own type */
	const char *start = p->token.start, *before;
	struct declared d = parse_words(p);

	before = parser_text(p, start, p->token.start);
	do {
		struct variable *v = parse_variable(p, &d, before, several ? ",;" : ends);

		v->of_body = p->function;
		if (v->of_body)
			parser_declare(p, &v->name, BINDING_VARIABLE)->variable = v;
		**end = v;
		*end = &v->next;
	} while (several && parser_accept(p, ','));
}

static void declare_group(struct parser *p, const char *name, const struct declared *d)
{
	struct reg_group *group = arena_new(p->arena, struct reg_group);

	*group = (struct reg_group){.type = d->type,
				    .vector = d->vector,
				    .count = parse_number(p, 1u << 30),
				    .printed = !parser_renames(p, name)};
	parser_expect(p, '>');
	parser_bind(p, name, BINDING_GROUP)->group = group;
	if (group->printed)
		edit_declare_group(p->function, name, group->type, group->vector, group->count);
}

static void declare_register(struct parser *p, const char *name, const struct declared *d)
{
	struct binding *b = parser_declare(p, &name, BINDING_REGISTER);

	b->reg = edit_new_register(p->function, name, d->type, d->vector);
}

void parse_registers(struct parser *p)
{
	struct declared d = parse_words(p);

	do {
		const char *name = parser_name(p);

		if (parser_accept(p, '<'))
			declare_group(p, name, &d);
		else
			declare_register(p, name, &d);
	} while (parser_accept(p, ','));
	parser_expect(p, ';');
}
