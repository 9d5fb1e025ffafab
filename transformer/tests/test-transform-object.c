/* Objects: their content, and kernels that cannot be detached. */
#include "weir/object.h"
#include "weir/preempt-abi.h"
#include "weir/transform.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define FORMS (1u << WEIR_SLICED | 1u << WEIR_PERSISTENT)

#define HEAD ".version 8.0\n.target sm_80\n.address_size 64\n"
#define MODULE                                                                                   \
	HEAD ".visible .global .align 4 .u32 total;\n.visible .const .align 16 .b8 "             \
	     "coefficients[48];\n"                                                               \
	     ".global .align 8 .b8 array[64];\n.extern .shared .align 8 .b8 dynamic[];\n"        \
	     ".global .align 1 .b8 $str[3] = {37, 100, 0};\n"                                    \
	     ".const .align 4 .b8 __cudart_table[8] = {1, 2, 3, 4, 5, 6, 7, 8};\n"               \
	     ".global .align 4 .b8 __cudart_written[4] = {1, 2, 3, 4};\n"                        \
	     ".global .align 8 .u64 __cudart_pointer[1] = {total};\n"                            \
	     ".global .texref image;\n.global .align 4 .u32 unused;\n"                           \
	     ".extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);\n"           \
	     ".func leaf ()\n;\n"                                                                \
	     ".func caller () { call leaf, (); ret; }\n"                                         \
	     ".func leaf () { .loc 1 2 3\n .reg .b64 %d<2>; mov.u64 %d0, $str; ret; }\n"         \
	     ".func user () { .reg .b64 %d<2>; mov.u64 %d0, total; ret; }\n"                     \
	     ".func constant () { .reg .b32 %r<2>; ld.const.u32 %r0, [coefficients+4]; ret; }\n" \
	     ".func writer () { .reg .b32 %r<2>; .reg .pred %p; @%p atom.global.v2.exch.b32 "    \
	     "{%r0, %r1}, "                                                                      \
	     "[__cudart_written], {%r0, %r1}; }\n"                                               \
	     ".entry other () { ret; }\n"                                                        \
	     ".weak .entry k (.param .u64 out, .param .align 2 .b8 s[6], .param .u32 n)\n"       \
	     ".maxntid 64, 2\n{ .reg .b64 %d<4>; .reg .b32 %r<9>; .reg .pred %p<2>;\n"           \
	     ".shared .align 4 .u32 own;\n.loc 1 2 3\n P: .callprototype ()_ ();\n"

struct built {
	void *data;
	size_t size;
	struct weir_error error;
	int r;
};

static struct built build_text(const char *text, const char *kernel)
{
	struct weir_object_request request = {
		.image = text, .len = strlen(text), .kernel = kernel, .sm = 90, .forms = FORMS};
	struct built b = {.data = NULL};

	b.r = weir_object_build(&b.data, &b.size, &request, &b.error);
	return b;
}

/* The kernel `k` with this code. */
static struct built build(const char *code)
{
	char text[8192];

	snprintf(text, sizeof(text), "%s%s ret; }\n", MODULE, code);
	return build_text(text, "k");
}

static const struct weir_object *head_of(const struct built *b)
{
	return b->data;
}

static const char *at(const struct built *b, uint32_t offset)
{
	return (const char *)b->data + offset;
}

static void objects_describe_the_kernel(void **state)
{
	struct built b = build("ld.global.u32 %r0, [array+8]; ld.const.u32 %r1, [coefficients];\n"
			       "red.global.add.u32 [total], %r0; mov.u64 %d0, array+16;\n"
			       "mov.u64 %d1, __cudart_table; call caller, ();\n");
	const struct weir_object *head = head_of(&b);
	const struct weir_object_form *forms;
	const struct weir_object_param *params;
	const struct weir_object_symbol *symbols;
	const char *ptx;

	(void)state;
	assert_int_equal(b.r, 0);
	assert_int_equal(weir_object_check(b.data, b.size), 0);
	assert_int_equal(head->flags, WEIR_OBJECT_IS_PTX);
	assert_int_equal(head->sm, 90);
	assert_string_equal(at(&b, head->kernel), "k");
	assert_int_equal(head->n_forms, 2);
	forms = (const void *)at(&b, head->forms);
	assert_int_equal(forms[0].form, WEIR_SLICED);
	assert_string_equal(at(&b, forms[0].entry), "k__weir_sliced");
	assert_string_equal(at(&b, forms[1].entry), "k__weir_persistent");
	assert_int_equal(forms[1].max_threads, 128);
	assert_int_equal(head->n_params, 3);
	params = (const void *)at(&b, head->params);
	assert_memory_equal(params, ((uint32_t[]){0, 8, 8, 6, 16, 4}), 24);
	assert_int_equal(head->n_symbols, 3);
	symbols = (const void *)at(&b, head->symbols);
	assert_string_equal(at(&b, symbols[0].name), "array");
	assert_string_equal(at(&b, symbols[1].name), "total");
	assert_string_equal(at(&b, symbols[2].name), "coefficients");
	assert_int_equal(symbols[0].size, 64);
	assert_int_equal(symbols[2].size, 48);
	assert_int_equal(symbols[2].space, WEIR_OBJECT_CONSTANT);

	ptx = at(&b, head->image);
	assert_int_equal(strlen(ptx) + 1, head->image_size);
	assert_non_null(strstr(ptx, ".visible .entry k__weir_persistent"));
	assert_non_null(strstr(ptx, ".visible .const .align 16 .b8 weir_copy_0[48];"));
	assert_non_null(strstr(ptx, ".func leaf"));
	assert_non_null(strstr(ptx, "__cudart_table[8] = {1"));
	assert_non_null(strstr(ptx, "$str[3] = {37"));
	assert_null(strstr(ptx, "array"));
	assert_null(strstr(ptx, "total"));
	assert_null(strstr(ptx, "unused"));
	assert_null(strstr(ptx, "other"));
	assert_null(strstr(ptx, ".loc"));
	assert_null(strstr(ptx, ".entry k\n"));
	free(b.data);
}

/* A resumable kernel has a build of which as many blocks fit as of the original. */
static void resumable_is_built_twice(void **state)
{
	static const char text[] = MODULE " ret; }\n";
	struct weir_object_request request = {.image = text,
					      .len = sizeof(text) - 1,
					      .kernel = "k",
					      .sm = 90,
					      .forms = 1u << WEIR_RESUMABLE,
					      .registers = 10};
	struct built b = {.data = NULL};

	(void)state;
	assert_int_equal(weir_object_build(&b.data, &b.size, &request, &b.error), 0);
	assert_int_equal(weir_object_check(b.data, b.size), 0);
	const struct weir_object_form *forms = (const void *)at(&b, head_of(&b)->forms);
	assert_int_equal(head_of(&b)->n_forms, 2);
	for (unsigned k = 0; k < 2; k++) {
		assert_int_equal(forms[k].form, WEIR_RESUMABLE);
		assert_int_equal(forms[k].registers, k ? 32 : 0);
	}
	assert_string_not_equal(at(&b, forms[0].entry), at(&b, forms[1].entry));
	free(b.data);
}

/* The build of which as many blocks fit as of the original. */
static void the_soonest_form_is_built_once(void **state)
{
	static const char text[] = MODULE " ret; }\n";
	struct weir_object_request request = {.image = text,
					      .len = sizeof(text) - 1,
					      .kernel = "k",
					      .sm = 90,
					      .forms = FORMS | 1u << WEIR_RESUMABLE,
					      .registers = 10,
					      .soonest = true};
	struct built b = {.data = NULL};

	(void)state;
	assert_int_equal(weir_object_build(&b.data, &b.size, &request, &b.error), 0);
	assert_int_equal(weir_object_check(b.data, b.size), 0);
	const struct weir_object_form *forms = (const void *)at(&b, head_of(&b)->forms);
	assert_int_equal(head_of(&b)->n_forms, 1);
	assert_int_equal(forms->form, WEIR_RESUMABLE);
	assert_int_equal(forms->registers, 32);
	assert_int_not_equal(forms->entry, 0);
	free(b.data);
}

static uint32_t traits(const char *code)
{
	struct built b = build(code);

	assert_int_equal(b.r, 0);
	uint32_t found = head_of(&b)->traits;
	free(b.data);
	return found;
}

/* Blocks of a kernel without loops do not wait for each other. */
static void straight_kernels_are_said(void **state)
{
	(void)state;
	assert_int_equal(traits("add.u32 %r0, %r1, %r2;"), WEIR_OBJECT_IS_STRAIGHT);
	assert_int_equal(traits("@%p0 bra E; atom.global.add.u32 %r0, [total], 1; E:"),
			 WEIR_OBJECT_IS_STRAIGHT);
	assert_int_equal(traits("{ .param .b64 a; .param .b64 b; .param .b32 r;"
				"st.param.b64 [a], %d0; st.param.b64 [b], %d1;"
				"call (r), vprintf, (a, b); }"),
			 WEIR_OBJECT_IS_STRAIGHT);
	assert_int_equal(traits("L: ld.volatile.global.u32 %r0, [total];"
				"setp.eq.u32 %p0, %r0, 0; @%p0 bra L;"),
			 0);
	/* A function may have a loop, or call itself. */
	assert_int_equal(traits("call caller, ();"), 0);
}

/* With 33 registers, as many blocks fit as with 40. */
static void persistent_is_built_three_times(void **state)
{
	static const char text[] = MODULE " ret; }\n";
	struct weir_object_request request = {.image = text,
					      .len = sizeof(text) - 1,
					      .kernel = "k",
					      .sm = 90,
					      .forms = FORMS,
					      .registers = 33};
	struct built b = {.data = NULL};

	(void)state;
	assert_int_equal(weir_object_build(&b.data, &b.size, &request, &b.error), 0);
	assert_int_equal(weir_object_check(b.data, b.size), 0);
	const struct weir_object_form *forms = (const void *)at(&b, head_of(&b)->forms);
	const char *ptx = at(&b, head_of(&b)->image);
	assert_int_equal(head_of(&b)->n_forms, 4);
	assert_int_equal(forms[0].form, WEIR_SLICED);
	assert_int_equal(forms[0].registers, 0);
	for (unsigned k = 1; k < 4; k++) {
		assert_int_equal(forms[k].form, WEIR_PERSISTENT);
		assert_int_equal(forms[k].registers, k == 1 ? 0 : k == 2 ? 40 : 48);
		assert_non_null(strstr(ptx, at(&b, forms[k].entry)));
	}
	assert_string_not_equal(at(&b, forms[1].entry), at(&b, forms[2].entry));
	assert_string_not_equal(at(&b, forms[2].entry), at(&b, forms[3].entry));
	assert_non_null(strstr(ptx, ".maxnreg 40"));
	assert_non_null(strstr(ptx, ".maxnreg 48"));
	free(b.data);

	request.registers = 250; /* all that a thread can have */
	assert_int_equal(weir_object_build(&b.data, &b.size, &request, &b.error), 0);
	assert_int_equal(head_of(&b)->n_forms, 2);
	free(b.data);

	static const char bound[] = HEAD ".entry k() .maxntid 64, 1, 1 .minnctapersm 1 { ret; }\n";
	request.image = bound;
	request.len = sizeof(bound) - 1;
	request.registers = 33;
	assert_int_equal(weir_object_build(&b.data, &b.size, &request, &b.error), 0);
	assert_non_null(strstr(at(&b, head_of(&b)->image), ".maxnreg 40"));
	free(b.data);
}

static const struct {
	const char *code, *reason;
} kept[] = {
	{"call user, ();", "a function that it calls uses total"},
	{"mov.u64 %d0, total; call user, ();", "a function that it calls uses total"},
	{"call constant, ();", "a function that it calls uses coefficients"},
	{"tex.1d.v4.u32.s32 {%r0, %r1, %r2, %r3}, [image, {%r4}];", "sampler or surface, image"},
	{"mov.u64 %d0, leaf;", "takes the address of leaf"},
	{"ld.global.u64 %d0, [array]; call %d0, (), P;", "calls through a pointer"},
	{"mov.u32 %r0, array;", "a part of the address of array"},
	{"mov.u64 %d0, array+4*2;", "an offset is not understood"},
	{".global .u32 mine; ld.global.u32 %r0, [mine];", "a global variable of its own, mine"},
};

#define FIRST                                                                                \
	".version 8.0 .target sm_90 .address_size 64\n"                                      \
	".extern .func (.param .b32 r) shade(.param .b32 x); .extern .global .align 4 .u32 " \
	"counter;\n"                                                                         \
	".entry k() { .reg .b32 v; { .param .b32 x, r; st.param.b32 [x], 1;\n"               \
	"call (r), shade, (x); ld.param.b32 v, [r]; } st.global.u32 [counter], v; ret; }\n"
#define SECOND(head, more)                                                          \
	head " .address_size 64\n.visible .global .align 4 .u32 counter;\n" more    \
	     ".visible .func (.param .b32 r) shade(.param .b32 x) { .reg .b32 a;\n" \
	     "ld.param.b32 a, [x]; st.param.b32 [r], a; ret; }\n"
#define NEWER                ".version 8.3 .target sm_90"
#define TABLE(value)         ".global .align 4 .b8 __cudart_t[1] = {" value "};\n"
#define TWICE(linkage, what) linkage what linkage what

/* The reason for a refusal of the text, or "" if the kernel has its form. */
static const char *linked(const char *text)
{
	static char reason[WEIR_REASON_MAX];
	struct weir_object_request request = {.image = text,
					      .len = strlen(text),
					      .kernel = "k",
					      .sm = 90,
					      .forms = 1u << WEIR_SLICED};
	struct built b = {.data = NULL};

	*reason = '\0';
	if (weir_object_build(&b.data, &b.size, &request, &b.error)) {
		snprintf(reason, sizeof(reason), "%s", b.error.message);
		return reason;
	}
	const struct weir_object_form *form = (const void *)at(&b, head_of(&b)->forms);
	if (form->reason) {
		snprintf(reason, sizeof(reason), "%s", at(&b, form->reason));
	} else {
		const char *ptx = at(&b, head_of(&b)->image);

		assert_non_null(strstr(ptx, ".version 8.3"));
		assert_non_null(strstr(ptx, ".visible .func"));
		assert_null(strstr(ptx, ".extern"));
	}
	free(b.data);
	return reason;
}

/* Texts that are linked call each other's functions. */
static void linked_texts_are_one(void **state)
{
	(void)state;
	assert_string_equal(linked(FIRST), "calls shade, which is not in this module");
	assert_string_equal(linked(FIRST SECOND(NEWER, "")), "");
	assert_string_equal(linked(SECOND(NEWER, "") FIRST), "");
	assert_string_equal(linked(FIRST SECOND(NEWER, TWICE(".weak ", ".func f() { ret; }"))), "");
	assert_string_equal(linked(FIRST SECOND(NEWER, TWICE(".weak ", ".global .u32 g;"))), "");
	assert_string_equal(linked(FIRST SECOND(NEWER, TWICE("", TABLE("1")))), "");
	assert_string_equal(linked(FIRST SECOND(NEWER, TABLE("1") TABLE("2"))),
			    "'__cudart_t' is defined twice");
	assert_string_equal(linked(FIRST SECOND(NEWER, TWICE("", ".func f() { ret; }"))),
			    "'f' is defined twice");
	assert_string_equal(linked(FIRST SECOND(NEWER, TWICE("", ".global .u32 g;"))),
			    "'g' is defined twice");
	assert_string_equal(
		linked(FIRST SECOND(NEWER, ".weak .func f() { ret; } .visible .func f() { ret; }")),
		"'f' is defined twice");
	assert_string_equal(linked(FIRST SECOND(".version 8.3 .target sm_90a", "")),
			    "several targets: sm_90 and sm_90a");
}

static void kernels_that_cannot_be_detached(void **state)
{
	(void)state;
	for (size_t k = 0; k < sizeof(kept) / sizeof(kept[0]); k++) {
		struct built b = build(kept[k].code);
		const struct weir_object_form *forms;

		assert_int_equal(b.r, 0);
		assert_int_equal(weir_object_check(b.data, b.size), 0);
		assert_int_equal(head_of(&b)->image_size, 0);
		assert_int_equal(head_of(&b)->n_symbols, 0);
		forms = (const void *)at(&b, head_of(&b)->forms);
		for (unsigned i = 0; i < 2; i++) {
			assert_int_equal(forms[i].entry, 0);
			if (!strstr(at(&b, forms[i].reason), kept[k].reason))
				fail_msg("%s: %s", kept[k].code, at(&b, forms[i].reason));
		}
		free(b.data);
	}
}

/* Only tables that nobody writes may be copied. */
static void written_tables_are_not_copied(void **state)
{
	static const char *const names[] = {"__cudart_written", "__cudart_pointer"};

	(void)state;
	for (size_t k = 0; k < 2; k++) {
		char code[128];
		struct built b;
		const struct weir_object_symbol *symbols;

		snprintf(code, sizeof(code), "mov.u64 %%d0, %s;", names[k]);
		b = build(code);
		assert_int_equal(b.r, 0);
		assert_int_equal(head_of(&b)->n_symbols, 1);
		symbols = (const void *)at(&b, head_of(&b)->symbols);
		assert_string_equal(at(&b, symbols->name), names[k]);
		free(b.data);
	}
}

static void errors_make_no_object(void **state)
{
	struct built b = build_text(HEAD ".entry k() { ret; }", "other");

	(void)state;
	assert_int_equal(b.r, -ENOENT);
	assert_non_null(strstr(b.error.message, "no kernel other"));
	b = build_text(HEAD ".entry k() { ret; ", "k");
	assert_int_equal(b.r, -EINVAL);
	b = build_text(HEAD ".entry k(.param .b8 p[N]) { ret; }", "k");
	assert_int_equal(b.r, -EINVAL);
}

struct assembler {
	int result;
	unsigned calls;
};

static int fake_assemble(void *data, const char *ptx, size_t len, unsigned sm, void **image,
			 size_t *image_len, struct weir_error *error)
{
	struct assembler *a = data;

	a->calls++;
	assert_int_equal(ptx[len], '\0');
	assert_int_equal(strlen(ptx), len);
	assert_int_equal(sm, 90);
	snprintf(error->message, sizeof(error->message), "as asked");
	if (a->result)
		return a->result;
	*image = strdup("code");
	*image_len = 5;
	return 0;
}

static void assembler_is_called(void **state)
{
	static const char text[] = HEAD ".entry k() { ret; }\n.entry c() .explicitcluster { ret; }";
	struct assembler a = {.result = 0};
	struct weir_object_request request = {.image = text,
					      .len = strlen(text),
					      .kernel = "k",
					      .sm = 90,
					      .forms = FORMS,
					      .assemble = fake_assemble,
					      .data = &a};
	struct built b = {.data = NULL};

	(void)state;
	assert_int_equal(weir_object_build(&b.data, &b.size, &request, &b.error), 0);
	assert_int_equal(weir_object_check(b.data, b.size), 0);
	assert_int_equal(head_of(&b)->flags, 0);
	assert_string_equal(at(&b, head_of(&b)->image), "code");
	free(b.data);

	a.result = -EIO;
	assert_int_equal(weir_object_build(&b.data, &b.size, &request, &b.error), -EIO);
	assert_string_equal(b.error.message, "as asked");

	request.kernel = "c"; /* refused, so there is nothing to assemble */
	assert_int_equal(weir_object_build(&b.data, &b.size, &request, &b.error), 0);
	assert_int_equal(weir_object_check(b.data, b.size), 0);
	assert_int_equal(a.calls, 2);
	free(b.data);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(objects_describe_the_kernel),
		cmocka_unit_test(resumable_is_built_twice),
		cmocka_unit_test(the_soonest_form_is_built_once),
		cmocka_unit_test(straight_kernels_are_said),
		cmocka_unit_test(persistent_is_built_three_times),
		cmocka_unit_test(linked_texts_are_one),
		cmocka_unit_test(kernels_that_cannot_be_detached),
		cmocka_unit_test(written_tables_are_not_copied),
		cmocka_unit_test(errors_make_no_object),
		cmocka_unit_test(assembler_is_called),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
