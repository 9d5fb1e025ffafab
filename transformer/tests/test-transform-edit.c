/* Edits of a function; broken functions and the verifier. */
#include "ir-fixture.h"

#include "syntax/scope.h"

#include <errno.h>
#include <stdio.h>

static void assert_prints(struct fixture *x, struct function *f, const char *want)
{
	struct text text;

	if (fixture_verify(x, f))
		fail_msg("%s", x->diag.message);
	text_init(&text, 1 << 20);
	emit_function(&text, f);
	assert_string_equal(text.data, want);
	text_deinit(&text);
}

static void templates_go_in(void **state)
{
	(void)state;
	struct fixture x;
	struct function *f = fixture_function(&x, HEAD ".entry k() { .reg .b32 a; mov.u32 a, 1;\n"
						       "END: ret; }");
	struct reg *sum = edit_named_register(f, TYPE_b32, "sum");
	struct cursor at = cursor_after(f, f->entry->first);

	edit_code(&at,
		  "{ .reg .pred p; AGAIN: add.u32 %0, %0, %1; setp.lt.u32 p, %0, [%2+4];"
		  "  @p bra AGAIN; @!p bra %3; }",
		  op_reg(sum), op_int(7), op_special(f, "%tid.x"), op_block(f->last));
	assert_prints(&x, f,
		      ".entry k()\n{\n\t.reg .b32 a, %weir_sum_0;\n\t.reg .pred weir_p_1;\n"
		      "\tmov.u32\ta, 1;\n\nweir_AGAIN_2:\n"
		      "\tadd.u32\t%weir_sum_0, %weir_sum_0, 7;\n"
		      "\tsetp.lt.u32\tweir_p_1, %weir_sum_0, [%tid.x+4];\n"
		      "\t@weir_p_1 bra\tweir_AGAIN_2;\n\t@!weir_p_1 bra\tEND;\n\nEND:\n\tret;\n}");
	fixture_deinit(&x);
}

static void write_bad_template(void *data)
{
	struct function *f = data;
	struct cursor at = cursor_start(f, f->entry);

	edit_code(&at, "{ .reg .b32 a; mov.u32 %0, %1; }", op_special(f, "%tid.x"));
	fail();
}

static void bad_templates_stop(void **state)
{
	(void)state;
	struct fixture x;
	struct function *f = fixture_function(&x, HEAD ".entry k() { ret; }");
	const char *a = intern_string(&x.module.names, "a");

	assert_int_equal(diag_try(&x.diag, write_bad_template, f), -EINVAL);
	assert_string_equal(x.diag.message, "template '%1; }': the template has no operand 1");
	assert_null(scope_find(a)); /* its names are forgotten */
	fixture_deinit(&x);
}

static void blocks_split_at_the_cursor(void **state)
{
	(void)state;
	struct fixture x;
	struct function *f = fixture_function(
		&x, HEAD ".entry k() { .reg .b32 a; mov.u32 a, 1; mov.u32 a, 2; }");
	struct cursor split = cursor_before(f, f->entry->first->next);
	struct block *half = edit_new_block(f), *front;

	cursor_place(&split, half);
	front = edit_block(f, NULL, "front");
	struct cursor at = cursor_end(f, front);
	edit_code(&at, "bra %0;", op_block(half));
	assert_prints(&x, f,
		      ".entry k()\n{\n\t.reg .b32 a;\n\tbra\tweir_b1;\n\tmov.u32\ta, 1;\n\n"
		      "weir_b1:\n\tmov.u32\ta, 2;\n\tret;\n}");
	fixture_deinit(&x);
}

static void specials_are_replaced(void **state)
{
	(void)state;
	struct fixture x;
	struct function *f = fixture_function(
		&x, HEAD ".entry k() { .reg .b32 a, b, c; .reg .b16 h; .reg .pred p;\n"
			 "@p mov.v4.u32 {a, b, _, c}, %ctaid;\n"
			 "add.u32 a, %ctaid.x, %ctaid.y; mov.u16 h, %ctaid.x; }");
	struct reg *by = edit_named_register(f, TYPE_b32, "block");

	assert_true(edit_uses_special(f, "%ctaid"));
	assert_true(edit_uses_special(f, "%ctaid.z"));
	assert_false(edit_uses_special(f, "%nctaid"));
	assert_int_equal(edit_replace_special(f, "%ctaid.x", op_reg(by)), 3);
	assert_false(edit_uses_special(f, "%ctaid.x"));
	assert_true(edit_uses_special(f, "%ctaid"));
	assert_prints(&x, f,
		      ".entry k()\n{\n\t.reg .b32 a, b, c;\n\t.reg .b16 h;\n\t.reg .pred p;\n"
		      "\t.reg .b32 %weir_block_0;\n\t@p mov.u32\ta, %weir_block_0;\n"
		      "\t@p mov.u32\tb, %ctaid.y;\n\t@p mov.u32\tc, %ctaid.w;\n"
		      "\tadd.u32\ta, %weir_block_0, %ctaid.y;\n\tcvt.u16.u32\th, %weir_block_0;\n"
		      "\tret;\n}");
	fixture_deinit(&x);
}

static void parameters_come_last(void **state)
{
	(void)state;
	struct fixture x;
	struct function *f =
		fixture_function(&x, HEAD ".entry k(.param .u32 n) .maxntid 64\n{ ret; }");
	struct function *copy = parse_copy(f, "k2");

	assert_int_equal(fixture_body(&x, copy), 0);
	edit_parameter_bytes(copy, "weir_slice", 8, 24);
	edit_parameter_bytes(copy, "weir_word", 4, 4);
	edit_variable(copy, SPACE_SHARED, "box", 8, 16);
	assert_prints(&x, copy,
		      ".entry k2(\n\t.param .u32 n,\n\t.param .align 8 .b8 weir_slice[24],\n"
		      "\t.param .align 4 .b8 weir_word[4]\n)\n.maxntid 64\n{\n"
		      "\t.shared .align 8 .b8 weir_box_0[16];\n\tret;\n}");
	assert_null(f->params->next);
	fixture_deinit(&x);
}

static void broken_functions_are_found(void **state)
{
	(void)state;
	struct fixture x;
	struct function *f = fixture_function(&x, HEAD ".entry k() { .reg .pred p; .reg .b32 a;\n"
						       "@p mov.u32 a, 1; bra END; END: ret; }");
	struct instruction *i = f->entry->first;

	i->guard = fixture_reg(f, "a");
	assert_true(fixture_verify(&x, f) < 0);
	assert_int_equal(diag_take(&x.diag).at.line, 5);
	i->guard = NULL;
	edit_remove(f->last->first);
	assert_true(fixture_verify(&x, f) < 0);
	assert_string_equal(x.diag.message, "k: control falls off the end");
	fixture_deinit(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(templates_go_in),
		cmocka_unit_test(bad_templates_stop),
		cmocka_unit_test(blocks_split_at_the_cursor),
		cmocka_unit_test(specials_are_replaced),
		cmocka_unit_test(parameters_come_last),
		cmocka_unit_test(broken_functions_are_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
