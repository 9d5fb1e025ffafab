/* Texts of ten megabytes that a slow algorithm could not handle. Each must finish within the test's
 * time limit, and within the memory that its size allows. */
#include "weir/transform.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define TEXT_MAX (10u << 20)
#define HEAD     ".version 8.0\n.target sm_80\n.address_size 64\n"

/* Repeats @unit with the numbers n, n - 1 and a random one, until the text is long enough. */
struct shape {
	const char *name, *before, *unit, *after;
	bool is_good; /* the module is valid; kernels may be refused */
};

static const struct shape shapes[] = {
	{"blocks", HEAD ".entry k() { .reg .pred p; .reg .b32 r;\n",
	 "L%1$u: add.u32 r, r, %1$u; @p bra L%2$u;\n", "ret; }", true},
	{"jumps anywhere", HEAD ".entry k() { .reg .pred p; .reg .b32 r<9>;\n",
	 "L%1$u: @p bra L%3$u; add.u32 r1, r2, r3;\n", "bar.sync 0; ret; }", true},
	{"a way out of each", HEAD ".entry k() { .reg .pred p;\n", "L%1$u: @p bra L0; @p exit;\n",
	 "ret; }", true},
	{"registers", HEAD ".entry k() { .reg .pred p;\n",
	 ".reg .b32 a%1$u; L%1$u: mov.u32 a%1$u, a%2$u; @p bra L%1$u;\n", "ret; }", true},
	{"scopes", HEAD ".entry k() {\n", "{ .reg .b32 a<9>; mov.u32 a1, a2; bra X; X: }\n", "}",
	 true},
	{"braces", HEAD ".entry k() {", "{", "}", false},
	{"functions", HEAD, ".func f%1$u(.param .b32 a) { bar.sync 0; ret; }\n", "", true},
	{"parameters", HEAD ".entry k(.param .u32 z", ", .param .u32 p%1$u", ") { ret; }", true},
	{"operands", HEAD ".entry k() { .reg .b32 r; call f, (r", ", r", "); }", true},
	{"blanks", HEAD ".entry k() {", "  \n/**/", "}", true},
};

static char *make_text(const struct shape *shape)
{
	char *text = malloc(TEXT_MAX + 4096);
	size_t n = strlen(shape->before), unit = strlen(shape->unit) + 8, random = 1;
	unsigned long count = TEXT_MAX / unit / 2;

	assert_non_null(text);
	memcpy(text, shape->before, n);
	for (unsigned k = 0; k < count && n < TEXT_MAX; k++) {
		random = random * 6364136223846793005u + 1442695040888963407u;
		n += (size_t)snprintf(text + n, 512, shape->unit, k, k ? k - 1 : 0,
				      (unsigned)((random >> 33) % count));
	}
	memcpy(text + n, shape->after, strlen(shape->after) + 1);
	return text;
}

static void large_texts_are_handled(void **state)
{
	(void)state;
	struct weir_transform_options options = {.forms = ~0u};

	for (size_t k = 0; k < sizeof(shapes) / sizeof(shapes[0]); k++) {
		struct weir_error error = {0};
		char *text = make_text(&shapes[k]), *out = NULL;
		size_t len = 0;
		/* The size of the text limits the memory, so success shows that it was enough. */
		int r = weir_transform(&out, &len, text, strlen(text), &options, &error);

		if (shapes[k].is_good != !r)
			fail_msg("%s: line %u: %s", shapes[k].name, error.line, error.message);
		free(out);
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(large_texts_are_handled)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
