/* The base: arena, interned strings, output text, tokens. */
#include "ir-fixture.h"

#include "syntax/lex.h"

#include <errno.h>

static void arena_has_an_end(void **state)
{
	(void)state;
	struct arena arena;
	size_t n = 0;

	arena_init(&arena, 1 << 20);
	while (arena_alloc(&arena, 1000))
		n++;
	assert_in_range(n, 900, 1048);
	assert_in_range(arena.used, 0, 1 << 20);
	arena_reset(&arena);
	assert_non_null(arena_alloc(&arena, 1000));
	assert_null(arena_array(&arena, SIZE_MAX / 2, 4));
	arena_deinit(&arena);
}

static void arena_memory_is_zero_and_aligned(void **state)
{
	(void)state;
	struct arena arena;

	arena_init(&arena, 1 << 20);
	for (unsigned k = 1; k < 100; k++) {
		unsigned char *p = arena_alloc(&arena, k);

		assert_int_equal((uintptr_t)p % 16, 0);
		assert_int_equal(p[k - 1], 0);
		memset(p, 0xff, k);
		if (k % 10 == 0)
			arena_reset(&arena);
	}
	arena_deinit(&arena);
}

static void equal_strings_are_one(void **state)
{
	(void)state;
	struct arena arena;
	struct intern intern;
	const char *first;
	char name[16];

	arena_init(&arena, 1 << 24);
	intern_init(&intern, &arena);
	assert_null(intern_find(&intern, "a", 1));
	first = intern_text(&intern, "abc", 2);
	for (int k = 0; k < 5000; k++) {
		snprintf(name, sizeof(name), "n%d", k);
		*intern_slot(intern_string(&intern, name)) = &intern;
	}
	assert_ptr_equal(intern_string(&intern, "ab"), first);
	assert_ptr_equal(intern_find(&intern, "abx", 2), first);
	assert_null(*intern_slot(first));
	assert_ptr_equal(*intern_slot(intern_string(&intern, "n4999")), &intern);
	arena_deinit(&arena);
}

static void output_has_a_maximum(void **state)
{
	(void)state;
	struct text text;

	text_init(&text, 10);
	text_string(&text, "12345");
	text_print(&text, "%d", 67890);
	assert_string_equal(text.data, "1234567890");
	text_string(&text, "1");
	assert_int_equal(text.error, -EFBIG);
	assert_null(text_take(&text));
	text_deinit(&text);
}

static void tokens_have_places(void **state)
{
	(void)state;
	static const struct {
		int kind;
		const char *text;
		uint32_t line, column;
	} want[] = {
		{TOKEN_WORD, "ld", 1, 1},
		{TOKEN_DOT, ".shared::cta", 1, 3},
		{TOKEN_WORD, "%r1", 2, 2},
		{',', ",", 2, 5},
		{'[', "[", 2, 7},
		{TOKEN_WORD, "$a_b", 2, 8},
		{'+', "+", 2, 12},
		{TOKEN_NUMBER, "0xffU", 2, 13},
		{']', "]", 2, 18},
		{TOKEN_NUMBER, "1.5e-3", 4, 1},
		{TOKEN_NUMBER, "0f3F80000e", 4, 8},
		{'-', "-", 4, 18},
		{TOKEN_STRING, "\"a\\\"{\"", 4, 20},
		{TOKEN_END, "", 4, 26},
	};
	static const char text[] = "ld.shared::cta\n\t%r1, [$a_b+0xffU] // one\n/* two\n*/"
				   "\r1.5e-3 0f3F80000e- \"a\\\"{\"";
	struct lexer lexer;

	lex_init(&lexer, text, strlen(text), (struct position){1, 1});
	for (size_t k = 0; k < sizeof(want) / sizeof(want[0]); k++) {
		struct token token = lex_next(&lexer);

		assert_int_equal(token.kind, want[k].kind);
		assert_true(token_is(&token, want[k].text));
		assert_int_equal(token.at.line, want[k].line);
		if (want[k].line < 4)
			assert_int_equal(token.at.column, want[k].column);
	}
}

static void bad_tokens_are_refused(void **state)
{
	(void)state;
	static const char *const texts[] = {"`", ". x", "\"open", "/* open", "\\", "\"a\n\""};

	for (size_t k = 0; k < sizeof(texts) / sizeof(texts[0]); k++) {
		struct lexer lexer;

		lex_init(&lexer, texts[k], strlen(texts[k]), (struct position){1, 1});
		assert_int_equal(lex_next(&lexer).kind, TOKEN_BAD);
	}
}

static void integers_of_all_bases(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		bool good;
		uint64_t value;
	} rows[] = {
		{"0", true, 0},
		{"12U", true, 12},
		{"0x1F", true, 31},
		{"017", true, 15},
		{"0b101", true, 5},
		{"18446744073709551615", true, UINT64_MAX},
		{"18446744073709551616", false, 0},
		{"08", false, 0},
		{"0f3F800000", false, 0},
		{"1.5", false, 0},
		{"0x", false, 0},
		{"", false, 0},
	};

	for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
		uint64_t value = 0;

		assert_int_equal(token_integer(rows[k].text, strlen(rows[k].text), &value),
				 rows[k].good);
		assert_true(value == rows[k].value);
	}
}

/* Binary search finds opcodes. */
static void opcodes_are_sorted(void **state)
{
	(void)state;
	static const char *const names[] = {
#define OPCODE(name, with, op_class, flags) #name,
#include "syntax/opcodes.def"
#undef OPCODE
	};

	for (size_t k = 1; k < sizeof(names) / sizeof(names[0]); k++)
		assert_true(strcmp(names[k - 1], names[k]) <= 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arena_has_an_end),
		cmocka_unit_test(arena_memory_is_zero_and_aligned),
		cmocka_unit_test(equal_strings_are_one),
		cmocka_unit_test(output_has_a_maximum),
		cmocka_unit_test(tokens_have_places),
		cmocka_unit_test(bad_tokens_are_refused),
		cmocka_unit_test(integers_of_all_bases),
		cmocka_unit_test(opcodes_are_sorted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
