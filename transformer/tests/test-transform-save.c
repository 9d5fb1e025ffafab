/* The variables that a worker saves, and kernels that are refused because of them. */
#include "weir/transform.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define HEAD ".version 8.0\n.target sm_80\n.address_size 64\n"

#define KERNELS_MAX 3

/* The verdicts on the kernels of a module, in its order. */
struct saves {
	unsigned n;
	bool eligible[KERNELS_MAX];
	long shared[KERNELS_MAX], local[KERNELS_MAX]; /* bytes per worker, per thread */
	char reason[KERNELS_MAX][128];
};

static void note(void *data, const struct weir_verdict *verdict)
{
	struct saves *saves = data;
	unsigned k = saves->n++;

	assert_in_range(k, 0, KERNELS_MAX - 1);
	saves->eligible[k] = verdict->eligible;
	saves->local[k] = verdict->save_per_thread;
	/* The rest is room to fill the last warp, and to align. */
	saves->shared[k] = verdict->save_fixed - 31L * verdict->save_per_thread;
	snprintf(saves->reason[k], sizeof(saves->reason[k]), "%s", verdict->reason);
}

static unsigned registers_max; /* of a build; 0: no limit */

/* The text in resumable, for free(). */
static char *look(struct saves *saves, const char *text)
{
	struct weir_transform_options options = {.forms = 1u << WEIR_RESUMABLE,
						 .registers_max = registers_max,
						 .verdict = note,
						 .data = saves};
	struct weir_error error = {0};
	char *out = NULL;
	size_t len;

	*saves = (struct saves){0};
	if (weir_transform(&out, &len, text, strlen(text), &options, &error))
		fail_msg("line %u: %s", error.line, error.message);
	return out;
}

/* Kernels with a loop to leave at: one names no variable, one calls a function that names none. */
#define KERNEL(name, in_loop)                                                 \
	".entry " name "() { .reg .pred p; .reg .b32 r; mov.u32 r, %clock;\n" \
	"AGAIN: " in_loop " add.u32 r, r, 1; setp.ne.u32 p, r, 7; @p bra AGAIN; ret; }\n"
#define NOBODY  ".func nobody() { ret; }\n"
#define FREE    KERNEL("free", "")
#define CALLING KERNEL("calling", "call nobody, ();")

static void only_what_may_be_used_is_saved(void **state)
{
	static const char text[] = HEAD
		".shared .align 16 .b8 small[512]; .shared .align 16 .b8 large[1024];\n"
		".global .align 16 .b8 elsewhere[2048];\n" NOBODY
			/* Several kernels share the cached variables of called functions. */
			CALLING FREE KERNEL("naming", "st.shared.u32 [small], r; call nobody, ();");
	static const char alone[] =
		HEAD ".shared .align 16 .b8 small[512]; .shared .align 16 .b8 large[1024];\n" FREE
			KERNEL("naming", "red.shared.add.u32 [small], r;");
	static const char local[] =
		HEAD FREE KERNEL("local", ".local .align 4 .b8 mine[40]; st.local.u32 [mine], r;");
	struct saves saves;

	(void)state;
	free(look(&saves, text));
	assert_int_equal(saves.n, 3);
	assert_int_equal(saves.shared[0] - saves.shared[1], 512 + 1024);
	assert_int_equal(saves.shared[2], saves.shared[0]);
	free(look(&saves, alone));
	assert_int_equal(saves.shared[1] - saves.shared[0], 512);
	free(look(&saves, local));
	assert_int_equal(saves.shared[1], saves.shared[0]);
	assert_int_equal(saves.local[1] - saves.local[0], 40);
}

static unsigned count_of(const char *text, const char *name)
{
	unsigned n = 0;

	while ((text = strstr(text, name))) {
		text += strlen(name);
		n++;
	}
	return n;
}

/* All of them begin at one address. */
static void one_dynamic_variable_stands_for_all(void **state)
{
	static const char text[] =
		HEAD ".extern .shared .align 4 .b8 narrow[];\n"
		     ".extern .shared .align 16 .b8 first_wide[];\n"
		     ".extern .shared .align 16 .b8 second_wide[];\n" NOBODY CALLING;
	struct saves saves;
	char *ptx = look(&saves, text);

	(void)state;
	assert_true(saves.eligible[0]);
	assert_int_equal(count_of(ptx, "narrow"), 1);
	assert_in_range(count_of(ptx, "first_wide"), 3,
			9); /* at the declaration, when saving, when restoring */
	assert_int_equal(count_of(ptx, "second_wide"), 1);
	free(ptx);
}

/* @n variables, of which a save holds 64; @in_loop prints the code of a kernel for each. */
static char *with_variables(unsigned n, const char *in_loop, const char *others)
{
	size_t len;
	char *text = NULL;
	FILE *out = open_memstream(&text, &len);

	assert_non_null(out);
	fputs(HEAD NOBODY, out);
	for (unsigned k = 0; k < n; k++)
		fprintf(out, ".shared .align 16 .b8 shared_%u[16];\n", k);
	fputs(".entry naming() { .reg .pred p; .reg .b32 r; mov.u32 r, %clock;\nAGAIN: ", out);
	for (unsigned k = 0; k < n; k++)
		fprintf(out, in_loop, k);
	fputs("add.u32 r, r, 1; setp.ne.u32 p, r, 7; @p bra AGAIN; ret; }\n", out);
	fputs(others, out);
	assert_int_equal(fclose(out), 0);
	return text;
}

static void too_many_variables_are_refused(void **state)
{
	static const char naming[] = "red.shared.add.u32 [shared_%u], r;\n";
	static const unsigned too_many[] = {65, 70, 5000};
	struct saves saves;
	char *text;

	(void)state;
	for (size_t k = 0; k < sizeof(too_many) / sizeof(too_many[0]); k++) {
		text = with_variables(too_many[k], naming, CALLING FREE);
		free(look(&saves, text));
		for (unsigned i = 0; i < 2; i++) {
			assert_false(saves.eligible[i]);
			assert_string_equal(saves.reason[i], "more than 64 variables to save");
		}
		assert_true(saves.eligible[2]);
		free(text);
	}
	/* The form's own variables need room, too. */
	text = with_variables(48, naming, CALLING FREE);
	free(look(&saves, text));
	assert_int_equal(saves.shared[0] - saves.shared[2], 48 * 16);
	assert_int_equal(saves.shared[1], saves.shared[0]);
	free(text);
}

/* A kernel without a loop has no safe point and saves nothing. */
static void variables_of_functions_are_out_of_reach(void **state)
{
	static const char text[] =
		HEAD ".func keeps() { .shared .align 4 .b32 own; st.shared.u32 [own], 1; ret; }\n"
		     ".func asks() { call keeps, (); ret; }\n" KERNEL("calling", "call asks, ();")
			     FREE ".entry straight() { call keeps, (); ret; }\n";
	struct saves saves;

	(void)state;
	free(look(&saves, text));
	assert_false(saves.eligible[0]);
	assert_string_equal(saves.reason[0],
			    "calls keeps, which has shared memory of its own that cannot be saved");
	assert_true(saves.eligible[1]);
	assert_true(saves.eligible[2]);
}

static void the_carry_flag_cannot_be_saved(void **state)
{
	static const char text[] = HEAD KERNEL("carrying", "addc.cc.u32 r, r, 3;");
	struct saves saves;

	(void)state;
	free(look(&saves, text));
	assert_false(saves.eligible[0]);
	assert_non_null(strstr(saves.reason[0], "the carry flag is live at a safe point"));
}

#define MALLOC_OF(guard, between)                                              \
	"{ .param .b64 a; .param .b64 o; st.param.b64 [a], 16; " between guard \
	" call (o), malloc, (a); ld.param.b64 d, [o]; }\n"
#define FREE_MEMORY "{ .param .b64 a; st.param.b64 [a], d; call free, (a); }\n"
#define DRIVER                                                   \
	".extern .func (.param .b64 o) malloc(.param .b64 i);\n" \
	".extern .func free(.param .b64 i);\n"                   \
	".extern .func other(.param .b64 i);\n.visible .func own(.param .b64 i) { ret; }\n"

/* Lanes enter and leave the count once for each call of the driver's. A block looks at it only when
 * it is its turn. */
static void calls_of_the_driver_are_counted(void **state)
{
	static const struct {
		const char *head, *in_loop;
		unsigned counted;
	} kernels[] = {
		{HEAD, MALLOC_OF("", ""), 1},
		{HEAD, MALLOC_OF("", "") FREE_MEMORY, 2},
		{HEAD, MALLOC_OF("", "add.u32 r, r, 0;"), 1},
		/* A lane that has entered would wait for one that has not. */
		{HEAD, MALLOC_OF("", "bar.warp.sync -1;"), 0},
		/* PTX allows no branch between the call and its parameters. */
		{HEAD, MALLOC_OF("@p", ""), 0},
		{HEAD, "{ .param .b64 a; st.param.b64 [a], 1; call own, (a); }", 0},
		/* No nanosleep. */
		{".version 6.2\n.target sm_70\n.address_size 64\n", MALLOC_OF("", ""), 0},
	};

	(void)state;
	for (size_t k = 0; k < sizeof(kernels) / sizeof(kernels[0]); k++) {
		char text[2000], *out;
		struct saves saves;

		snprintf(text, sizeof(text),
			 "%s" DRIVER ".entry k() { .reg .pred p; .reg .b32 r; .reg .b64 d;\n"
			 "mov.u32 r, %%clock; setp.eq.u32 p, r, 0; AGAIN: %s add.u32 r, r, 1;\n"
			 "setp.ne.u32 p, r, 7; @p bra AGAIN; ret; }\n",
			 kernels[k].head, kernels[k].in_loop);
		out = look(&saves, text);
		assert_true(saves.eligible[0]);
		assert_int_equal(count_of(out, "nanosleep"), kernels[k].counted);
		assert_int_equal(count_of(out, "atom.shared.cas.b32\t%weir_since"),
				 kernels[k].counted);
		assert_int_equal(count_of(out, "atom.global.add.u32\t%weir_now"),
				 kernels[k].counted);
		assert_int_equal(count_of(out, "red.global.add.u32\t[%weir_calls"),
				 2 * kernels[k].counted);
		/* One lane of those that are together enters, the others call after it. */
		assert_int_equal(count_of(out, "vote.sync.ballot.b32\t%weir_left"),
				 kernels[k].counted);
		free(out);
	}
}

/* Threads in printf() keep no others waiting that are in malloc(). */
static void what_is_printed_has_a_count_of_its_own(void **state)
{
	static const struct {
		const char *call, *word, *other;
	} kernels[] = {
		{MALLOC_OF("", ""), "weir_calls", "weir_prints"},
		{"{ .param .b64 a; .param .b64 b; .param .b32 o; st.param.b64 [a], d;"
		 " st.param.b64 [b], d; call (o), vprintf, (a, b); }\n",
		 "weir_prints", "weir_calls"},
	};

	(void)state;
	for (size_t k = 0; k < sizeof(kernels) / sizeof(kernels[0]); k++) {
		char text[2000], *out, word[40];
		struct saves saves;

		snprintf(text, sizeof(text),
			 HEAD DRIVER
			 ".extern .func (.param .b32 o) vprintf(.param .b64 a, .param .b64 b);\n"
			 ".entry k() { .reg .b64 d; mov.u64 d, 8; %s ret; }\n",
			 kernels[k].call);
		out = look(&saves, text);
		assert_true(saves.eligible[0]);
		snprintf(word, sizeof(word), ".b8 %s", kernels[k].word);
		assert_int_equal(count_of(out, word), 1);
		snprintf(word, sizeof(word), ".b8 %s", kernels[k].other);
		assert_int_equal(count_of(out, word), 0);
		free(out);
	}
}

static void kernels_with_many_calls_count_none(void **state)
{
	(void)state;
	for (unsigned n = 32; n <= 33; n++) {
		struct saves saves;
		char *text, *out;
		size_t len;
		FILE *file = open_memstream(&text, &len);

		assert_non_null(file);
		fputs(HEAD DRIVER ".entry k() { .reg .b64 d;\n", file);
		for (unsigned k = 0; k < n; k++)
			fputs(MALLOC_OF("", ""), file);
		fputs("ret; }\n", file);
		fclose(file);
		out = look(&saves, text);
		assert_int_equal(count_of(out, "nanosleep"), n == 32 ? 32 : 0);
		free(out);
		free(text);
	}
}

/* Otherwise a kernel without loops has no safe point. */
static void a_straight_kernel_can_leave_at_a_call(void **state)
{
	static const char text[] = HEAD DRIVER ".entry k() { .reg .b64 d; " MALLOC_OF(
		"", "") "ret; }\n"
			".entry none() { .reg .b64 d; mov.u64 d, 1; ret; }\n";
	struct saves saves;

	(void)state;
	free(look(&saves, text));
	assert_true(saves.eligible[0] && saves.eligible[1]);
	assert_true(saves.shared[0] > 0);
	assert_int_equal(saves.shared[1], 0);
}

/* A kernel with @head, @barriers in a loop, and @registers that live through it. */
static void look_at_many(struct saves *saves, const char *head, unsigned barriers,
			 unsigned registers)
{
	char *text, *out;
	size_t len;
	FILE *file = open_memstream(&text, &len);

	assert_non_null(file);
	fprintf(file,
		HEAD
		".entry k() %s { .reg .pred p; .reg .b32 r<%u>, n; mov.u32 n, %%clock;\nAGAIN:\n",
		head, registers + 1);
	for (unsigned k = 0; k < barriers; k++)
		fprintf(file, "bar.sync 0;\n");
	for (unsigned k = 0; k < registers; k++)
		fprintf(file, "add.u32 r%u, r%u, n;\n", k, k);
	fprintf(file, "add.u32 n, n, 1; setp.ne.u32 p, n, 7; @p bra AGAIN; ret; }\n");
	fclose(file);
	out = look(saves, text);
	free(out);
	free(text);
}

/* A kernel that adds a value, computed by @code, in a loop. */
#define ADDING(name, code)                                                                     \
	".entry " name "(.param .u64 p) { .reg .pred q; .reg .b32 r, n; .reg .b64 v;\n" code   \
	" mov.u32 n, %clock; AGAIN: cvt.u32.u64 r, v; add.u32 n, n, r; setp.ne.u32 q, n, 7;\n" \
	"@q bra AGAIN; ret; }\n"

static void constants_are_not_saved(void **state)
{
	static const char text[] =
		HEAD ADDING("constant",
			    ".reg .b32 t; .reg .b64 u, w; ld.param.u64 u, [p]; mov.u32 t, %tid.x;"
			    "cvt.u64.u32 w, t; add.u64 v, u, w;")
			ADDING("constant_here", "ld.param.u64 v, [p];")
				ADDING("changing", "mov.u64 v, %clock64;");
	static const char guarded[] = HEAD ADDING(
		"guarded", "mov.u64 v, 1; setp.eq.u32 q, 1, 1; @q ld.param.u64 v, [p];")
		ADDING("twice", "ld.param.u64 v, [p]; mov.u32 n, %clock; setp.eq.u32 q, n, 7;"
				"@q bra SAME; mov.u64 v, 5; SAME:")
			ADDING("anew",
			       "ld.param.u64 v, [p]; mov.u32 n, %clock; setp.eq.u32 q, n, 7;"
			       "@q bra SAME; ld.param.u64 v, [p]; SAME:");
	struct saves saves;
	long changing;

	(void)state;
	free(look(&saves, text));
	assert_int_equal(saves.n, 3);
	changing = saves.local[2];
	assert_int_equal(changing - saves.local[0], 8);
	assert_int_equal(changing - saves.local[1], 8);
	free(look(&saves, guarded));
	assert_int_equal(saves.local[0], changing);
	assert_int_equal(saves.local[1], changing);
	assert_int_equal(saves.local[2], changing - 8);
}

static void many_safe_points(void **state)
{
	struct saves saves;

	(void)state;
	look_at_many(&saves, "", 200, 40);
	assert_true(saves.eligible[0]);
	look_at_many(&saves, "", 257, 1);
	assert_string_equal(saves.reason[0], "more than 256 barriers");
	/* ptxas would take too long. */
	look_at_many(&saves, "", 200, 100);
	assert_string_equal(saves.reason[0], "too many live registers at its safe points");
}

/* ptxas would spill. */
/* A loop is not copied if most of it are labels: the copies would need much memory. */
static void loops_of_labels(void **state)
{
	enum { LABELS = 30000 };
	char *text = malloc(16 * LABELS + 512), *at = text;
	struct saves saves;

	(void)state;
	at += sprintf(at, "%s.entry k() { .reg .pred p; .reg .b32 r; mov.u32 r, %%clock;\n", HEAD);
	for (unsigned k = 0; k < LABELS; k++)
		at += sprintf(at, "L%u:\n", k);
	sprintf(at, "add.u32 r, r, 1; setp.ne.u32 p, r, 7; @p bra L0; ret; }");
	free(look(&saves, text));
	assert_true(saves.eligible[0]);
	free(text);
}

static void many_live_registers(void **state)
{
	static const char *const enough[] = {"", ".maxntid 256, 1, 1",
					     ".maxntid 64 .minnctapersm 4"};
	static const char *const scarce[] = {".maxntid 512, 1, 1", ".reqntid 32, 16",
					     ".maxnreg 128", ".maxntid 64 .minnctapersm 8"};
	struct saves saves;

	(void)state;
	for (size_t k = 0; k < 3; k++) {
		look_at_many(&saves, enough[k], 1, 180);
		assert_true(saves.eligible[0]);
		look_at_many(&saves, enough[k], 1, 210);
		assert_non_null(strstr(saves.reason[0], " registers are live at its safe points"));
	}
	for (size_t k = 0; k < 4; k++) {
		look_at_many(&saves, scarce[k], 1, 90);
		assert_true(saves.eligible[0]);
		look_at_many(&saves, scarce[k], 1, 110);
		assert_non_null(strstr(saves.reason[0], " of 128 registers are live"));
	}
	/* A build with fewer registers spills, but all its blocks may have to fit. */
	registers_max = 32;
	look_at_many(&saves, "", 1, 180);
	registers_max = 0;
	assert_true(saves.eligible[0]);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_what_may_be_used_is_saved),
		cmocka_unit_test(one_dynamic_variable_stands_for_all),
		cmocka_unit_test(too_many_variables_are_refused),
		cmocka_unit_test(variables_of_functions_are_out_of_reach),
		cmocka_unit_test(the_carry_flag_cannot_be_saved),
		cmocka_unit_test(calls_of_the_driver_are_counted),
		cmocka_unit_test(what_is_printed_has_a_count_of_its_own),
		cmocka_unit_test(kernels_with_many_calls_count_none),
		cmocka_unit_test(a_straight_kernel_can_leave_at_a_call),
		cmocka_unit_test(constants_are_not_saved),
		cmocka_unit_test(many_safe_points),
		cmocka_unit_test(loops_of_labels),
		cmocka_unit_test(many_live_registers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
