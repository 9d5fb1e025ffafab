/* Shared by the files of the parser: parse.c (outside of bodies), parse-declaration.c,
 * parse-statement.c and parse-operand.c. An error stops them (diag.h). */
#pragma once

#include "syntax/edit.h"
#include "syntax/lex.h"
#include "syntax/scope.h"

struct parser {
	struct module *module;
	struct function *function; /* NULL outside of bodies */
	struct arena *arena;
	struct lexer lexer;
	struct token token; /* the next token */
	const char *end;    /* of the token before */
	struct scope *scope;
	size_t underscores; /* that our prefix needs to differ from all words */

	/* Inside a body: the insertion point and the names in use. */
	struct cursor cursor;
	bool is_template;               /* all of its names are replaced by new ones */
	bool has_aliases;               /* some block stands for another one */
	const struct operand *operands; /* %0, %1 ... */
	size_t operand_count;
};

_Noreturn void parser_fail(struct parser *p, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

void parser_next(struct parser *p);
/* Takes the next token if it is of @kind. */
bool parser_accept(struct parser *p, int kind);
void parser_expect(struct parser *p, int kind);
bool parser_at(const struct parser *p, const char *text);
/* Skips from the bracket @open, the next token, to its closing one. */
void parser_skip_group(struct parser *p, int open);
/* The text between two places, interned; that of a token. */
const char *parser_text(struct parser *p, const char *start, const char *end);
const char *parser_token_text(struct parser *p, const struct token *token);
const char *parser_name(struct parser *p);
/* Takes an integer. @what: the message if it is none, or above @max. */
uint64_t parser_integer(struct parser *p, uint64_t max, const char *what);

/* Whether this name must be replaced by a new one, because all names of a body must differ. */
bool parser_renames(const struct parser *p, const char *name);
/* Binds @name in the current scope, where it must not be bound yet. */
struct binding *parser_bind(struct parser *p, const char *name, enum binding_kind kind);
/* The same. Then *@name becomes its name in the IR, which is a new one if it must be replaced. */
struct binding *parser_declare(struct parser *p, const char **name, enum binding_kind kind);

/* parse-declaration.c. The next token is the first dot of a declaration. @ends: the characters that
 * may follow the last one; one of them is the next token on return. Appends to @end. */
void parse_variables(struct parser *p, const char *ends, struct variable ***end);
void parse_registers(struct parser *p);

/* parse-operand.c */
void parse_operands(struct parser *p, struct instruction *i);
struct reg *parse_register(struct parser *p); /* for guards */
/* The block of the label @name in this scope, perhaps not placed yet. */
struct block *parse_label(struct parser *p, const char *name);

/* parse-statement.c. Parses to the end of the text. The caller opens the scope; this closes it. */
void parse_statements(void *parser);
void parser_open_scope(struct parser *p);
/* Runs @parse over @text. Closes all scopes but the module's, also if an error stops it. Returns
 * the error, which is in the diag. */
int parser_run(struct parser *p, void (*parse)(void *parser), const char *text, size_t len,
	       struct position at);
