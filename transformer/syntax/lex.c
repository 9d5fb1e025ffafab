#include "syntax/lex.h"

#include <string.h>

enum {
	LETTER = 1,
	DIGIT = 2,
	SIGIL = 4, /* may begin a name, as letters may */
	BLANK = 8,
	PUNCTUATION = 16,
};

static const unsigned char kinds[256] = {
	['a' ... 'z'] = LETTER, ['A' ... 'Z'] = LETTER, ['0' ... '9'] = DIGIT, ['_'] = LETTER,
	['$'] = LETTER,         ['%'] = SIGIL,          [' '] = BLANK,         ['\t'] = BLANK,
	['\r'] = BLANK,         ['\n'] = BLANK,         ['\f'] = BLANK,        ['\v'] = BLANK,
	['('] = PUNCTUATION,    [')'] = PUNCTUATION,    ['['] = PUNCTUATION,   [']'] = PUNCTUATION,
	['{'] = PUNCTUATION,    ['}'] = PUNCTUATION,    ['<'] = PUNCTUATION,   ['>'] = PUNCTUATION,
	[','] = PUNCTUATION,    [';'] = PUNCTUATION,    [':'] = PUNCTUATION,   ['@'] = PUNCTUATION,
	['!'] = PUNCTUATION,    ['+'] = PUNCTUATION,    ['-'] = PUNCTUATION,   ['|'] = PUNCTUATION,
	['='] = PUNCTUATION,    ['*'] = PUNCTUATION,    ['/'] = PUNCTUATION,   ['~'] = PUNCTUATION,
	['&'] = PUNCTUATION,    ['^'] = PUNCTUATION,    ['?'] = PUNCTUATION,
};

void lex_init(struct lexer *lexer, const char *text, size_t len, struct position at)
{
	*lexer = (struct lexer){.at = text,
				.end = text + len,
				.line_start = text - (at.column - 1),
				.line = at.line};
}

static bool is(char c, unsigned mask)
{
	return kinds[(unsigned char)c] & mask;
}

/* The character @ahead of the current one; NUL behind the end. */
static char peek(const struct lexer *lexer, size_t ahead)
{
	return (size_t)(lexer->end - lexer->at) > ahead ? lexer->at[ahead] : '\0';
}

static void step(struct lexer *lexer)
{
	if (*lexer->at++ == '\n') {
		lexer->line++;
		lexer->line_start = lexer->at;
	}
}

/* False: no comment, or an unterminated one, at whose start the lexer stays. */
static bool skip_comment(struct lexer *lexer)
{
	struct lexer begin = *lexer;

	if (peek(lexer, 0) != '/')
		return false;
	if (peek(lexer, 1) == '/') {
		while (lexer->at < lexer->end && *lexer->at != '\n')
			lexer->at++;
		return true;
	}
	if (peek(lexer, 1) != '*')
		return false;
	for (lexer->at += 2; lexer->at < lexer->end; step(lexer)) {
		if (lexer->at[0] == '*' && peek(lexer, 1) == '/') {
			lexer->at += 2;
			return true;
		}
	}
	*lexer = begin;
	return false;
}

static void skip_blanks(struct lexer *lexer)
{
	do {
		while (lexer->at < lexer->end && is(*lexer->at, BLANK))
			step(lexer);
	} while (skip_comment(lexer));
}

static void skip_word(struct lexer *lexer)
{
	while (is(peek(lexer, 0), LETTER | DIGIT))
		lexer->at++;
}

static int lex_dot(struct lexer *lexer)
{
	const char *word = ++lexer->at;

	skip_word(lexer);
	while (peek(lexer, 0) == ':' && peek(lexer, 1) == ':' &&
	       is(peek(lexer, 2), LETTER | DIGIT)) {
		lexer->at += 2;
		skip_word(lexer);
	}
	return lexer->at > word ? TOKEN_DOT : TOKEN_BAD;
}

/* Takes every character that can belong to a number. token_integer() checks the value later. */
static int lex_number(struct lexer *lexer)
{
	bool hex = peek(lexer, 0) == '0' && (peek(lexer, 1) | 32) == 'x';
	bool bits = peek(lexer, 0) == '0' &&
		    ((peek(lexer, 1) | 32) == 'f' || (peek(lexer, 1) | 32) == 'd');

	while (is(peek(lexer, 0), LETTER | DIGIT) || peek(lexer, 0) == '.') {
		bool exponent = !hex && !bits && (*lexer->at | 32) == 'e';

		lexer->at++;
		if (exponent && (peek(lexer, 0) == '-' || peek(lexer, 0) == '+'))
			lexer->at++;
	}
	return TOKEN_NUMBER;
}

static int lex_string(struct lexer *lexer)
{
	for (lexer->at++; lexer->at < lexer->end && *lexer->at != '\n'; lexer->at++) {
		if (*lexer->at == '"') {
			lexer->at++;
			return TOKEN_STRING;
		}
		if (*lexer->at == '\\' && peek(lexer, 1) && peek(lexer, 1) != '\n')
			lexer->at++;
	}
	return TOKEN_BAD;
}

static int lex_any(struct lexer *lexer)
{
	char c = peek(lexer, 0);

	if (is(c, LETTER | SIGIL)) {
		lexer->at++;
		skip_word(lexer);
		return TOKEN_WORD;
	}
	if (c == '.')
		return lex_dot(lexer);
	if (is(c, DIGIT))
		return lex_number(lexer);
	if (c == '"')
		return lex_string(lexer);
	if (is(c, PUNCTUATION) && !(c == '/' && peek(lexer, 1) == '*')) {
		lexer->at++;
		return c;
	}
	return TOKEN_BAD;
}

struct token lex_next(struct lexer *lexer)
{
	struct token token;

	skip_blanks(lexer);
	token = (struct token){.start = lexer->at,
			       .at = {.line = lexer->line,
				      .column = (uint32_t)(lexer->at - lexer->line_start) + 1}};
	if (lexer->at == lexer->end)
		return token;
	token.kind = lex_any(lexer);
	token.len = (size_t)(lexer->at - token.start);
	return token;
}

bool token_is(const struct token *token, const char *text)
{
	return token->len == strlen(text) && !memcmp(token->start, text, token->len);
}

static int digit_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : 99;
}

bool token_integer(const char *text, size_t len, uint64_t *value)
{
	unsigned base = 10;
	uint64_t n = 0;
	size_t k = 0;

	if (len && (text[len - 1] | 32) == 'u')
		len--;
	if (len > 2 && text[0] == '0' && ((text[1] | 32) == 'x' || (text[1] | 32) == 'b')) {
		base = (text[1] | 32) == 'x' ? 16 : 2;
		k = 2;
	} else if (len > 1 && text[0] == '0') {
		base = 8;
		k = 1;
	}
	if (k == len)
		return false;
	for (; k < len; k++) {
		unsigned digit = (unsigned)digit_value(text[k]);

		if (digit >= base || __builtin_mul_overflow(n, base, &n) ||
		    __builtin_add_overflow(n, digit, &n))
			return false;
	}
	*value = n;
	return true;
}
