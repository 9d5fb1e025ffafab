/* Which variables in shared memory a block saves, by safe point. */
#include "weir/transform.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define HEAD                                                                                   \
	".version 8.0\n.target sm_80\n.address_size 64\n"                                      \
	".extern .shared .align 16 .b8 all[]; .extern .shared .align 4 .b8 same[];\n"          \
	".func nobody() { ret; }\n"                                                            \
	".entry k(.param .u64 out) { .reg .pred p, q; .reg .b32 r, x, a<4>; .reg .b64 d, g;\n" \
	".shared .align 16 .b8 v[1024]; .shared .align 16 .b8 w[512]; .shared .align 16 .b8 "  \
	"u[256];\n"                                                                            \
	"ld.param.u64 d, [out]; mov.u32 r, %tid.x; mov.u32 x, 1;\n"
#define TAIL " st.global.u32 [d], x; ret; }\n"
/* One safe point. */
#define LOOP(name, code)                                                                   \
	name ": " code " mad.lo.u32 x, x, 3, r; sub.u32 r, r, 1; setp.gt.s32 p, r, 0; @p " \
	     "bra " name "; mov.u32 r, %tid.x;\n"
#define WRITE(v) "st.shared.u32 [" v "+4], x;\n"
#define READ(v)  "ld.shared.u32 a3, [" v "+8]; add.u32 x, x, a3;\n"

struct saved {
	bool eligible, has_dynamic;
	long bytes; /* of shared memory with a place in the save */
	long spared;
};

static void note(void *data, const struct weir_verdict *verdict)
{
	struct saved *saved = data;

	saved->eligible = verdict->eligible;
	/* The rest is room to fill the last warp, and to align. */
	saved->bytes = verdict->save_fixed - 31L * verdict->save_per_thread;
	saved->spared = verdict->save_spared;
}

static struct saved look(const char *text)
{
	struct saved saved = {0};
	struct weir_transform_options options = {
		.forms = 1u << WEIR_RESUMABLE, .verdict = note, .data = &saved};
	struct weir_error error = {0};
	char *out = NULL;
	size_t len;

	if (weir_transform(&out, &len, text, strlen(text), &options, &error))
		fail_msg("line %u: %s", error.line, error.message);
	saved.has_dynamic = strstr(out, "%dynamic_smem_size");
	free(out);
	return saved;
}

static const struct row {
	const char *what, *text;
	long bytes, spared; /* more than without variables; a multiple of 256 */
	bool has_dynamic;
} rows[] = {
	{"only written", LOOP("A", WRITE("v")), 0, 0},
	{"only read", LOOP("A", READ("v")), 0, 0},
	/* Here another thread may have written what this one is to read. */
	{"only read and written elsewhere", LOOP("A", "") READ("v") LOOP("B", "") WRITE("v"), 1024,
	 1024},
	{"dead after the last read", WRITE("v") LOOP("A", READ("v")) LOOP("B", ""), 1024, 512},
	{"not yet written", LOOP("A", "") WRITE("v") LOOP("B", READ("v")), 1024, 512},
	{"read by another thread behind a barrier",
	 LOOP("A", "") WRITE("v") "bar.sync 0;\n" LOOP("B", "") READ("v") LOOP("C", "")
		 LOOP("D", ""),
	 1024, 768},
	{"atomics read and write", LOOP("A", "") LOOP("B", "red.shared.add.u32 [v], x;\n"), 1024,
	 512},
	{"a loop's back edge",
	 "mov.u32 a0, 4; O: " LOOP("A", "") READ("v")
		 WRITE("v") "sub.u32 a0, a0, 1; setp.ne.u32 q, a0, 0; @q bra O;\n",
	 1024, 0},
	/* One thread needs 1024 less in either loop; together nothing, if they leave in both. */
	{"divergent paths",
	 "and.b32 a0, r, 1; setp.eq.u32 q, a0, 1; @q bra EVEN;\n" WRITE("v")
		 LOOP("A", "") "bra END; EVEN: " LOOP("B", "") READ("v") "END:\n",
	 1024, 1024},
	{"one of two paths writes",
	 "setp.eq.u32 q, r, 5; @q bra OVER;\n" WRITE("v") "OVER: " LOOP("A", "") READ("v"), 1024,
	 0},
	{"different sizes",
	 WRITE("v") LOOP("A", READ("v")) WRITE("w") LOOP("B", READ("w")) WRITE("u")
		 LOOP("C", READ("u")) LOOP("D", ""),
	 1024 + 512 + 256, (1024 + 512 + 256) * 3 / 4},
	{"small variables are always saved",
	 ".shared .align 4 .b8 few[16];" LOOP("A", "") WRITE("few") LOOP("B", READ("few")), 0, 0},
	{"computed addresses",
	 "mov.u32 a0, v; mov.u32 a1, w; @p mov.u32 a0, a1; mad.lo.u32 a2, r, 4, a0;\n" LOOP("A", "")
		 WRITE("a2") LOOP("B", READ("a2")),
	 1024 + 512, (1024 + 512) / 2},
	{"generic addresses",
	 "mov.u32 a0, v; cvt.u64.u32 g, a0; cvta.shared.u64 g, g;\n" LOOP(
		 "A", "") "st.u32 [g], x;" LOOP("B", "ld.u32 a3, [g]; add.u32 x, x, a3;"),
	 1024, 512},
	{"generic accesses elsewhere", LOOP("A", "st.u32 [d], x; ld.u32 a3, [d];") WRITE("v"), 0,
	 0},
	{"an address in memory", "mov.u32 a0, v; st.global.u32 [d+4], a0;\n" LOOP("A", ""), 1024,
	 0},
	{"an address in another lane",
	 "mov.u32 a0, v; shfl.sync.idx.b32 a1, a0, 0, 31, -1;\n" LOOP("A", ""), 1024, 0},
	{"an asynchronous copy", LOOP("A", "") "cp.async.ca.shared.global [v], [d], 4;\n", 1024, 0},
	{"a matrix", LOOP("A", "") "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {a1}, [v];\n", 1024,
	 0},
	{"a call", WRITE("v") LOOP("A", "") "call nobody, ();\n", 1024 + 512 + 256, 0, true},
	{"an unknown address",
	 WRITE("v") WRITE("w") LOOP("A", "") "ld.shared.u32 a1, [r]; add.u32 x, x, a1;\n",
	 1024 + 512, 0},
	{"an unknown generic address",
	 WRITE("v") LOOP("A", "") "cvt.u64.u32 g, r; cvta.shared.u64 g, g; ld.u32 a1, [g];\n",
	 1024 + 512 + 256, 0},
	{"dynamic memory", "st.shared.u32 [all], x;\n" LOOP("A", READ("all")), 0, 0, true},
	{"dynamic memory under another name", "st.shared.u32 [all], x;\n" LOOP("A", READ("same")),
	 0, 0, true},
	{"dynamic memory, only written", LOOP("A", "st.shared.u32 [all], x;"), 0, 0},
};

static void each_rule(void **state)
{
	long none = look(HEAD LOOP("A", "") TAIL).bytes;
	char text[4096];

	(void)state;
	for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
		const struct row *row = &rows[k];
		struct saved saved;

		snprintf(text, sizeof(text), "%s%s%s", HEAD, row->text, TAIL);
		saved = look(text);
		if (!saved.eligible || saved.bytes - none != row->bytes ||
		    saved.spared != row->spared || saved.has_dynamic != row->has_dynamic)
			fail_msg("%s: %ld bytes, %ld spared%s", row->what, saved.bytes - none,
				 saved.spared, saved.has_dynamic ? ", and dynamic memory" : "");
	}
}

/* Of these and the three others 15 have bits; the rest is always saved. */
static void many_variables(void **state)
{
	size_t len;
	char *text = NULL;
	FILE *out = open_memstream(&text, &len);
	long none = look(HEAD LOOP("A", "") TAIL).bytes;
	struct saved saved;

	(void)state;
	assert_non_null(out);
	fputs(HEAD, out);
	for (unsigned k = 0; k < 32; k++)
		fprintf(out, ".shared .align 16 .b8 s%u[256]; st.shared.u32 [s%u], x;\n", k, k);
	fputs(LOOP("A", "") TAIL, out);
	assert_int_equal(fclose(out), 0);
	saved = look(text);
	assert_int_equal(saved.bytes - none, 20 * 256);
	assert_int_equal(saved.spared, 0);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_rule),
		cmocka_unit_test(many_variables),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
