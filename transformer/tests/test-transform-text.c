/* The base: arena, interned strings, output text, tokens. */
#include "ir-fixture.h"

#include "syntax/lex.h"

#include <errno.h>

struct filling {
	struct arena arena;
	size_t count;
};

static void fill(void *data)
{
	struct filling *filling = data;

	for (;; filling->count++)
		arena_alloc(&filling->arena, 1000);
}

static void take_too_much(void *data)
{
	struct filling *filling = data;

	arena_array(&filling->arena, SIZE_MAX / 2, 4);
}

static void arena_has_an_end(void **state)
{
	(void)state;
	struct filling x = {.count = 0};
	struct diag diag = {0};

	arena_init(&x.arena, 1 << 20, &diag);
	assert_int_equal(diag_try(&diag, fill, &x), -ENOMEM);
	assert_in_range(x.count, 900, 1048);
	assert_in_range(x.arena.used, 0, 1 << 20);
	arena_reset(&x.arena);
	arena_alloc(&x.arena, 1000);
	diag_take(&diag);
	assert_int_equal(diag_try(&diag, take_too_much, &x), -ENOMEM);
	arena_deinit(&x.arena);
}

static void arena_arrays_grow(void **state)
{
	(void)state;
	struct arena arena;
	struct diag diag = {0};
	size_t room = 0, *items = NULL;

	arena_init(&arena, 1 << 20, &diag);
	for (size_t n = 0; n < 1000; n++) {
		items = arena_grow(&arena, items, n, &room, sizeof(*items));
		items[n] = n;
	}
	for (size_t n = 0; n < 1000; n++)
		assert_int_equal(items[n], n);
	arena_deinit(&arena);
}

struct nested {
	struct diag *diag;
	int inner;
};

static void stop(void *data)
{
	struct nested *nested = data;

	diag_stop(nested->diag, -EINVAL, (struct position){3, 4}, "%d is odd", 7);
}

static void try_and_stop_again(void *data)
{
	struct nested *nested = data;

	nested->inner = diag_try(nested->diag, stop, nested);
	diag_stop(nested->diag, -EFBIG, (struct position){0}, "a later one");
}

static void first_error_is_kept(void **state)
{
	(void)state;
	struct diag diag = {0}, taken;
	struct nested nested = {.diag = &diag};

	assert_int_equal(diag_try(&diag, try_and_stop_again, &nested), -EINVAL);
	assert_int_equal(nested.inner, -EINVAL);
	assert_null(diag.handler);
	taken = diag_take(&diag);
	assert_int_equal(diag.error, 0);
	assert_string_equal(taken.message, "7 is odd");
	assert_int_equal(taken.at.line, 3);
}

static void arena_memory_is_zero_and_aligned(void **state)
{
	(void)state;
	struct arena arena;

	arena_init(&arena, 1 << 20, NULL);
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

	arena_init(&arena, 1 << 24, NULL);
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
		cmocka_unit_test(first_error_is_kept),
		cmocka_unit_test(arena_has_an_end),
		cmocka_unit_test(arena_arrays_grow),
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
