/* PTX text to tokens, one at a time. */
#pragma once

#include "syntax/diag.h"

#include <stdbool.h>
#include <stddef.h>

enum token_kind {
	TOKEN_END,
	TOKEN_BAD, /* not of PTX: an open comment or string, a stray character */
	/* Punctuation is its own character. */
	TOKEN_WORD = 256, /* %r1, $L__BB0, ld, WARP_SZ */
	TOKEN_DOT,        /* .global, .shared::cluster; the dot included */
	TOKEN_NUMBER,     /* as written: 12, 0xffU, 0f3F800000, 1.5e-3, 9.0 */
	TOKEN_STRING,     /* the quotes included */
};

struct token {
	int kind;
	const char *start;
	size_t len;
	struct position at;
};

struct lexer {
	const char *at, *end, *line_start;
	uint32_t line;
};

/* @line: of the first character. */
void lex_init(struct lexer *lexer, const char *text, size_t len, struct position at);
struct token lex_next(struct lexer *lexer);

bool token_is(const struct token *token, const char *text);
/* An integer as the PTX ISA spells them; false: it is something else or does not fit. */
bool token_integer(const char *text, size_t len, uint64_t *value);
