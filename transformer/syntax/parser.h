/* Shared by the files of the parser: parse.c (outside of bodies), parse-declaration.c,
 * parse-statement.c and parse-operand.c. Functions return false once the diag has an error. */
#pragma once

#include "syntax/edit.h"
#include "syntax/lex.h"
#include "syntax/scope.h"

struct parser {
	struct module *module;
	struct function *function; /* NULL outside of bodies */
	struct arena *arena;
	struct diag *diag;
	struct lexer lexer;
	struct token token; /* the next token */
	const char *end;    /* of the token before */
	struct scope *scope;

	/* Inside a body: the insertion point and the names in use. */
	struct cursor cursor;
	bool is_template;               /* all of its names are replaced by new ones */
	bool has_aliases;               /* some block stands for another one */
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
/* Skips from an opening bracket, the next token, to its closing one. */
bool parser_skip_group(struct parser *p);
/* The text between two places, interned. */
const char *parser_text(struct parser *p, const char *start, const char *end);
/* Takes a name; NULL after an error. */
const char *parser_name(struct parser *p);

/* Whether this name must be replaced by a new one, because all names of a body must differ. */
bool parser_renames(const struct parser *p, const char *name);
const char *parser_fresh(struct parser *p, const char *name);
/* Binds @name in the current scope, where it must not be bound yet. */
struct binding *parser_bind(struct parser *p, const char *name, enum binding_kind kind);

/* parse-declaration.c. The next token is the first dot of a declaration. @ends: the characters that
 * may follow the last one; one of them is the next token on return. Appends to @end. */
bool parse_variables(struct parser *p, const char *ends, struct variable ***end);
bool parse_registers(struct parser *p);

/* parse-operand.c */
bool parse_operands(struct parser *p, struct instruction *i);
struct reg *parse_register(struct parser *p); /* for guards */
/* The block of the label @name in this scope, perhaps not placed yet. NULL after an error. */
struct block *parse_label(struct parser *p, const char *name);

/* parse-statement.c. Parses to the end of the text. The caller opens the scope; this closes it. */
bool parse_statements(struct parser *p);
bool parser_open_scope(struct parser *p);
