/* PTX text to tokens. A dot belongs to the word behind it (`.s32`, `.shared::cta`), except in
 * special registers, whose component is part of their name (`%tid.x`). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ptx_token_kind {
	PTX_TOKEN_END,
	PTX_TOKEN_WORD,    /* name, register, opcode */
	PTX_TOKEN_DOT,     /* .word, text without the dot */
	PTX_TOKEN_INTEGER, /* bits: its value */
	PTX_TOKEN_FLOAT,   /* 0f…: bits of a float */
	PTX_TOKEN_DOUBLE,  /* 0d…, 1.5: bits of a double */
	PTX_TOKEN_STRING,  /* text without the quotes */
	PTX_TOKEN_MARK,    /* one character of punctuation, or one of << >> == != <= >= && || */
	PTX_TOKEN_BAD,     /* text: what is wrong */
};

struct ptx_token {
	enum ptx_token_kind kind;
	const char *text;
	size_t len;
	uint64_t bits;
	int line;
};

struct ptx_lexer {
	const char *at, *end;
	int line;
	bool open_comment; /* the text ends in one */
};

/* The next token; behind the last one always END. */
struct ptx_token ptx_lex(struct ptx_lexer *lexer);

bool ptx_token_is(const struct ptx_token *token, enum ptx_token_kind kind, const char *text);
