/* Wrong and hostile texts: each is refused with its line and a reason. */
#include "ptx-fixture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define BODY(statements)                                                          \
	PTX_HEAD ".entry k(.param .u64 out) {\n.reg .b32 %r<5>; .reg .b64 %d<5>;" \
		 " .reg .pred %p<3>;\n" statements "\nret; }\n"

static void refused(const char *text, int line, const char *message)
{
	struct ptx_module *module = NULL;
	struct ptx_error error;
	/* An exact copy, so that a look beyond its end is noticed. */
	size_t len = strlen(text);
	char *copy = malloc(len ? len : 1);

	assert_non_null(copy);
	for (size_t k = 0; k < len; k++)
		copy[k] = text[k];
	int r = ptx_module_load(&module, copy, len, &error);
	free(copy);
	ptx_module_free(module);
	if (r != -EINVAL || error.line != line || !strstr(error.message, message))
		fail_msg("%s: %d, line %d: '%s', not line %d: '%s'", text, r, error.line,
			 error.message, line, message);
}

static void outside_of_functions(void **state)
{
	(void)state;
	refused("", 1, "no PTX");
	refused("hello", 1, "expected a directive");
	refused(".version 5.0\n", 1, "5.0 is not one");
	refused(".version 12.0\n", 1, "is not one");
	refused(".version 8.0\n.target sm_80\n", 3, "no .address_size");
	refused(".version 8.0\n.address_size 32", 2, "address_size 64");
	refused(".entry k() { ret; }", 1, "expected .version");
	refused(PTX_HEAD ".entry k()\n{ ret;", 5, "end of the text");
	refused(PTX_HEAD ".strange", 4, "unknown directive .strange");
	refused(PTX_HEAD ".global .texref t;", 4, "unknown word .texref");
	refused(PTX_HEAD ".global .u32 x;\n.global .u32 x;", 5, "declared twice");
	refused(PTX_HEAD ".entry k() { ret; }\n.entry k() { ret; }", 5, "declared twice");
	refused(PTX_HEAD ".global .u32 x[2] = {1, 2, 3};", 4, "more values");
	refused(PTX_HEAD ".global .u32 x[4000000000][4000000000];", 4, "too large");
	refused(PTX_HEAD ".global .u32 x[-1];", 4, "too large");
	refused(PTX_HEAD ".global .align 3 .u32 x;", 4, "alignment");
	refused(PTX_HEAD ".shared .b8 x[1000000];", 4, "over 262144 bytes");
	refused(PTX_HEAD ".extern .global .u32 x;", 4, "nothing is linked");
	refused(PTX_HEAD ".global .u64 p = nothing;", 4, "no address");
	refused(PTX_HEAD ".global .u32 x = 1 / 0;", 4, "no value");
	refused(PTX_HEAD ".entry k(.param .b8 x[40000]) { ret; }", 4, "too large");
	refused(PTX_HEAD "\"text", 4, "string without an end");
	refused(PTX_HEAD ".global .u32 x = 0x1ffffffffffffffff;", 4, "malformed number");
	refused(PTX_HEAD ".global .f32 x = 0f3F80;", 4, "malformed floating");
	refused(PTX_HEAD "/* never ends", 4, "comment without an end");
	refused(PTX_HEAD "\\", 4, "not PTX");
}

static void inside_of_functions(void **state)
{
	(void)state;
	refused(BODY("add.u32 %r1, %r2, %x;"), 6, "%x is not declared");
	refused(BODY("add.u32 %r1, %r2, %r5;"), 6, "%r5 is not declared");
	refused(BODY("add.u32 %r1, %r2, %d1;"), 6, "%d1 of add is no .u32");
	refused(BODY("add.u32 %d1, %r2, %r3;"), 6, "register of 32 bits");
	refused(BODY("add.u32 %r1, %r2;"), 6, "has 2 operands");
	refused(BODY("add.u32 5, %r2, %r3;"), 6, "operand 5");
	refused(BODY("add.f32 %r1, %r2, 1;"), 6, "no .f32");
	refused(BODY("mov.u32 %tid.x, %r1;"), 6, "%tid.x");
	refused(BODY("@%r1 bra L; L:"), 6, "no predicate");
	refused(BODY("bra L;"), 6, "no label L");
	refused(BODY("{ L: } bra L;"), 6, "no label L");
	refused(BODY("L: L:"), 6, "declared twice");
	refused(BODY("brx.idx %r1, L; L:"), 6, "no list of labels");
	refused(BODY("ld.global.u32 %r1, %d1;"), 6, "no address");
	refused(BODY("ld.shared.u32 %r1, [out];"), 6, "another state space");
	refused(BODY("st.param.u64 [out], %d1;"), 6, "read only");
	refused(BODY("ld.global.v2.u32 %r1, [%d1];"), 6, "as many registers");
	refused(BODY("call nothing;"), 6, "cannot be called");
	refused(BODY("call k;"), 6, "cannot be called");
	refused(BODY("add.u32 %r1, %r2, %r3\nret;"), 7, "expected ;");
	refused(BODY(".reg .b32 %r<9>;"), 6, "declared twice");
	refused(BODY(".reg .v4 .b32 %v;"), 6, "width");
	refused(BODY(".strange 5;"), 6, "unknown directive .strange");
	refused(BODY(".local .b8 x[600000];"), 6, "over 524288 bytes");
}

static void unknown_instructions(void **state)
{
	static const struct {
		const char *statement, *message;
	} rows[] = {
		{"frobnicate.u32 %r1, {%r2, [%d1]}, @;", "unknown instruction frobnicate"},
		{"add.strange.u32 %r1, %r2, %r3;", "add_strange_u32"},
		{"add.rn.u32 %r1, %r2, %r3;", "add_rn_u32"},
		{"ld.global.strange.u32 %r1, [%d1];", "modifier .strange of ld"},
		{"tex.2d.v4.f32.f32 {%r1, %r2, %r3, %r4}, [out, {%r1, %r2}];",
		 "unknown instruction tex"},
		{"shfl.up.b32 %r1, %r2, 1, 0;", "shfl without .sync"},
		{"atom.global.mul.u32 %r1, [%d1], 5;", "modifiers of atom"},
		{"mma.sync.aligned.m16n8k8.row.col.f32 {%r1}, {%r2}, {%r3}, {%r4};", "mma"},
		{"setp.strange.u32 %p1, %r1, %r2;", "unknown comparison"},
		{"cvt.s32.f32 %r1, %r2;", "this rounding of cvt.s32.f32"},
		{"add.u32 %r1, %clock, %r3;", "%clock as an operand"},
		{"lop3.or.b32 %r1|%p1, %r2, %r3, %r4, 5, %p2;", "lop3_or_b32"},
	};

	(void)state;
	for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
		char text[1024];
		struct ptx_error error = {0};
		snprintf(text, sizeof(text),
			 PTX_HEAD
			 ".entry good() { ret; }\n"
			 ".entry bad(.param .u64 out) {\n.reg .b32 %%r<5>; .reg .b64 %%d<5>;\n"
			 ".reg .pred %%p<3>;\n%s\nret; }\n"
			 ".func f() { frobnicate; ret; }\n.entry caller() {\ncall f; ret; }\n",
			 rows[k].statement);
		struct ptx_module *module = fixture_load(text);
		struct ptx_kernel *bad = ptx_module_kernel(module, "bad");
		assert_int_equal(ptx_kernel_check(ptx_module_kernel(module, "good"), &error), 0);
		assert_int_equal(ptx_kernel_check(bad, &error), -ENOTSUP);
		if (error.line != 8 || !strstr(error.message, rows[k].message))
			fail_msg("line %d: '%s', not '%s'", error.line, error.message,
				 rows[k].message);
		assert_int_equal(
			ptx_run_block(bad, &(struct ptx_launch){0}, 0, 0, NULL, &error, NULL),
			-ENOTSUP);
		assert_int_equal(ptx_kernel_check(ptx_module_kernel(module, "caller"), &error),
				 -ENOTSUP);
		assert_int_equal(error.line, 10);
		ptx_module_free(module);
	}
}

static void oddities_that_are_allowed(void **state)
{
	struct ptx_module *module = fixture_load(
		"// a comment\n.version 9.0\n.target sm_90a, debug\n.address_size 64\n"
		".file 1 \"a.cu\", 5, 7\n.pragma \"nounroll\";\n"
		".section .debug_str { $L1: .b8 1, 2, 3 .b64 .debug_info }\n"
		".visible .func (.param .align 8 .b8 _[16]) nothing(.param .b32 _);\n"
		".weak .global .attribute(.managed) .align 8 .v2 .f32 x = {1.0, 2.0};\n"
		".visible .entry k(.param .u64 .ptr .global .align 16 p)\n"
		".maxntid 128, 2\n.minnctapersm 2\n.reqntid 32\n.maxnreg 50\n"
		"{\n.loc 1 5 3, function_name $L1, inlined_at 1 2 3\n.pragma \"unroll\";\n"
		".reg .b32 %r<1000000000>; .reg .b32 %r1<3>; ;\n"
		"mov.u32 %r999999999, 5; mov.u32 %r12, 5; bra.uni $next;\n"
		"{ $next: { .reg .b32 %r1; mov.u32 %r1, 7; } }\n"
		"$next: prefetch.global.L2 [p]; ret;\n}\n");
	struct ptx_kernel *kernel = ptx_module_kernel(module, "k");
	struct ptx_error error;

	(void)state;
	assert_int_equal(ptx_kernel_check(kernel, &error), 0);
	assert_int_equal(ptx_kernel_max_threads(kernel), 32);
	assert_int_equal(ptx_kernel_param_count(kernel), 1);
	assert_int_equal(ptx_kernel_param(kernel, 0).size, 8);
	assert_string_equal(ptx_kernel_name(ptx_module_kernel_at(module, 0)), "k");
	assert_null(ptx_module_kernel_at(module, 1));
	assert_null(ptx_module_kernel(module, "nothing"));
	void *p = NULL;
	assert_int_equal(fixture_run(module, "k", DIM(1), DIM(32), 0, &p, &error), 0);
	assert_int_equal(fixture_run(module, "k", DIM(1), DIM(16), 0, &p, &error), -EINVAL);
	ptx_module_free(module);
}

/* Cut at each byte, and each byte replaced: nothing but an error may come of it. */
static void damaged_texts(void **state)
{
	static const char text[] = PTX_HEAD
		".global .align 4 .u32 x[3] = {1, generic(x)+4, -0x2};\n"
		".func (.param .b32 o) f(.param .b32 i) { ret; }\n"
		".visible .entry k(.param .u64 out) .maxntid 32, 1, 1\n{\n"
		".reg .pred %p<2>; .reg .b32 %r<4>; .reg .b64 %d<3>; .local .b8 l[8];\n"
		"L: ld.param.u64 %d1, [out]; mov.b64 {%r1, %r2}, %d1; @!%p1 bra L;\n"
		"{ .param .b32 a, b; st.param.b32 [a+0], %r1; call.uni (b), f, (a); }\n"
		"fma.rn.f32 %r1, %r2, 0f3F800000, 1.5; T: .branchtargets L, L; brx.idx %r1, T;\n"
		"shfl.sync.up.b32 %r1|%p1, %r2, 1, 0, -1; st.global.u32 [%d1+4], x; ret;\n}\n";
	static const char bytes[] = "\0 {}[]();:,.%@!|\"/*-+x0\x80";

	(void)state;
	for (size_t at = 0; at < sizeof(text) - 1; at++) {
		for (size_t k = 0; k <= sizeof(bytes); k++) {
			size_t len = k < sizeof(bytes) ? sizeof(text) - 1 : at;
			char *copy = malloc(len + 1);
			struct ptx_module *module = NULL;
			struct ptx_error error;
			assert_non_null(copy);
			memcpy(copy, text, len);
			if (k < sizeof(bytes))
				copy[at] = bytes[k];
			int r = ptx_module_load(&module, copy, len, &error);
			assert_true(r == 0 || (r == -EINVAL && error.message[0]));
			ptx_module_free(module);
			free(copy);
		}
	}
}

static void deep_nesting(void **state)
{
	enum { DEPTH = 100000 };
	size_t room = DEPTH + 1000;
	char *text = malloc(room);

	(void)state;
	assert_non_null(text);
	size_t n = (size_t)snprintf(text, room, PTX_HEAD ".entry k() ");
	memset(text + n, '{', DEPTH);
	text[n + DEPTH] = '\0';
	refused(text, 4, "nested too deep");
	n = (size_t)snprintf(text, room, PTX_HEAD ".global .u32 x = ");
	memset(text + n, '(', DEPTH);
	text[n + DEPTH] = '\0';
	refused(text, 4, "nested too deep");
	memset(text + n, '-', DEPTH);
	refused(text, 4, "nested too deep");
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(outside_of_functions), cmocka_unit_test(inside_of_functions),
		cmocka_unit_test(unknown_instructions), cmocka_unit_test(oddities_that_are_allowed),
		cmocka_unit_test(damaged_texts),        cmocka_unit_test(deep_nesting),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
