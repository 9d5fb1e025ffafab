/* The text outside of bodies: the module's directives, its variables and the heads of functions. */
#include "syntax/parse.h"

#include "syntax/opcode.h"
#include "syntax/parser.h"

#include <errno.h>
#include <string.h>

#define PREFIX "weir"

bool parser_fail(struct parser *p, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	diag_vfail(p->diag, -EINVAL, p->token.at, format, args);
	va_end(args);
	return false;
}

bool parser_no_memory(struct parser *p)
{
	diag_no_memory(p->diag);
	return false;
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

bool parser_expect(struct parser *p, int kind)
{
	if (parser_accept(p, kind))
		return true;
	if (kind < TOKEN_WORD)
		return parser_fail(p, "'%c' expected", kind);
	return parser_fail(p, "%s expected", kind == TOKEN_WORD ? "a name" : "a number");
}

bool parser_at(const struct parser *p, const char *text)
{
	return token_is(&p->token, text);
}

bool parser_skip_group(struct parser *p)
{
	struct position at = p->token.at;
	size_t depth = 0;

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
			diag_fail(p->diag, -EINVAL, at, "this bracket is never closed");
			return false;
		case TOKEN_BAD:
			return parser_fail(p, "this is not PTX");
		}
		parser_next(p);
	} while (depth);
	return true;
}

const char *parser_text(struct parser *p, const char *start, const char *end)
{
	const char *text = intern_text(&p->module->names, start, (size_t)(end - start));

	if (!text)
		parser_no_memory(p);
	return text;
}

const char *parser_name(struct parser *p)
{
	struct token token = p->token;

	return parser_expect(p, TOKEN_WORD) ? parser_text(p, token.start, token.start + token.len)
					    : NULL;
}

/* Templates name these special registers. */
static bool is_template_special(const char *name)
{
	static const char *const names[] = {"%tid",         "%ntid",        "%ctaid",
					    "%nctaid",      "%clock",       "%globaltimer",
					    "%lanemask_eq", "%lanemask_lt", "%dynamic_smem_size"};

	for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++)
		if (!strcmp(name, names[k]))
			return true;
	return false;
}

bool parser_renames(const struct parser *p, const char *name)
{
	const struct binding *b = scope_find(name);

	if (p->is_template || p->scope->depth > 2 || is_template_special(name))
		return true;
	return b && b->scope->depth < 2;
}

const char *parser_fresh(struct parser *p, const char *name)
{
	const char *fresh = edit_fresh_name(p->function, name);

	if (!fresh)
		parser_no_memory(p);
	return fresh;
}

struct binding *parser_bind(struct parser *p, const char *name, enum binding_kind kind)
{
	struct binding *b = scope_find(name);

	if (b && b->scope == p->scope) {
		parser_fail(p, "'%s' is declared twice", name);
		return NULL;
	}
	b = scope_bind(p->scope, p->arena, name, kind);
	if (!b)
		parser_no_memory(p);
	return b;
}

/* Counts how many underscores our prefix needs to differ from this word. */
static void note_word(const struct token *token, size_t *underscores)
{
	const char *at = token->start, *end = token->start + token->len;
	size_t n = 0;

	if (*at == '%')
		at++;
	if ((size_t)(end - at) < strlen(PREFIX) || memcmp(at, PREFIX, strlen(PREFIX)) != 0)
		return;
	for (at += strlen(PREFIX); at < end && *at == '_'; at++)
		n++;
	if (n > *underscores)
		*underscores = n;
}

/* The next token is the opening brace. */
static bool skip_body(struct parser *p, struct function *f, size_t *underscores)
{
	size_t depth = 0;

	f->body_at = p->token.at;
	f->body_at.column++;
	f->body.start = p->token.start + 1;
	f->has_body = true;
	for (;; parser_next(p)) {
		if (p->token.kind == TOKEN_WORD)
			note_word(&p->token, underscores);
		else if (p->token.kind == '{')
			depth++;
		else if (p->token.kind == '}' && !--depth)
			break;
		else if (p->token.kind == TOKEN_END)
			return parser_fail(p, "the body of '%s' never ends", f->name);
		else if (p->token.kind == TOKEN_BAD)
			return parser_fail(p, "this is not PTX");
	}
	f->body.len = (size_t)(p->token.start - f->body.start);
	f->whole.len = (size_t)(p->token.start + 1 - f->whole.start);
	parser_next(p);
	return true;
}

/* Parses a directive of a function's head: .maxntid 256, 1, 1 */
static bool parse_directive(struct parser *p, struct directive ***end)
{
	struct directive *d = arena_new(p->arena, struct directive);
	const char *start = p->token.start, *stop;

	if (!d)
		return parser_no_memory(p);
	d->name = parser_text(p, start + 1, start + p->token.len);
	do {
		uint64_t value;
		bool is_pragma_end = p->token.kind == ';';

		if (p->token.kind == TOKEN_NUMBER && d->value_count < 3 &&
		    token_integer(p->token.start, p->token.len, &value) && value <= UINT32_MAX)
			d->values[d->value_count++] = (uint32_t)value;
		stop = p->token.start + p->token.len;
		parser_next(p);
		if (is_pragma_end)
			break;
	} while (p->token.kind == ',' || p->token.kind == TOKEN_NUMBER ||
		 p->token.kind == TOKEN_STRING || p->token.kind == TOKEN_WORD ||
		 (p->token.kind == ';' && d->name && !strcmp(d->name, "pragma")));
	d->text = parser_text(p, start, stop);
	**end = d;
	*end = &d->next;
	return d->name && d->text;
}

static bool parse_list(struct parser *p, struct variable ***end)
{
	if (!parser_expect(p, '('))
		return false;
	if (p->token.kind != ')') {
		do {
			if (!parse_variables(p, ",)", end))
				return false;
		} while (parser_accept(p, ','));
	}
	return parser_expect(p, ')');
}

static bool bind_function(struct parser *p, struct function *f)
{
	struct binding *b = scope_find(f->name);

	if (!b)
		b = parser_bind(p, f->name, BINDING_FUNCTION);
	if (!b)
		return false;
	if (b->kind != BINDING_FUNCTION)
		return parser_fail(p, "'%s' is declared twice", f->name);
	if (!b->function || f->has_body)
		b->function = f;
	return true;
}

/* The next token is .func, .entry or an attribute behind it. The linkage begins at @start. */
static bool parse_function(struct parser *p, const char *start, size_t *underscores)
{
	struct function *f = arena_new(p->arena, struct function);
	struct variable **returns, **params;
	struct directive **directives;
	const char *head_end = p->token.start;

	if (!f)
		return parser_no_memory(p);
	f->module = p->module;
	f->at = p->token.at;
	f->is_kernel = parser_at(p, ".entry");
	f->whole.start = start;
	returns = &f->returns;
	params = &f->params;
	directives = &f->directives;
	while (p->token.kind == TOKEN_DOT) { /* .func .attribute(...) */
		head_end = p->token.start + p->token.len;
		parser_next(p);
		if (p->token.kind == '(' && memcmp(head_end - 5, ".func", 5) != 0) {
			if (!parser_skip_group(p))
				return false;
			head_end = p->end;
		}
	}
	f->linkage = parser_text(p, start, head_end);
	if (p->token.kind == '(' && !parse_list(p, &returns))
		return false;
	f->name = parser_name(p);
	if (!f->linkage || !f->name || (p->token.kind == '(' && !parse_list(p, &params)))
		return false;
	while (p->token.kind == TOKEN_DOT)
		if (!parse_directive(p, &directives))
			return false;
	f->whole.len = (size_t)(p->token.start + 1 - start);
	if (p->token.kind == '{' ? !skip_body(p, f, underscores) : !parser_expect(p, ';'))
		return false;
	*p->module->functions_end = f;
	p->module->functions_end = &f->next;
	return bind_function(p, f);
}

static bool bind_variables(struct parser *p, struct variable *first, const char *linkage)
{
	for (struct variable *v = first; v; v = v->next) {
		struct binding *b = scope_find(v->name);

		v->of_module = true;
		v->linkage = linkage;
		if (!b)
			b = parser_bind(p, v->name, BINDING_VARIABLE);
		if (!b)
			return false;
		if (b->kind != BINDING_VARIABLE)
			return parser_fail(p, "'%s' is declared twice", v->name);
		if (!b->variable || strcmp(linkage, ".extern") != 0)
			b->variable = v;
	}
	return true;
}

/* Parses a function or variables, with optional linkage. */
static bool parse_declaration(struct parser *p, size_t *underscores)
{
	const char *start = p->token.start;
	struct variable **first = p->module->variables_end;
	const char *linkage = "";

	while (parser_at(p, ".visible") || parser_at(p, ".extern") || parser_at(p, ".weak") ||
	       parser_at(p, ".common")) {
		linkage = parser_text(p, p->token.start, p->token.start + p->token.len);
		if (!linkage)
			return false;
		parser_next(p);
	}
	if (parser_at(p, ".func") || parser_at(p, ".entry"))
		return parse_function(p, start, underscores);
	if (p->token.kind != TOKEN_DOT)
		return parser_fail(p, "a directive expected");
	return parse_variables(p, ";", &p->module->variables_end) && parser_expect(p, ';') &&
	       bind_variables(p, *first, linkage);
}

static bool parse_version(struct parser *p)
{
	struct token number = p->token;
	const char *dot = memchr(number.start, '.', number.len);
	uint64_t major, minor;

	if (!dot || !parser_expect(p, TOKEN_NUMBER) ||
	    !token_integer(number.start, (size_t)(dot - number.start), &major) ||
	    !token_integer(dot + 1, number.len - (size_t)(dot + 1 - number.start), &minor) ||
	    major > 99 || minor > 99)
		return parser_fail(p, "a version expected");
	p->module->version_major = (unsigned)major;
	p->module->version_minor = (unsigned)minor;
	return true;
}

static bool parse_target(struct parser *p)
{
	p->module->target = parser_name(p);
	if (!p->module->target)
		return false;
	while (parser_accept(p, ','))
		if (!parser_expect(p, TOKEN_WORD))
			return false;
	return true;
}

static bool parse_address_size(struct parser *p)
{
	struct token number = p->token;
	uint64_t size;

	if (!parser_expect(p, TOKEN_NUMBER) || !token_integer(number.start, number.len, &size) ||
	    (size != 32 && size != 64))
		return parser_fail(p, "an address size is 32 or 64");
	p->module->address_size = (unsigned)size;
	return true;
}

static bool parse_file(struct parser *p)
{
	if (!parser_expect(p, TOKEN_NUMBER) || !parser_expect(p, TOKEN_STRING))
		return false;
	while (parser_accept(p, ','))
		if (!parser_expect(p, TOKEN_NUMBER))
			return false;
	return true;
}

static bool parse_section(struct parser *p)
{
	while (p->token.kind == TOKEN_DOT)
		parser_next(p);
	return p->token.kind == '{' ? parser_skip_group(p) : parser_expect(p, '{');
}

static bool skip_statement(struct parser *p)
{
	while (p->token.kind != ';' && p->token.kind != TOKEN_END && p->token.kind != TOKEN_BAD)
		parser_next(p);
	return parser_expect(p, ';');
}

static const struct {
	const char *name;
	bool (*parse)(struct parser *p);
} directives[] = {
	{".version", parse_version}, {".target", parse_target},
	{".file", parse_file},       {".address_size", parse_address_size},
	{".section", parse_section}, {".pragma", skip_statement},
	{".alias", skip_statement},
};

static bool parse_item(struct parser *p, size_t *underscores)
{
	for (size_t k = 0; k < sizeof(directives) / sizeof(directives[0]); k++) {
		if (parser_at(p, directives[k].name)) {
			parser_next(p);
			return directives[k].parse(p);
		}
	}
	return parse_declaration(p, underscores);
}

static bool make_prefix(struct parser *p, size_t underscores)
{
	size_t len = strlen(PREFIX) + underscores + 1;
	char *prefix = arena_alloc(p->arena, len + 1);

	if (!prefix)
		return parser_no_memory(p);
	memset(mempcpy(prefix, PREFIX, strlen(PREFIX)), '_', len - strlen(PREFIX));
	p->module->prefix = prefix;
	return true;
}

int parse_module(struct module *module, struct arena *arena, struct diag *diag, const char *text,
		 size_t len)
{
	struct parser p = {.module = module, .arena = arena, .diag = diag};
	size_t underscores = 0;

	*module = (struct module){
		.arena = arena, .diag = diag, .text = text, .len = len, .address_size = 32};
	intern_init(&module->names, arena);
	intern_init(&module->mnemonics, arena);
	module->variables_end = &module->variables;
	module->functions_end = &module->functions;
	module->scope = p.scope = arena_new(arena, struct scope);
	module->broken_block.placed = true;
	module->broken_reg.name = module->broken_block.label = module->broken_variable.name = "";
	if (!p.scope)
		return diag_no_memory(diag);
	if (memchr(text, '\0', len))
		return diag_fail(diag, -EINVAL, (struct position){0},
				 "the text contains a NUL byte");
	lex_init(&p.lexer, text, len, (struct position){1, 1});
	parser_next(&p);
	while (p.token.kind != TOKEN_END && !diag->error)
		parse_item(&p, &underscores);
	if (!diag->error && !module->version_major)
		parser_fail(&p, "no .version: this is not PTX");
	if (!diag->error && !module->target)
		parser_fail(&p, "no .target: this is not PTX");
	if (!diag->error)
		make_prefix(&p, underscores);
	return diag->error;
}

struct function *parse_copy(struct function *function, const char *name)
{
	struct module *module = function->module;
	struct function *copy = arena_new(module->arena, struct function);
	struct variable **end;

	if (!copy)
		goto no_memory;
	*copy = *function;
	copy->name = intern_string(&module->names, name);
	copy->is_read = false;
	copy->next = NULL;
	end = &copy->params;
	for (const struct variable *v = function->params; v; v = v->next) {
		*end = arena_new(module->arena, struct variable);
		if (!*end)
			goto no_memory;
		**end = *v;
		(*end)->next = NULL;
		end = &(*end)->next;
	}
	if (copy->name)
		return copy;
no_memory:
	diag_no_memory(module->diag);
	return NULL;
}
