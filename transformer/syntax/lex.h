/* Splits PTX text into tokens. */
#pragma once

#include "syntax/diag.h"

#include <stdbool.h>
#include <stddef.h>

enum token_kind {
	TOKEN_END,
	TOKEN_BAD, /* not PTX: an unterminated comment or string, or a stray character */
	/* Punctuation has its character as its kind. */
	TOKEN_WORD = 256, /* %r1, $L__BB0, ld, WARP_SZ */
	TOKEN_DOT,        /* .global, .shared::cluster; the dot included */
	TOKEN_NUMBER,     /* as spelled: 12, 0xffU, 0f3F800000, 1.5e-3, 9.0 */
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

/* @at: the place of the first character. */
void lex_init(struct lexer *lexer, const char *text, size_t len, struct position at);
struct token lex_next(struct lexer *lexer);

bool token_is(const struct token *token, const char *text);
/* The value of an integer in any spelling of the PTX ISA. False: no integer, or too large. */
bool token_integer(const char *text, size_t len, uint64_t *value);
