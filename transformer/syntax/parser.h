/* What the files of the parser share: parse.c (outside bodies), parse-declaration.c,
 * parse-statement.c (inside), parse-operand.c. Functions return false once the diag has an error.
 */
#pragma once

#include "syntax/edit.h"
#include "syntax/lex.h"
#include "syntax/scope.h"

struct parser {
	struct module *module;
	struct function *function; /* NULL outside */
	struct arena *arena;
	struct diag *diag;
	struct lexer lexer;
	struct token token; /* the next one */
	const char *end;    /* of the one before */
	struct scope *scope;

	/* Inside: where instructions go, and what they may name. */
	struct cursor cursor;
	bool is_template;               /* its names are all new */
	bool has_aliases;               /* some block is another */
	const struct operand *operands; /* %0, %1 ... */
	size_t operand_count;
};

bool parser_fail(struct parser *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool parser_no_memory(struct parser *p);

void parser_next(struct parser *p);
/* Takes the next token if it is of @kind. */
bool parser_accept(struct parser *p, int kind);
bool parser_expect(struct parser *p, int kind);
bool parser_at(const struct parser *p, const char *text);
/* Takes tokens up to a closing bracket that fits the next token, an opening one. */
bool parser_skip_group(struct parser *p);
/* The text between two places, interned. */
const char *parser_text(struct parser *p, const char *start, const char *end);
/* Takes a name; NULL after an error. */
const char *parser_name(struct parser *p);

/* Is this name, in this place, to be replaced by a new one, so that all names of a body differ? */
bool parser_renames(const struct parser *p, const char *name);
const char *parser_fresh(struct parser *p, const char *name);
/* Binds @name in the current scope, where it must be new. */
struct binding *parser_bind(struct parser *p, const char *name, enum binding_kind kind);

/* parse-declaration.c. Next is the first dot of a declaration of variables or parameters. @ends:
 * the characters behind the last one, one of which stands next when this returns. Appends to
 * @end. */
bool parse_variables(struct parser *p, const char *ends, struct variable ***end);
bool parse_registers(struct parser *p);

/* parse-operand.c */
bool parse_operands(struct parser *p, struct instruction *i);
struct reg *parse_register(struct parser *p); /* a guard */
/* The block that the label @name means here, perhaps not placed yet; NULL after an error. */
struct block *parse_label(struct parser *p, const char *name);

/* parse-statement.c: all statements up to the end of the text, in a scope that has been opened for
 * them and is closed behind the last. */
bool parse_statements(struct parser *p);
bool parser_open_scope(struct parser *p);
