/* Control flow and liveness. */
#include "analysis/uniform.h"
#include "analysis/warp-pair.h"
#include "weir/transform.h"

#include "ir-fixture.h"

#include <stdio.h>

/* An inner loop in an outer one, an unreachable block, and an exit from both loops. */
static const char nest[] = HEAD ".entry k(.param .u32 n) {\n"
				".reg .pred p, q; .reg .b32 i, j, sum, spare;\n"
				"ld.param.u32 j, [n]; mov.u32 i, 0; mov.u32 sum, 0; bra OUTER;\n"
				"DEAD: mov.u32 i, 7; bra OUTER;\n"
				"OUTER: add.u32 i, i, 1;\n"
				"INNER: add.u32 sum, sum, j; setp.eq.u32 q, sum, 5; @q bra OUT;\n"
				"setp.lt.u32 p, sum, i; @p bra INNER;\n"
				"TAIL: mov.u32 spare, 3; add.u32 sum, sum, spare; bar.sync 0;\n"
				"setp.lt.u32 p, i, 10; @p bra OUTER;\n"
				"OUT: st.shared.u32 [0], sum; ret; }";

static void loops_nest(void **state)
{
	(void)state;
	struct fixture x;
	struct function *f = fixture_function(&x, nest);
	struct cfg cfg;
	const struct loop *outer, *inner;

	cfg_build(f, &cfg);
	outer = fixture_block(f, "OUTER")->loop;
	inner = fixture_block(f, "INNER")->loop;
	assert_ptr_equal(outer->head, fixture_block(f, "OUTER"));
	assert_ptr_equal(inner->head, fixture_block(f, "INNER"));
	assert_ptr_equal(inner->parent, outer);
	assert_int_equal(outer->depth, 1);
	assert_int_equal(inner->depth, 2);
	assert_true(outer->has_barrier);
	assert_false(inner->has_barrier);
	assert_int_equal(inner->instruction_count, 5);
	assert_int_equal(outer->instruction_count, 11);
	assert_null(fixture_block(f, "OUT")->loop);
	assert_true(loop_contains(outer, fixture_block(f, "INNER")));
	assert_ptr_equal(f->loops, outer);
	assert_false(cfg.irreducible);
	assert_int_equal(fixture_block(f, "DEAD")->order, CFG_UNREACHED);
	fixture_deinit(&x);
}

static void dominators_are_on_all_paths(void **state)
{
	(void)state;
	struct fixture x;
	struct function *f = fixture_function(&x, nest);
	struct cfg cfg;

	cfg_build(f, &cfg);
	assert_ptr_equal(fixture_block(f, "OUT")->dominator, fixture_block(f, "INNER"));
	assert_true(cfg_dominates(f->entry, fixture_block(f, "TAIL")));
	assert_true(cfg_dominates(fixture_block(f, "INNER"), fixture_block(f, "OUT")));
	assert_false(cfg_dominates(fixture_block(f, "TAIL"), fixture_block(f, "OUT")));
	assert_true(cfg_dominates(fixture_block(f, "OUT"), fixture_block(f, "OUT")));
	fixture_deinit(&x);
}

static void irreducible_cycles_are_no_loops(void **state)
{
	(void)state;
	struct fixture x;
	struct function *f = fixture_function(&x, HEAD ".entry k() { .reg .pred p; @p bra B;\n"
						       "A: @p bra OUT;\nB: @p bra A;\nOUT: ret; }");
	struct cfg cfg;

	cfg_build(f, &cfg);
	assert_true(cfg.irreducible);
	assert_null(f->loops);
	fixture_deinit(&x);
}

/* Whether lanes of the warp may have exited at X. */
static void lanes_that_may_have_exited(void **state)
{
	static const struct {
		const char *code;
		bool has_exited;
	} cases[] = {
		{"@p ret; X: ret;", true},
		{"@p bra X; add.u32 r, r, 1; X: ret;", false},
		{"@p bra OUT; X: add.u32 r, r, 1; OUT: bar.sync 0; ret;", false},
		{"@p bra OUT; X: add.u32 r, r, 1; OUT: ret;", true},
		{"@p bra OUT; bar.sync 0; X: add.u32 r, r, 1; OUT: bar.sync 0; ret;", true},
		/* A value that one thread left for all; values that may change meanwhile. */
		{"bar.sync 0; ld.shared.u32 v, [s]; setp.eq.u32 q, v, 0; @q ret; X: ret;", false},
		{"ld.shared.u32 v, [s]; setp.eq.u32 q, v, 0; @q ret; X: ret;", true},
		{"bar.sync 0; ld.volatile.shared.u32 v, [s]; setp.eq.u32 q, v, 0; @q ret; X: ret;",
		 true},
		{"bar.sync 0; ld.acquire.cta.shared.u32 v, [s]; setp.eq.u32 q, v, 0; @q ret; X: "
		 "ret;",
		 true},
		{"bar.sync 0; st.shared.u32 [s], r; ld.shared.u32 v, [s]; setp.eq.u32 q, v, 0;\n"
		 "@q ret; X: ret;",
		 true},
	};

	(void)state;
	for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
		struct uniform_exited left;
		struct function *f;
		struct fixture x;
		struct cfg cfg;
		char text[512];

		snprintf(text, sizeof(text),
			 "%s.entry k() { .reg .pred p, q; .reg .b32 r, v; .shared .b32 s;\n"
			 "mov.u32 r, %%tid.x; setp.gt.u32 p, r, 3; %s }",
			 HEAD, cases[k].code);
		f = fixture_function(&x, text);
		cfg_build(f, &cfg);
		left = uniform_find_exited(f, &cfg);
		if (uniform_has_exited(&left, fixture_block(f, "X")->first) != cases[k].has_exited)
			fail_msg("%s", cases[k].code);
		fixture_deinit(&x);
	}
}

/* The code of a kernel whose @n branches, one in the other, end one after another. */
static char *nested_branches(unsigned n)
{
	char *text = malloc(64 * (size_t)n + 512), *at = text;

	*at = '\0';
	for (unsigned k = 0; k < n; k++)
		at += sprintf(at, "@p bra L%u;\n", k);
	for (unsigned k = n; k-- > 0;)
		at += sprintf(at, "L%u: add.u32 r, r, 1;\n", k);
	sprintf(at, "bar.sync 0; ret;");
	return text;
}

static bool all_reach_barriers(const char *code)
{
	char *text = malloc(strlen(code) + 512);
	struct function *f;
	struct fixture x;
	struct cfg cfg;
	bool all;

	sprintf(text,
		"%s.entry k() { .reg .pred p, q; .reg .b32 r, v; .reg .b64 d; .shared .b64 s;\n"
		"mov.u32 r, %%tid.x; setp.gt.u32 p, r, 3; %s }",
		HEAD, code);
	f = fixture_function(&x, text);
	cfg_build(f, &cfg);
	all = uniform_barriers(f, &cfg);
	fixture_deinit(&x);
	free(text);
	return all;
}

static void barriers_that_all_threads_reach(void **state)
{
	static const struct {
		const char *code;
		bool all;
	} cases[] = {
		{"@p add.u32 r, r, 1; bar.sync 0; ret;", true},
		{"@p bar.sync 0; ret;", false},
		{"brkpt; @p bar.sync 0; ret;", false}, /* a debugger goes on */
		{"trap; @p bar.sync 0; ret;", true},
		{"bar.red.popc.u32 v, 0, p; setp.eq.u32 q, v, 0; @q bar.sync 0; ret;", true},
		/* Each group of warps has its own result. */
		{"bar.red.popc.u32 v, 1, 64, p; setp.eq.u32 q, v, 0; @q bar.sync 0; ret;", false},
		{"mbarrier.arrive.expect_tx.shared::cta.b64 d, [s], 8; setp.eq.u64 q, d, 0;\n"
		 "@q bar.sync 0; ret;",
		 false},
	};
	char *few = nested_branches(50), *many = nested_branches(4000);

	(void)state;
	for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++)
		if (all_reach_barriers(cases[k].code) != cases[k].all)
			fail_msg("%s", cases[k].code);
	assert_true(all_reach_barriers(few));
	assert_false(all_reach_barriers(many)); /* that would take too long to find out */
	free(few);
	free(many);
}

static void branch_tables_have_all_edges(void **state)
{
	(void)state;
	struct fixture x;
	struct function *f =
		fixture_function(&x, HEAD ".entry k() { .reg .b32 i; t: .branchtargets A, B, A;\n"
					  "brx.idx i, t; A: ret; B: exit; C: ret; }");
	struct cfg cfg;

	cfg_build(f, &cfg);
	assert_int_equal(f->entry->succ_count, 3);
	assert_int_equal(fixture_block(f, "A")->pred_count, 2);
	assert_int_equal(fixture_block(f, "C")->order, CFG_UNREACHED);
	fixture_deinit(&x);
}

/* The cost of a long row of checks with one common exit must be linear. */
static void long_ladder_has_linear_cost(void **state)
{
	(void)state;
	enum { RUNGS = 20000 };
	char *text = malloc(64 * RUNGS), *at = text;
	struct fixture x;
	struct function *f;
	struct cfg cfg;
	struct live live;

	at += sprintf(at, HEAD ".entry k() { .reg .pred p; .reg .b32 r;\n");
	for (int k = 0; k < RUNGS; k++)
		at += sprintf(at, "setp.eq.u32 p, r, %d; @p bra OUT;\n", k);
	sprintf(at, "OUT: ret; }");
	f = fixture_function(&x, text);
	cfg_build(f, &cfg);
	assert_ptr_equal(fixture_block(f, "OUT")->dominator, f->entry);
	live_build(f, &cfg, &live);
	fixture_deinit(&x);
	free(text);
}

/* Whether the last warp instruction of the code is paired with the maker of its mask. */
static void certain_masks(void **state)
{
	static const struct {
		bool is_paired;
		const char *code;
	} cases[] = {
		{true, "activemask.b32 m; bar.warp.sync m;"},
		{true, "vote.sync.ballot.b32 m, p, -1; and.b32 a, m, b; mov.u32 c, a;\n"
		       "bar.warp.sync c;"},
		{true, "match.all.sync.b32 m|q, a, -1; @p bra L; add.u32 a, a, 1; L:\n"
		       "bar.warp.sync m;"},
		{true, "L: activemask.b32 m; @p trap; bar.warp.sync m; @q bra L;"},
		{true, "@p bra L; activemask.b32 m; bar.warp.sync m; L:"},
		/* used again, or made again */
		{false, "activemask.b32 m; L: bar.warp.sync m; @p bra L;"},
		{false, "L: activemask.b32 m; @p bra L; bar.warp.sync m;"},
		{false, "activemask.b32 m; N: add.u32 a, a, 1; bar.warp.sync m; @p bra N;"},
		/* some lanes do not come */
		{false, "activemask.b32 m; @p bra L; bar.warp.sync m; L:"},
		{false, "activemask.b32 m; @p bar.warp.sync m;"},
		{false, "activemask.b32 m; @p ret; bar.warp.sync m;"},
		/* not known */
		{false, "@p activemask.b32 m; bar.warp.sync m;"},
		{false, "activemask.b32 m; @p mov.u32 m, 7; bar.warp.sync m;"},
		{false, "activemask.b32 m; or.b32 a, m, b; bar.warp.sync a;"},
		{false, "bar.warp.sync b;"},
		{false, "bar.warp.sync 15;"},
	};

	(void)state;
	for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
		struct instruction *user = NULL;
		struct fixture x;
		struct function *f;
		struct cfg cfg;
		char text[512];

		snprintf(text, sizeof(text),
			 HEAD ".entry k() { .reg .pred p, q; .reg .b32 m, a, b, c;\n%s ret; }",
			 cases[k].code);
		f = fixture_function(&x, text);
		cfg_build(f, &cfg);
		for_each_instruction (i, f)
			if (i->mnemonic->op_class == OP_WARP)
				user = i;
		if (warp_is_paired(warp_pairs_find(f, &cfg), user) != cases[k].is_paired)
			fail_msg("%s", cases[k].code);
		fixture_deinit(&x);
	}
}

static void registers_read_later_are_live(void **state)
{
	(void)state;
	struct fixture x;
	struct function *f = fixture_function(&x, nest);
	struct block *outer = fixture_block(f, "OUTER"), *out = fixture_block(f, "OUT");
	struct cfg cfg;
	struct live live;

	cfg_build(f, &cfg);
	live_build(f, &cfg, &live);
	assert_true(live_at_start(&live, outer, fixture_reg(f, "i")));
	assert_true(live_at_start(&live, outer, fixture_reg(f, "j")));
	assert_true(live_at_start(&live, outer, fixture_reg(f, "sum")));
	assert_false(live_at_start(&live, outer, fixture_reg(f, "p")));
	assert_false(live_at_start(&live, outer, fixture_reg(f, "spare")));
	assert_true(live_at_start(&live, out, fixture_reg(f, "sum")));
	assert_false(live_at_start(&live, out, fixture_reg(f, "i")));
	assert_int_equal(live.count, 3);
	fixture_deinit(&x);
}

static void guarded_writes_do_not_kill(void **state)
{
	(void)state;
	struct fixture x;
	struct function *f = fixture_function(
		&x, HEAD ".entry k() { .reg .pred p; .reg .b32 a, b; .reg .v2 .u32 v;\n"
			 "HERE: mov.u32 v.x, 1; @p mov.u32 a, 1; mov.u32 b, 2;\n"
			 "add.u32 a, a, b; add.u32 a, a, v.x; st.shared.u32 [0], a; }");
	const struct block *here = fixture_block(f, "HERE");
	struct cfg cfg;
	struct live live;

	cfg_build(f, &cfg);
	live_build(f, &cfg, &live);
	assert_true(live_at_start(&live, here, fixture_reg(f, "p")));
	assert_true(live_at_start(&live, here, fixture_reg(f, "a")));
	assert_true(live_at_start(&live, here, fixture_reg(f, "v")));
	assert_false(live_at_start(&live, here, fixture_reg(f, "b")));
	fixture_deinit(&x);
}

static void carry_is_live_between(void **state)
{
	(void)state;
	struct fixture x;
	struct function *f =
		fixture_function(&x, HEAD ".entry k() { .reg .b32 a; .reg .pred p;\n"
					  "add.cc.u32 a, a, 1; bra L;\n"
					  "L: addc.u32 a, a, 0; st.shared.u32 [0], a; }");
	struct cfg cfg;
	struct live live;

	cfg_build(f, &cfg);
	live_build(f, &cfg, &live);
	assert_true(live_at_start(&live, fixture_block(f, "L"), f->carry));
	assert_false(live_at_start(&live, f->entry, f->carry));
	fixture_deinit(&x);
}

static void unknown_instructions_keep_registers_live(void **state)
{
	(void)state;
	struct fixture x;
	struct function *f = fixture_function(&x, HEAD ".entry k() { .reg .b32 a;\n"
						       "frobnicate.u32 a; st.shared.u32 [0], a; }");
	struct cfg cfg;
	struct live live;

	cfg_build(f, &cfg);
	live_build(f, &cfg, &live);
	assert_true(live_at_start(&live, f->entry, fixture_reg(f, "a")));
	fixture_deinit(&x);
}

/* Barriers in nested loops, threads that exit early, a barrier.red, irreducible control flow. */
static const char nested[] =
	HEAD ".entry k(.param .u32 n) { .reg .pred p, q; .reg .b32 a, b, n; ld.param.u32 n, [n];\n"
	     "mov.u32 a, %tid.x; setp.gt.u32 q, a, n; @q ret; mov.u32 b, 0;\n"
	     "OUTER: bar.sync 0;\n"
	     "INNER: add.u32 a, a, 1; setp.lt.u32 p, a, n; @p bra INNER; bar.sync 0;\n"
	     "TAIL: add.u32 b, b, a; setp.lt.u32 p, b, n; bar.red.or.pred q, 0, p; @q bra TAIL;\n"
	     "setp.lt.u32 p, a, b; @p bra OUTER; ret; }";

/* See exit-barrier.h and save/save.c. */
static void rewritten_loops_have_one_entry(void **state)
{
	static const char *const names[] = {"k__weir_persistent", "k__weir_resumable"};
	struct weir_transform_options options = {.forms = 1u << WEIR_PERSISTENT |
							  1u << WEIR_RESUMABLE};
	struct weir_error error;
	struct fixture x;
	size_t len;
	char *ptx;

	(void)state;
	assert_int_equal(weir_transform(&ptx, &len, nested, strlen(nested), &options, &error), 0);
	assert_null(strstr(ptx, "barrier.red"));
	fixture_parse(&x, ptx);
	assert_int_equal(x.diag.error, 0);
	for (size_t k = 0; k < 2; k++) {
		struct function *f = x.module.functions;
		struct cfg cfg;

		while (f && strcmp(f->name, names[k]) != 0)
			f = f->next;
		assert_non_null(f);
		assert_int_equal(fixture_body(&x, f), 0);
		cfg_build(f, &cfg);
		/* A block may be entered behind the draw if tickets are drawn ahead. */
		assert_true(!cfg.irreducible || k == 0);
	}
	fixture_deinit(&x);
	free(ptx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loops_nest),
		cmocka_unit_test(dominators_are_on_all_paths),
		cmocka_unit_test(irreducible_cycles_are_no_loops),
		cmocka_unit_test(branch_tables_have_all_edges),
		cmocka_unit_test(lanes_that_may_have_exited),
		cmocka_unit_test(barriers_that_all_threads_reach),
		cmocka_unit_test(long_ladder_has_linear_cost),
		cmocka_unit_test(certain_masks),
		cmocka_unit_test(registers_read_later_are_live),
		cmocka_unit_test(guarded_writes_do_not_kill),
		cmocka_unit_test(carry_is_live_between),
		cmocka_unit_test(unknown_instructions_keep_registers_live),
		cmocka_unit_test(rewritten_loops_have_one_entry),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
