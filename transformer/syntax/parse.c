/* The text outside of bodies: the module's directives, its variables and the heads of functions. */
#include "syntax/parse.h"

#include "syntax/opcode.h"
#include "syntax/parser.h"

#include <errno.h>
#include <string.h>

#define PREFIX "weir"

_Noreturn void parser_fail(struct parser *p, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	diag_vfail(p->module->diag, -EINVAL, p->token.at, format, args);
	va_end(args);
	diag_stop_again(p->module->diag);
}

void parser_next(struct parser *p)
{
	if (p->token.len)
		p->end = p->token.start + p->token.len;
	p->token = lex_next(&p->lexer);
}

bool parser_accept(struct parser *p, int kind)
{
	if (p->token.kind != kind)
		return false;
	parser_next(p);
	return true;
}

void parser_expect(struct parser *p, int kind)
{
	if (parser_accept(p, kind))
		return;
	if (kind < TOKEN_WORD)
		parser_fail(p, "'%c' expected", kind);
	parser_fail(p, "%s expected", kind == TOKEN_WORD ? "a name" : "a number");
}

bool parser_at(const struct parser *p, const char *text)
{
	return token_is(&p->token, text);
}

void parser_skip_group(struct parser *p, int open)
{
	struct position at = p->token.at;
	size_t depth = 0;

	if (p->token.kind != open)
		parser_expect(p, open);
	do {
		switch (p->token.kind) {
		case '(':
		case '[':
		case '{':
			depth++;
			break;
		case ')':
		case ']':
		case '}':
			depth--;
			break;
		case TOKEN_END:
			diag_stop(p->module->diag, -EINVAL, at, "this bracket is never closed");
		case TOKEN_BAD:
			parser_fail(p, "this is not PTX");
		}
		parser_next(p);
	} while (depth);
}

const char *parser_text(struct parser *p, const char *start, const char *end)
{
	return intern_text(&p->module->names, start, (size_t)(end - start));
}

const char *parser_token_text(struct parser *p, const struct token *token)
{
	return intern_text(&p->module->names, token->start, token->len);
}

const char *parser_name(struct parser *p)
{
	struct token token = p->token;

	parser_expect(p, TOKEN_WORD);
	return parser_token_text(p, &token);
}

uint64_t parser_integer(struct parser *p, uint64_t max, const char *what)
{
	struct token token = p->token;
	uint64_t value;

	parser_expect(p, TOKEN_NUMBER);
	if (!token_integer(token.start, token.len, &value) || value > max)
		parser_fail(p, "%s", what);
	return value;
}

/* Templates name these special registers. */
static bool is_template_special(const char *name)
{
	return name_is(name, "%tid", "%ntid", "%ctaid", "%nctaid", "%clock", "%globaltimer",
		       "%globaltimer_lo", "%laneid", "%lanemask_eq", "%lanemask_lt",
		       "%dynamic_smem_size");
}

bool parser_renames(const struct parser *p, const char *name)
{
	const struct binding *b = scope_find(name);

	if (p->is_template || p->scope->depth > 2 || is_template_special(name))
		return true;
	return b && b->scope->depth < 2;
}

struct binding *parser_bind(struct parser *p, const char *name, enum binding_kind kind)
{
	const struct binding *b = scope_find(name);

	if (b && b->scope == p->scope)
		parser_fail(p, "'%s' is declared twice", name);
	return scope_bind(p->scope, p->arena, name, kind);
}

struct binding *parser_declare(struct parser *p, const char **name, enum binding_kind kind)
{
	bool renames = parser_renames(p, *name);
	struct binding *b = parser_bind(p, *name, kind);

	if (renames)
		*name = edit_fresh_name(p->function, *name);
	return b;
}

/* Outside of bodies a name may be declared several times. */
static struct binding *bind_again(struct parser *p, const char *name, enum binding_kind kind)
{
	struct binding *b = scope_find(name);

	if (!b)
		return parser_bind(p, name, kind);
	if (b->kind != kind)
		parser_fail(p, "'%s' is declared twice", name);
	return b;
}

/* Counts how many underscores our prefix needs to differ from this word. */
static void note_word(struct parser *p)
{
	const char *at = p->token.start, *end = at + p->token.len;
	size_t n = 0;

	if (*at == '%')
		at++;
	if ((size_t)(end - at) < strlen(PREFIX) || memcmp(at, PREFIX, strlen(PREFIX)) != 0)
		return;
	for (at += strlen(PREFIX); at < end && *at == '_'; at++)
		n++;
	if (n > p->underscores)
		p->underscores = n;
}

/* In a text of several that are linked, each may have its definition of a name, and the first
 * counts. Names without linkage belong to one text each: two of them are two things. */
static void check_twice(struct parser *p, const char *name, const char *linkage, const char *other)
{
	if (strncmp(linkage, ".weak", 5) != 0 || strncmp(other, ".weak", 5) != 0)
		parser_fail(p, "'%s' is defined twice", name);
}

/* The next token is the opening brace. */
static void skip_body(struct parser *p, struct function *f)
{
	size_t depth = 0;

	f->body_at = p->token.at;
	f->body_at.column++;
	f->body.start = p->token.start + 1;
	f->has_body = true;
	for (;; parser_next(p)) {
		if (p->token.kind == TOKEN_WORD)
			note_word(p);
		else if (p->token.kind == '{')
			depth++;
		else if (p->token.kind == '}' && !--depth)
			break;
		else if (p->token.kind == TOKEN_END)
			parser_fail(p, "the body of '%s' never ends", f->name);
		else if (p->token.kind == TOKEN_BAD)
			parser_fail(p, "this is not PTX");
	}
	f->body.len = (size_t)(p->token.start - f->body.start);
	f->whole.len = (size_t)(p->token.start + 1 - f->whole.start);
	parser_next(p);
}

/* Parses a directive of a function's head: .maxntid 256, 1, 1 */
static void parse_directive(struct parser *p, struct directive ***end)
{
	struct directive *d = arena_new(p->arena, struct directive);
	const char *start = p->token.start;

	d->name = parser_text(p, start + 1, start + p->token.len);
	do {
		uint64_t value;

		if (p->token.kind == TOKEN_NUMBER && d->value_count < 3 &&
		    token_integer(p->token.start, p->token.len, &value) && value <= UINT32_MAX)
			d->values[d->value_count++] = (uint32_t)value;
		if (parser_accept(p, ';'))
			break;
		parser_next(p);
	} while (p->token.kind == ',' || p->token.kind == TOKEN_NUMBER ||
		 p->token.kind == TOKEN_STRING || p->token.kind == TOKEN_WORD ||
		 (p->token.kind == ';' && !strcmp(d->name, "pragma")));
	d->text = parser_text(p, start, p->end);
	**end = d;
	*end = &d->next;
}

static void parse_list(struct parser *p, struct variable **end)
{
	parser_expect(p, '(');
	if (parser_accept(p, ')'))
		return;
	do
		parse_variables(p, ",)", &end);
	while (parser_accept(p, ','));
	parser_expect(p, ')');
}

/* The next token is .func, .entry or an attribute behind it. The linkage begins at @start. */
static void parse_function(struct parser *p, const char *start)
{
	struct function *f = arena_new(p->arena, struct function);
	struct directive **directives = &f->directives;
	const char *head_end = p->token.start;
	struct binding *b;

	f->module = p->module;
	f->at = p->token.at;
	f->is_kernel = parser_at(p, ".entry");
	f->whole.start = start;
	while (p->token.kind == TOKEN_DOT) { /* .func .attribute(...) */
		head_end = p->token.start + p->token.len;
		parser_next(p);
		if (p->token.kind == '(' && memcmp(head_end - 5, ".func", 5) != 0) {
			parser_skip_group(p, '(');
			head_end = p->end;
		}
	}
	f->linkage = parser_text(p, start, head_end);
	if (p->token.kind == '(')
		parse_list(p, &f->returns);
	f->name = parser_name(p);
	if (p->token.kind == '(')
		parse_list(p, &f->params);
	while (p->token.kind == TOKEN_DOT)
		parse_directive(p, &directives);
	f->whole.len = (size_t)(p->token.start + 1 - start);
	if (p->token.kind == '{')
		skip_body(p, f);
	else
		parser_expect(p, ';');
	*p->module->functions_end = f;
	p->module->functions_end = &f->next;
	b = bind_again(p, f->name, BINDING_FUNCTION);
	if (b->function && b->function->has_body && f->has_body)
		check_twice(p, f->name, b->function->linkage, f->linkage);
	else if (!b->function || f->has_body)
		b->function = f;
}

static bool is_definition(const char *linkage)
{
	return strcmp(linkage, ".extern") != 0;
}

/* The tables of the compiler's sin() etc. are the same in each text. */
static bool is_same_table(const struct variable *a, const struct variable *b)
{
	return !strncmp(a->name, "__cudart_", 9) && a->is_initialized && b->is_initialized &&
	       !strcmp(a->before, b->before) && !strcmp(a->after, b->after);
}

static void bind_variables(struct parser *p, struct variable *first, const char *linkage)
{
	for (struct variable *v = first; v; v = v->next) {
		struct binding *b = bind_again(p, v->name, BINDING_VARIABLE);

		v->of_module = true;
		v->linkage = linkage;
		if (b->variable && is_definition(b->variable->linkage) && is_definition(linkage)) {
			if (!is_same_table(b->variable, v))
				check_twice(p, v->name, b->variable->linkage, linkage);
		} else if (!b->variable || is_definition(linkage))
			b->variable = v;
	}
}

/* Parses a function or variables, with optional linkage. */
static void parse_declaration(struct parser *p)
{
	const char *start = p->token.start;
	struct variable **first = p->module->variables_end;
	const char *linkage = "";

	while (parser_at(p, ".visible") || parser_at(p, ".extern") || parser_at(p, ".weak") ||
	       parser_at(p, ".common")) {
		linkage = parser_token_text(p, &p->token);
		parser_next(p);
	}
	if (parser_at(p, ".func") || parser_at(p, ".entry")) {
		parse_function(p, start);
		return;
	}
	if (p->token.kind != TOKEN_DOT)
		parser_fail(p, "a directive expected");
	parse_variables(p, ";", &p->module->variables_end);
	parser_expect(p, ';');
	bind_variables(p, *first, linkage);
}

static void parse_version(struct parser *p)
{
	struct token number = p->token;
	const char *dot = memchr(number.start, '.', number.len);
	uint64_t major, minor;

	if (dot)
		parser_expect(p, TOKEN_NUMBER);
	if (!dot || !token_integer(number.start, (size_t)(dot - number.start), &major) ||
	    !token_integer(dot + 1, number.len - (size_t)(dot + 1 - number.start), &minor) ||
	    major > 99 || minor > 99)
		parser_fail(p, "a version expected");
	/* The text may be several that are linked. */
	if (major < p->module->version_major ||
	    (major == p->module->version_major && minor < p->module->version_minor))
		return;
	p->module->version_major = (unsigned)major;
	p->module->version_minor = (unsigned)minor;
}

static void parse_target(struct parser *p)
{
	const char *former = p->module->target;

	p->module->target = parser_name(p);
	if (former && strcmp(former, p->module->target) != 0)
		parser_fail(p, "several targets: %.40s and %.40s", former, p->module->target);
	while (parser_accept(p, ','))
		parser_expect(p, TOKEN_WORD);
}

static void parse_address_size(struct parser *p)
{
	static const char what[] = "an address size is 32 or 64";
	uint64_t size = parser_integer(p, 64, what);

	if (size != 32 && size != 64)
		parser_fail(p, what);
	p->module->address_size = (unsigned)size;
}

static void parse_file(struct parser *p)
{
	parser_expect(p, TOKEN_NUMBER);
	parser_expect(p, TOKEN_STRING);
	while (parser_accept(p, ','))
		parser_expect(p, TOKEN_NUMBER);
}

static void parse_section(struct parser *p)
{
	while (p->token.kind == TOKEN_DOT)
		parser_next(p);
	parser_skip_group(p, '{');
}

static void skip_statement(struct parser *p)
{
	while (p->token.kind != ';' && p->token.kind != TOKEN_END && p->token.kind != TOKEN_BAD)
		parser_next(p);
	parser_expect(p, ';');
}

static const struct {
	const char *name;
	void (*parse)(struct parser *p);
} directives[] = {
	{".version", parse_version}, {".target", parse_target},
	{".file", parse_file},       {".address_size", parse_address_size},
	{".section", parse_section}, {".pragma", skip_statement},
	{".alias", skip_statement},
};

static void parse_item(struct parser *p)
{
	for (size_t k = 0; k < sizeof(directives) / sizeof(directives[0]); k++) {
		if (parser_at(p, directives[k].name)) {
			parser_next(p);
			directives[k].parse(p);
			return;
		}
	}
	parse_declaration(p);
}

static void make_prefix(struct parser *p)
{
	size_t len = strlen(PREFIX) + p->underscores + 1;
	char *prefix = arena_alloc(p->arena, len + 1);

	memset(mempcpy(prefix, PREFIX, strlen(PREFIX)), '_', len - strlen(PREFIX));
	p->module->prefix = prefix;
}

static void parse_text(void *data)
{
	struct parser *p = data;
	struct module *module = p->module;

	module->scope = p->scope = arena_new(p->arena, struct scope);
	if (memchr(module->text, '\0', module->len))
		diag_stop(module->diag, -EINVAL, (struct position){0},
			  "the text contains a NUL byte");
	lex_init(&p->lexer, module->text, module->len, (struct position){1, 1});
	parser_next(p);
	while (p->token.kind != TOKEN_END)
		parse_item(p);
	if (!module->version_major)
		parser_fail(p, "no .version: this is not PTX");
	if (!module->target)
		parser_fail(p, "no .target: this is not PTX");
	make_prefix(p);
}

int parse_module(struct module *module, struct arena *arena, const char *text, size_t len)
{
	struct parser p = {.module = module, .arena = arena};

	*module = (struct module){
		.arena = arena, .diag = arena->diag, .text = text, .len = len, .address_size = 32};
	intern_init(&module->names, arena);
	intern_init(&module->mnemonics, arena);
	module->variables_end = &module->variables;
	module->functions_end = &module->functions;
	return diag_try(module->diag, parse_text, &p);
}

struct function *parse_copy(struct function *function, const char *name)
{
	struct module *module = function->module;
	struct function *copy = arena_new(module->arena, struct function);
	struct variable **end = &copy->params;

	*copy = *function;
	copy->name = intern_string(&module->names, name);
	copy->is_read = false;
	copy->next = NULL;
	for (const struct variable *v = function->params; v; v = v->next) {
		*end = arena_new(module->arena, struct variable);
		**end = *v;
		(*end)->next = NULL;
		end = &(*end)->next;
	}
	return copy;
}
