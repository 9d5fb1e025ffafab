/* The check of objects: damaged and hostile ones are refused. */
#include "weir/object.h"
#include "weir/preempt-abi.h"
#include "weir/transform.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* An object with three parameters, a variable and a constant. */
static void *build(size_t *size)
{
	static const char text[] =
		".version 8.0\n.target sm_80\n.address_size 64\n"
		".visible .const .align 16 .b8 coefficients[48];\n"
		".global .align 8 .b8 array[64];\n"
		".visible .entry k(.param .u64 out, .param .align 2 .b8 s[6], .param .u32 n)\n"
		"{ .reg .b32 %r<2>; ld.global.u32 %r0, [array]; ld.const.u32 %r1, [coefficients];\n"
		"ret; }\n";
	const struct weir_object_request request = {.image = text,
						    .len = sizeof(text) - 1,
						    .kernel = "k",
						    .sm = 90,
						    .forms = 1u << WEIR_SLICED |
							     1u << WEIR_PERSISTENT};
	struct weir_error error;
	void *object = NULL;

	if (weir_object_build(&object, size, &request, &error))
		fail_msg("line %u: %s", error.line, error.message);
	return object;
}

/* Checks a copy at the end of an allocation, so that a sanitizer sees reads behind it. */
static int check_copy(const void *data, size_t size)
{
	void *copy = malloc(size ? size : 1);
	int r;

	assert_non_null(copy);
	memcpy(copy, data, size);
	r = weir_object_check(copy, size);
	free(copy);
	return r;
}

static void truncated_objects_are_refused(void **state)
{
	size_t size;
	void *object = build(&size);
	struct weir_object *head = object;

	(void)state;
	for (uint32_t part = 0; part < size; part++) {
		assert_int_not_equal(check_copy(object, part), 0);
		if (part < sizeof(*head))
			continue;
		head->size = part; /* with a matching size in the header */
		assert_int_not_equal(check_copy(object, part), 0);
		head->size = (uint32_t)size;
	}
	assert_int_equal(check_copy(object, size), 0);
	free(object);
}

/* Sets each word of the header and tables to hostile values. The check must refuse them or stay
 * inside the object. */
static void hostile_words_stay_inside(void **state)
{
	static const uint32_t lies[] = {0, 1, 2, 3, 8, 0x7fffffff, 0x80000000, 0xfffffff8, ~0u};
	size_t size;
	void *object = build(&size);
	const struct weir_object *head = object;
	uint32_t tables_end = head->symbols + head->n_symbols * sizeof(struct weir_object_symbol);

	(void)state;
	for (uint32_t offset = 0; offset < tables_end; offset += 4) {
		uint32_t *word = (uint32_t *)((char *)object + offset), honest = *word;

		for (size_t k = 0; k < sizeof(lies) / sizeof(lies[0]) + 4; k++) {
			size_t near = k - sizeof(lies) / sizeof(lies[0]);
			uint32_t past[] = {honest + 4, honest - 4, (uint32_t)size,
					   (uint32_t)size - 8};

			*word = near < 4 ? past[near] : lies[k];
			check_copy(object, size);
			*word = honest;
		}
	}
	assert_int_equal(check_copy(object, size), 0);
	free(object);
}

#define WORD(member) (offsetof(struct weir_object, member) / 4)

static void hostile_words_are_refused(void **state)
{
	size_t size;
	void *object = build(&size);
	const struct weir_object *head = object;
	const struct {
		size_t word;
		uint32_t value;
		int result;
	} lies[] = {
		{WORD(magic), 0, -EINVAL},
		{WORD(version), WEIR_OBJECT_VERSION + 1, -ENOTSUP},
		{WORD(abi), WEIR_PREEMPT_ABI + 1, -ENOTSUP},
		{WORD(flags), 2, -ENOTSUP},
		{WORD(size), head->size + 8, -EINVAL},
		{WORD(image), head->image + 8, -EINVAL},
		{WORD(image_size), head->image_size + 1, -EINVAL},
		{WORD(image_size), head->image_size - 1, -EINVAL}, /* no NUL at the end */
		{WORD(image_size), 0, -EINVAL},                    /* entries without an image */
		{WORD(forms), head->forms + 4, -EINVAL},
		{WORD(n_forms), 0x08000001, -EINVAL}, /* times 32 overflows to 32 */
		{WORD(n_params), 0x20000001, -EINVAL},
		{WORD(n_symbols), 0x0aaaaaab, -EINVAL},
		{WORD(kernel), head->size, -EINVAL},
		{WORD(kernel), head->size - 1, -EINVAL}, /* the NUL behind the PTX: an empty name */
		{head->forms / 4, WEIR_NATIVE, -EINVAL},
		{head->forms / 4, WEIR_FORM_COUNT, -EINVAL},
		{head->forms / 4 + 1, 0, -EINVAL},            /* neither entry nor reason */
		{head->forms / 4 + 2, head->kernel, -EINVAL}, /* both */
		{head->params / 4 + 1, 9, -EINVAL},           /* overlaps the next one */
		{head->params / 4 + 4, WEIR_OBJECT_PARAMS_MAX, -EINVAL},
		{head->params / 4 + 5, WEIR_OBJECT_PARAMS_MAX, -EINVAL},
		{head->symbols / 4 + 4, WEIR_OBJECT_CONSTANT,
		 -EINVAL}, /* a constant without a copy */
		{head->symbols / 4 + 4, 3, -EINVAL},
		{head->symbols / 4 + 3, head->kernel, -EINVAL}, /* a global variable with a copy */
		{head->symbols / 4 + 10, WEIR_OBJECT_GLOBAL, -EINVAL},
	};

	(void)state;
	for (size_t k = 0; k < sizeof(lies) / sizeof(lies[0]); k++) {
		uint32_t *word = (uint32_t *)object + lies[k].word, honest = *word;

		*word = lies[k].value;
		if (check_copy(object, size) != lies[k].result)
			fail_msg("word %zu = %#x", lies[k].word, lies[k].value);
		*word = honest;
	}
	assert_int_equal(check_copy(object, size), 0);
	assert_int_equal(weir_object_check((const char *)object + 4, size - 4), -EINVAL);
	free(object);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(truncated_objects_are_refused),
		cmocka_unit_test(hostile_words_stay_inside),
		cmocka_unit_test(hostile_words_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
