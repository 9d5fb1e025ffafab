#include "simcuda/ptx/parse/lex.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER_MAX 64 /* characters */

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_word(char c)
{
	return is_letter(c) || is_digit(c) || c == '_' || c == '$';
}

/* The character @ahead of the current one; NUL past the end. */
static char peek(const struct ptx_lexer *lexer, size_t ahead)
{
	return (size_t)(lexer->end - lexer->at) > ahead ? lexer->at[ahead] : '\0';
}

static bool skip_comment(struct ptx_lexer *lexer)
{
	if (peek(lexer, 0) != '/' || (peek(lexer, 1) != '/' && peek(lexer, 1) != '*'))
		return false;
	if (peek(lexer, 1) == '/') {
		while (lexer->at < lexer->end && *lexer->at != '\n')
			lexer->at++;
		return true;
	}
	for (lexer->at += 2; lexer->at < lexer->end; lexer->at++) {
		if (*lexer->at == '\n')
			lexer->line++;
		if (*lexer->at == '*' && peek(lexer, 1) == '/') {
			lexer->at += 2;
			return true;
		}
	}
	lexer->open_comment = true;
	return true;
}

static void skip_space(struct ptx_lexer *lexer)
{
	while (lexer->at < lexer->end) {
		char c = *lexer->at;
		if (c == '\n')
			lexer->line++;
		if (c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\f' || c == '\v')
			lexer->at++;
		else if (!skip_comment(lexer))
			return;
	}
}

static struct ptx_token bad(struct ptx_token token, const char *what)
{
	token.kind = PTX_TOKEN_BAD;
	token.text = what;
	token.len = strlen(what);
	return token;
}

static struct ptx_token lex_word(struct ptx_lexer *lexer, struct ptx_token token)
{
	token.kind = PTX_TOKEN_WORD;
	lexer->at++;
	while (is_word(peek(lexer, 0)))
		lexer->at++;
	/* %tid.x and its like, of which %tid.r is another name */
	if (*token.text == '%' && peek(lexer, 0) == '.' && strchr("xyzwrgba", peek(lexer, 1)) &&
	    peek(lexer, 1) && !is_word(peek(lexer, 2)))
		lexer->at += 2;
	token.len = (size_t)(lexer->at - token.text);
	return token;
}

static struct ptx_token lex_dot(struct ptx_lexer *lexer, struct ptx_token token)
{
	token.kind = PTX_TOKEN_DOT;
	token.text = ++lexer->at;
	while (is_word(peek(lexer, 0)) || (peek(lexer, 0) == ':' && peek(lexer, 1) == ':'))
		lexer->at += is_word(peek(lexer, 0)) ? 1 : 2;
	token.len = (size_t)(lexer->at - token.text);
	return token.len ? token : bad(token, "a dot without a word behind it");
}

/* 0f and 0d are followed by the bits, 8 or 16 hexadecimal digits. */
static struct ptx_token lex_float_bits(struct ptx_lexer *lexer, struct ptx_token token)
{
	bool is_double = lexer->at[1] == 'd' || lexer->at[1] == 'D';
	size_t want = is_double ? 16 : 8, n = 0;
	char digits[17] = "";

	for (lexer->at += 2; is_word(peek(lexer, 0)); lexer->at++) {
		if (n == want || !strchr("0123456789abcdefABCDEF", *lexer->at))
			return bad(token, "a malformed floating-point constant");
		digits[n++] = *lexer->at;
	}
	if (n != want)
		return bad(token, "a malformed floating-point constant");
	token.kind = is_double ? PTX_TOKEN_DOUBLE : PTX_TOKEN_FLOAT;
	token.bits = strtoull(digits, NULL, 16);
	token.len = (size_t)(lexer->at - token.text);
	return token;
}

static bool is_decimal_float(const char *text)
{
	bool hexadecimal = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');

	return !hexadecimal && strpbrk(text, ".eE");
}

/* C's integers and decimal floating point, and 0b…; a suffix U is allowed. */
static bool parse_number(struct ptx_token *token, char *text)
{
	char *end;
	bool binary = text[0] == '0' && (text[1] == 'b' || text[1] == 'B');

	errno = 0;
	if (is_decimal_float(text)) {
		double value = strtod(text, &end);
		token->kind = PTX_TOKEN_DOUBLE;
		memcpy(&token->bits, &value, sizeof(value));
		return *end == '\0';
	}
	token->kind = PTX_TOKEN_INTEGER;
	token->bits = binary ? strtoull(text + 2, &end, 2) : strtoull(text, &end, 0);
	if (*end == 'U' || *end == 'u')
		end++;
	return *end == '\0' && errno == 0;
}

static struct ptx_token lex_number(struct ptx_lexer *lexer, struct ptx_token token)
{
	char text[NUMBER_MAX + 1];
	size_t n = 0;

	if (*lexer->at == '0' && peek(lexer, 1) && strchr("fFdD", peek(lexer, 1)))
		return lex_float_bits(lexer, token);
	for (;; lexer->at++) {
		char c = peek(lexer, 0);
		bool exponent_sign =
			(c == '-' || c == '+') && n && (text[n - 1] == 'e' || text[n - 1] == 'E') &&
			!(text[0] == '0' && n > 1 && (text[1] == 'x' || text[1] == 'X'));
		if (!is_word(c) && c != '.' && !exponent_sign)
			break;
		if (n == NUMBER_MAX)
			return bad(token, "a number that is too long");
		text[n++] = c;
	}
	text[n] = '\0';
	token.len = (size_t)(lexer->at - token.text);
	return parse_number(&token, text) ? token : bad(token, "a malformed number");
}

static struct ptx_token lex_string(struct ptx_lexer *lexer, struct ptx_token token)
{
	token.kind = PTX_TOKEN_STRING;
	token.text = ++lexer->at;
	while (lexer->at < lexer->end && *lexer->at != '"' && *lexer->at != '\n')
		lexer->at += *lexer->at == '\\' && peek(lexer, 1) && peek(lexer, 1) != '\n' ? 2 : 1;
	if (peek(lexer, 0) != '"')
		return bad(token, "a string without an end");
	token.len = (size_t)(lexer->at++ - token.text);
	return token;
}

static struct ptx_token lex_mark(struct ptx_lexer *lexer, struct ptx_token token)
{
	static const char *const doubles[] = {"<<", ">>", "==", "!=", "<=", ">=", "&&", "||"};

	token.kind = PTX_TOKEN_MARK;
	token.len = 1;
	for (size_t i = 0; i < sizeof(doubles) / sizeof(doubles[0]); i++)
		if (peek(lexer, 0) == doubles[i][0] && peek(lexer, 1) == doubles[i][1])
			token.len = 2;
	if (!strchr("{}[]()<>,;:@!=+-*/%&|^~?", *token.text) || !*token.text)
		return bad(token, "a character that is not PTX");
	lexer->at += token.len;
	return token;
}

struct ptx_token ptx_lex(struct ptx_lexer *lexer)
{
	skip_space(lexer);

	struct ptx_token token = {.line = lexer->line, .text = lexer->at};
	char c = peek(lexer, 0);

	if (lexer->at == lexer->end)
		return lexer->open_comment ? bad(token, "a comment without an end") : token;
	if (is_letter(c) || c == '_' || c == '$' || (c == '%' && is_word(peek(lexer, 1))))
		return lex_word(lexer, token);
	if (is_digit(c))
		return lex_number(lexer, token);
	if (c == '.')
		return lex_dot(lexer, token);
	if (c == '"')
		return lex_string(lexer, token);
	return lex_mark(lexer, token);
}

bool ptx_token_is(const struct ptx_token *token, enum ptx_token_kind kind, const char *text)
{
	return token->kind == kind && token->len == strlen(text) &&
	       memcmp(token->text, text, token->len) == 0;
}
