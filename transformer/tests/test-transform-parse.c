/* The parser: names, scopes, blocks, operands, and refusals. */
#include "ir-fixture.h"

static void names_of_scopes_are_all_different(void **state)
{
	(void)state;
	struct fixture x;
	struct function *f = fixture_function(&x, HEAD ".entry k() { .reg .b32 a; mov.u32 a, 1;\n"
						       "{ .reg .b32 a; mov.u32 a, 2; }\n"
						       "{ .reg .b32 a<2>; mov.u32 a1, 3; } }");
	const struct instruction *i = f->entry->first;

	assert_string_equal(i->operands[0].reg->name, "a");
	assert_string_equal(i->next->operands[0].reg->name, "weir_a_0");
	assert_string_equal(i->next->next->operands[0].reg->name, "weir_a1_1");
	assert_int_equal(fixture_verify(&x, f), 0);
	fixture_deinit(&x);
}

/* Templates of passes use these names. */
static void special_registers_are_renamed(void **state)
{
	(void)state;
	struct fixture x;
	struct function *f = fixture_function(
		&x, HEAD ".entry k() { .reg .b32 %tid, %smid; .reg .v4 .b32 %ctaid;\n"
			 "mov.u32 %tid, 1; mov.u32 %smid, 2; mov.u32 %tid, %ctaid.x; }");
	const struct instruction *i = f->entry->first;

	assert_string_equal(i->operands[0].reg->name, "%weir_tid_0");
	assert_string_equal(i->next->operands[0].reg->name, "%smid");
	assert_string_equal(i->next->next->operands[1].reg->name, "%weir_ctaid_1");
	fixture_deinit(&x);
}

static void prefix_is_unique(void **state)
{
	(void)state;
	struct fixture x;

	fixture_parse(&x, HEAD ".entry k() { .reg .b32 %weir__a, weir; mov.u32 weir, 1; }");
	assert_string_equal(x.module.prefix, "weir___");
	fixture_deinit(&x);
}

static void labels_belong_to_scopes(void **state)
{
	(void)state;
	struct fixture x;
	struct function *f = fixture_function(&x, HEAD ".entry k() { .reg .pred p;\n"
						       "{ @p bra DONE; { @p bra OUT; } DONE: }\n"
						       "{ @p bra DONE; DONE: }\n"
						       "OUT: ret; }");
	const struct block *b = f->entry;
	const struct block *first = b->last->operands[0].block;
	const struct block *out = b->next->last->operands[0].block;
	const struct block *second = first->last->operands[0].block;

	assert_string_equal(first->label, "weir_DONE_0");
	assert_string_equal(second->label, "weir_DONE_1");
	assert_string_equal(out->label, "OUT");
	assert_ptr_equal(out, f->last);
	fixture_deinit(&x);
}

static void group_members_are_found_by_any_stem(void **state)
{
	(void)state;
	struct fixture x;
	struct function *f =
		fixture_function(&x, HEAD ".entry k() { .reg .b32 %r<8>; .reg .b64 %r1<3>;\n"
					  "mov.u32 %r7, 1; mov.u64 %r12, 1; }");

	assert_int_equal(fixture_reg(f, "%r7")->type, TYPE_b32);
	assert_int_equal(fixture_reg(f, "%r12")->type, TYPE_b64);
	fixture_deinit(&x);
}

static void body_ends_with_a_return(void **state)
{
	(void)state;
	struct fixture x;
	struct function *f = fixture_function(&x, HEAD ".entry k() { .reg .pred p; @p exit; }");

	assert_int_equal(instruction_ends_block(f->last->last), true);
	assert_null(f->last->last->guard);
	fixture_deinit(&x);
}

static void heads_keep_sizes_and_directives(void **state)
{
	(void)state;
	struct fixture x;
	struct function *f = fixture_function(
		&x, HEAD ".extern .shared .align 16 .b8 dyn[];\n"
			 ".visible .entry k(.param .u64 .ptr .global .align 4 p,\n"
			 "  .param .align 8 .b8 s[24]) .maxntid 64, 2, 1 .minnctapersm 2\n"
			 "{ .shared .align 8 .v2 .f32 t[3][4]; ret; }");
	const struct directive *d = function_directive(f, "maxntid");

	assert_int_equal(f->params->size, 8);
	assert_int_equal(f->params->next->size, 24);
	assert_int_equal(f->params->next->align, 8);
	assert_int_equal(f->variables->size, 96);
	assert_int_equal(x.module.variables->size, 0);
	assert_string_equal(x.module.variables->linkage, ".extern");
	assert_int_equal(d->values[0], 64);
	assert_int_equal(d->values[1], 2);
	assert_int_equal(function_directive(f, "minnctapersm")->values[0], 2);
	fixture_deinit(&x);
}

static void immediates_are_sums(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		uint64_t value;
	} sums[] = {
		{"8-4", 4},           {"0xffffffff-1", 0xfffffffe},
		{"-4+2", -2ull},      {"2+3*4-1", 13},
		{"4*-2*3+1", -23ull}, {"1--1", 2},
		{"5 - 2 - 1", 2},     {"7", 7},
	};

	for (size_t k = 0; k < sizeof(sums) / sizeof(sums[0]); k++) {
		struct fixture x;
		struct function *f;
		char text[256];

		snprintf(text, sizeof(text), HEAD ".entry k() { .reg .b32 a; mov.u32 a, %s; }",
			 sums[k].text);
		f = fixture_function(&x, text);
		if (f->entry->first->operands[1].value != sums[k].value)
			fail_msg("%s is %lld", sums[k].text,
				 (long long)f->entry->first->operands[1].value);
		fixture_deinit(&x);
	}
}

static void classes_depend_on_modifiers(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		enum opcode_class op_class;
	} rows[] = {
		{"bar.sync 0;", OP_BARRIER},
		{"bar.warp.sync -1;", OP_WARP},
		{"barrier.cta.arrive 1, 64;", OP_BARRIER},
		{"barrier.cluster.wait;", OP_CLUSTER},
		{"st.async.weak [at], r;", OP_ASYNC},
		{"st.shared::cluster.u32 [at], r;", OP_CLUSTER},
		{"st.shared::cta.u32 [at], r;", OP_MEMORY},
		{"frobnicate.sync r;", OP_UNKNOWN},
		{".pragma \"nounroll\";", OP_DIRECTIVE},
	};

	for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
		struct fixture x;
		struct function *f;
		char text[256];

		snprintf(text, sizeof(text), HEAD ".entry k() { .reg .b32 r; .reg .b64 at; %s }",
			 rows[k].text);
		f = fixture_function(&x, text);
		assert_int_equal(f->entry->first->mnemonic->op_class, rows[k].op_class);
		fixture_deinit(&x);
	}
}

static void refusals_say_where(void **state)
{
	(void)state;
	static const struct {
		const char *body, *message;
		uint32_t line;
	} rows[] = {
		{"\nmov.u32 a, 1;", "'a' is not known", 2},
		{"\n\nbra NOWHERE;", "the label 'NOWHERE' is not defined", 3},
		{".reg .b32 a, a;", "'a' is declared twice", 1},
		{"L: L: ret;", "the label 'L' is defined twice", 1},
		{"{ ret;", NULL, 0}, /* an error of the module: the body is not terminated */
		{"bra 5;", "a branch has one target", 1},
		{".reg .b32 a; mov.u32 a, [a;", "']' expected", 1},
		{"ret", "an operand expected", 1},
		{".pragma \"nounroll\"", "';' expected", 1},
	};

	for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
		struct fixture x;
		char text[256];

		snprintf(text, sizeof(text), ".version 8.0 .target sm_80 .entry k() {%s }",
			 rows[k].body);
		fixture_parse(&x, text);
		if (!rows[k].message) {
			assert_true(x.diag.error);
		} else {
			assert_int_equal(x.diag.error, 0);
			assert_true(fixture_body(&x, x.module.functions) < 0);
			assert_string_equal(x.diag.message, rows[k].message);
			assert_int_equal(x.diag.at.line, rows[k].line);
		}
		fixture_deinit(&x);
	}
}

static void zero_bytes_are_no_text(void **state)
{
	(void)state;
	static const char text[] = HEAD "// \0\n.entry k() { ret; }";
	struct fixture x = {0};

	arena_init(&x.arena, 1 << 20, &x.diag);
	assert_true(parse_module(&x.module, &x.arena, text, sizeof(text) - 1) < 0);
	fixture_deinit(&x);
}

static void memory_runs_out_gracefully(void **state)
{
	(void)state;
	static const char text[] =
		HEAD ".entry k(.param .u32 p) { .reg .b32 %r<9>; L: mov.u32 %r1, 1;"
		     " { .reg .b32 q; add.u32 q, %r1, 2; bra L; } }";

	for (size_t max = 0; max < 12000; max += 16) {
		struct fixture x = {0};

		arena_init(&x.arena, max, &x.diag);
		arena_init(&x.body_arena, max / 2, &x.diag);
		if (!parse_module(&x.module, &x.arena, text, strlen(text)))
			fixture_body(&x, x.module.functions);
		assert_true(x.diag.error || max > 1000);
		fixture_deinit(&x);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_of_scopes_are_all_different),
		cmocka_unit_test(special_registers_are_renamed),
		cmocka_unit_test(prefix_is_unique),
		cmocka_unit_test(labels_belong_to_scopes),
		cmocka_unit_test(group_members_are_found_by_any_stem),
		cmocka_unit_test(body_ends_with_a_return),
		cmocka_unit_test(heads_keep_sizes_and_directives),
		cmocka_unit_test(immediates_are_sums),
		cmocka_unit_test(classes_depend_on_modifiers),
		cmocka_unit_test(refusals_say_where),
		cmocka_unit_test(zero_bytes_are_no_text),
		cmocka_unit_test(memory_runs_out_gracefully),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
