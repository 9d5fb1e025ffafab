/* The outer level of a module: directives. */
#include "simcuda/ptx/parse/parse.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

int ptx_fail_at(struct ptx_parser *p, const struct ptx_token *token, const char *format, ...)
{
	va_list args;

	if (p->result)
		return p->result;
	p->result = -EINVAL;
	p->error->line = token->line;
	va_start(args, format);
	vsnprintf(p->error->message, sizeof(p->error->message), format, args);
	va_end(args);
	return p->result;
}

int ptx_no_memory(struct ptx_parser *p)
{
	if (!p->result) {
		p->result = -ENOMEM;
		p->error->line = 0;
		snprintf(p->error->message, sizeof(p->error->message), "out of memory");
	}
	return p->result;
}

void ptx_advance(struct ptx_parser *p)
{
	p->token = p->next;
	if (p->token.kind == PTX_TOKEN_BAD)
		ptx_fail(p, "%.*s", PTX_SHOW(&p->token));
	/* After a failure only END follows, so that loops over tokens end. */
	if (p->result)
		p->token.kind = PTX_TOKEN_END;
	else
		p->next = ptx_lex(&p->lexer);
}

bool ptx_at_mark(const struct ptx_parser *p, const char *mark)
{
	return ptx_token_is(&p->token, PTX_TOKEN_MARK, mark);
}

bool ptx_at_dot(const struct ptx_parser *p, const char *word)
{
	return ptx_token_is(&p->token, PTX_TOKEN_DOT, word);
}

bool ptx_accept(struct ptx_parser *p, const char *mark)
{
	if (!ptx_at_mark(p, mark))
		return false;
	ptx_advance(p);
	return true;
}

int ptx_expect(struct ptx_parser *p, const char *mark)
{
	if (p->result)
		return p->result;
	if (p->token.kind == PTX_TOKEN_END)
		return ptx_fail(p, "expected %s, found the end of the text", mark);
	if (!ptx_at_mark(p, mark))
		return ptx_fail(p, "expected %s, found %.*s", mark, PTX_SHOW(&p->token));
	ptx_advance(p);
	return p->result;
}

/* Debug directives end with their line. */
void ptx_skip_line(struct ptx_parser *p)
{
	int line = p->token.line;

	while (p->token.kind != PTX_TOKEN_END && p->token.line == line)
		ptx_advance(p);
}

int ptx_skip_braces(struct ptx_parser *p)
{
	int r = ptx_expect(p, "{");

	for (unsigned depth = 1; !r && depth;) {
		if (p->token.kind == PTX_TOKEN_END)
			return ptx_fail(p, "expected }, found the end of the text");
		depth += ptx_at_mark(p, "{") ? 1u : 0u;
		depth -= ptx_at_mark(p, "}") ? 1u : 0u;
		ptx_advance(p);
		r = p->result;
	}
	return r;
}

int ptx_skip_statement(struct ptx_parser *p)
{
	while (p->token.kind != PTX_TOKEN_END && !ptx_at_mark(p, ";"))
		ptx_advance(p);
	return ptx_expect(p, ";");
}

static int parse_version(struct ptx_parser *p)
{
	double version = 0;

	if (p->token.kind == PTX_TOKEN_DOUBLE)
		memcpy(&version, &p->token.bits, sizeof(version));
	if (version < 5.95 || version >= 10)
		return ptx_fail(p, "PTX version %.*s is not one from 6.0 to 9",
				PTX_SHOW(&p->token));
	p->version_seen = true;
	ptx_advance(p);
	return p->result;
}

static int parse_target(struct ptx_parser *p)
{
	do {
		if (p->token.kind != PTX_TOKEN_WORD)
			return ptx_fail(p, "expected a target");
		ptx_advance(p);
	} while (ptx_accept(p, ","));
	return p->result;
}

static int parse_address_size(struct ptx_parser *p)
{
	if (p->token.kind != PTX_TOKEN_INTEGER || p->token.bits != 64)
		return ptx_fail(p, "only .address_size 64 is known");
	p->address_size_seen = true;
	ptx_advance(p);
	return p->result;
}

static int skip_section(struct ptx_parser *p)
{
	ptx_advance(p); /* its name, .debug_str */
	return ptx_skip_braces(p);
}

static int skip_file(struct ptx_parser *p)
{
	ptx_skip_line(p);
	return p->result;
}

static const struct {
	const char *word;
	int (*parse)(struct ptx_parser *p);
} directives[] = {
	{"version", parse_version},
	{"target", parse_target},
	{"address_size", parse_address_size},
	{"section", skip_section},
	{"file", skip_file},
	{"loc", skip_file},
	{"pragma", ptx_skip_statement},
};

static const struct {
	const char *word;
	enum ptx_space space;
} spaces[] = {
	{"global", PTX_SPACE_GLOBAL},
	{"const", PTX_SPACE_CONST},
	{"shared", PTX_SPACE_SHARED},
};

/* Behind the linkage words. */
static int parse_declaration(struct ptx_parser *p, bool is_extern)
{
	for (size_t k = 0; k < sizeof(spaces) / sizeof(spaces[0]); k++) {
		if (!ptx_at_dot(p, spaces[k].word))
			continue;
		ptx_advance(p);
		return ptx_parse_variables(p, spaces[k].space, is_extern);
	}
	if (ptx_at_dot(p, "entry") || ptx_at_dot(p, "func")) {
		bool is_kernel = ptx_at_dot(p, "entry");
		ptx_advance(p);
		return ptx_parse_function(p, is_kernel, is_extern);
	}
	return ptx_fail(p, "unknown directive .%.*s", PTX_SHOW(&p->token));
}

static int parse_directive(struct ptx_parser *p)
{
	bool is_extern = false;

	if (p->token.kind != PTX_TOKEN_DOT)
		return ptx_fail(p, "expected a directive, found %.*s", PTX_SHOW(&p->token));
	for (size_t k = 0; k < sizeof(directives) / sizeof(directives[0]); k++) {
		if (ptx_at_dot(p, directives[k].word)) {
			ptx_advance(p);
			return p->result ? p->result : directives[k].parse(p);
		}
	}
	if (!p->version_seen || !p->address_size_seen)
		return ptx_fail(p, "expected .version and .address_size before .%.*s",
				PTX_SHOW(&p->token));
	while (ptx_at_dot(p, "visible") || ptx_at_dot(p, "extern") || ptx_at_dot(p, "weak") ||
	       ptx_at_dot(p, "common")) {
		is_extern |= ptx_at_dot(p, "extern");
		ptx_advance(p);
	}
	return parse_declaration(p, is_extern);
}

int ptx_parse_module(struct ptx_parser *p)
{
	ptx_advance(p);
	ptx_advance(p);
	if (p->token.kind == PTX_TOKEN_END)
		return ptx_fail(p, "there is no PTX");
	while (!p->result && p->token.kind != PTX_TOKEN_END)
		parse_directive(p);
	if (!p->result && (!p->version_seen || !p->address_size_seen))
		ptx_fail(p, "there is no .version or no .address_size");
	return p->result;
}
