#include "generate.h"

#include "generator.h"

#include <stdlib.h>

#define DEPTH_MAX 4

static void statements(struct generator *g, unsigned depth, bool together);

/* The copy may be under way when the thread exits. */
static void copy(struct generator *g, unsigned depth, bool together)
{
	unsigned to = value(g);

	fprintf(g->text, "\tcp.async.ca.shared.global [%%mine+%u], [%%in+%u], 4;\n", 4 * g->threads,
		4 * pick(g, GENERATED_INPUTS));
	g->copies = true;
	statements(g, depth + 1, together);
	g->copies = false;
	fprintf(g->text,
		"\tcp.async.wait_all;\n\tld.shared.u32 %%t0, [%%mine+%u];\n"
		"\txor.b32 %%v%u, %%v%u, %%t0;\n",
		4 * g->threads, to, to);
}

static void condition(struct generator *g, bool uniform)
{
	static const char *const uniform_sources[] = {"%bx", "%by", "%bz", "%n"};

	if (uniform)
		fprintf(g->text, "\tand.b32 %%t0, %s, %u;\n", uniform_sources[pick(g, 4)],
			1 + pick(g, 3));
	else
		fprintf(g->text, "\tand.b32 %%t0, %%v%u, %u;\n", value(g), 1 + pick(g, 7));
	fprintf(g->text, "\tsetp.eq.u32 %%p0, %%t0, 0;\n");
}

static void finish(struct generator *g)
{
	fprintf(g->text, "\txor.b32 %%t0, %%v%u, %%v%u;\n\tst.global.u32 [%%own], %%t0;\n",
		value(g), value(g));
	fprintf(g->text, "\t%s;\n", pick(g, 2) ? "ret" : "exit");
}

static void leave(struct generator *g, bool together)
{
	unsigned label = g->labels++;

	bool uniform = g->leaving == LEAVE_ALL || !pick(g, 3);

	if (g->leaving == LEAVE_NOBODY || (g->leaving == LEAVE_ALL && !together))
		return;
	condition(g, uniform);
	fprintf(g->text, "\t@!%%p0 bra L%u;\n", label);
	finish(g);
	fprintf(g->text, "L%u:\n", label);
	g->some_left = g->some_left || !uniform || !together;
}

/* Out of the innermost loop, or to its next round. */
static void jump(struct generator *g, bool together)
{
	if (!g->in_loop || g->copies || (g->loops_together && !together))
		return;
	condition(g, g->loops_together);
	fprintf(g->text, "\t@%%p0 bra L%u;\n", pick(g, 2) ? g->end : g->next);
}

static void choose(struct generator *g, unsigned depth, bool together)
{
	bool uniform = pick(g, 2);
	unsigned other = g->labels++, end = g->labels++;

	condition(g, uniform);
	fprintf(g->text, "\t@%%p0 bra L%u;\n", other);
	statements(g, depth + 1, together && uniform);
	fprintf(g->text, "\tbra L%u;\nL%u:\n", end, other);
	statements(g, depth + 1, together && uniform);
	fprintf(g->text, "L%u:\n", end);
}

static void loop(struct generator *g, unsigned depth, bool together)
{
	bool uniform = pick(g, 2);
	unsigned label = g->labels++;
	struct generator outer = *g;

	/* A thread that exits in one iteration is missing in the next. */
	g->some_left = g->some_left || g->leaving == LEAVE_ANYBODY;
	g->end = g->labels++;
	g->next = g->labels++;
	g->in_loop = true;
	g->loops_together = together && uniform;
	fprintf(g->text, "\tand.b32 %%c%u, %s%u, 3;\nL%u:\n", depth, uniform ? "%b" : "%v",
		uniform ? 0 : value(g), label);
	statements(g, depth + 1, together && uniform);
	fprintf(g->text,
		"L%u:\n\tsetp.eq.u32 %%p0, %%c%u, 0;\n\tsub.u32 %%c%u, %%c%u, 1;\n"
		"\t@!%%p0 bra L%u;\nL%u:\n",
		g->next, depth, depth, depth, label, g->end);
	g->end = outer.end;
	g->next = outer.next;
	g->in_loop = outer.in_loop;
	g->loops_together = outer.loops_together;
}

static void statement(struct generator *g, unsigned depth, bool together)
{
	unsigned kind = pick(g, 40);

	if (kind < 3 && together)
		together_exchange(g, false);
	else if (kind < 5 && together)
		together_sum(g);
	else if (kind < 8 && together)
		together_reduce(g);
	else if (kind < 9 && together && !g->some_left && g->threads >= 64)
		together_some(g);
	else if (kind < 11 && together)
		together_in_warp(g);
	else if (kind < 13 && depth < DEPTH_MAX)
		choose(g, depth, together);
	else if (kind < 16 && depth < DEPTH_MAX)
		loop(g, depth, together);
	else if (kind < 19)
		leave(g, together);
	else if (kind < 20)
		alone_call(g);
	else if (kind < 21)
		alone_local(g);
	else if (kind < 22)
		alone_table(g);
	else if (kind < 24)
		alone_count(g);
	else if (kind < 26)
		alone_load(g);
	else if (kind < 27)
		alone_look_up(g);
	else if (kind < 29)
		alone_other_sizes(g);
	else if (kind < 31)
		alone_guarded(g);
	else if (kind < 32)
		alone_name_lanes(g);
	else if (kind < 34)
		jump(g, together);
	else if (kind < 35 && g->may_copy && !g->copies && depth < DEPTH_MAX)
		copy(g, depth, together);
	else
		alone_compute(g);
}

static void statements(struct generator *g, unsigned depth, bool together)
{
	for (unsigned n = 1 + pick(g, 5); n && g->room; n--) {
		g->room--;
		statement(g, depth, together);
	}
}

static const char head[] =
	".address_size 64\n"
	".extern .shared .align 4 .b8 words_memory[];\n"
	".visible .const .align 4 .b32 constants[8] = {1, 22, 333, 4444, 55555, 6, 77, 888};\n"
	".visible .global .align 4 .b32 table[8] = {9, 88, 777, 6666, 55555, 4, 33, 222};\n"
	".func (.param .b32 out) mix(.param .b32 in)\n{\n\t.reg .b32 %r<3>;\n"
	"\tld.param.b32 %r0, [in];\n\tmul.lo.u32 %r1, %r0, 2654435761;\n\tshr.u32 %r2, %r1, 15;\n"
	"\txor.b32 %r1, %r1, %r2;\n\tst.param.b32 [out], %r1;\n\tret;\n}\n"
	".visible .entry " GENERATED_KERNEL "(\n\t.param .u64 out,\n\t.param .u64 in,\n"
	"\t.param .u32 n\n)\n{\n\t.reg .b32 %v<8>, %t<4>, %c<8>, %b0, %bx, %by, %bz, %n;\n"
	"\t.reg .b32 %thread, %mine, %words, %grid, %m<99>;\n\t.reg .b64 %d<4>, %in, %own, "
	"%counters;\n"
	"\t.reg .pred %p<4>, %q<3>;\n\t.reg .b64 %w<2>;\n\t.reg .b16 %h<3>;\n\t.local .align 4 .b8 "
	"array[16];\n";

static const char begin[] =
	"\tld.param.u64 %in, [in];\n\tld.param.u64 %own, [out];\n\tld.param.u32 %n, [n];\n"
	"\tmov.u32 %bx, %ctaid.x;\n\tmov.u32 %by, %ctaid.y;\n\tmov.u32 %bz, %ctaid.z;\n"
	"\tmov.u32 %t0, %tid.z;\n\tmov.u32 %t1, %ntid.y;\n\tmov.u32 %t2, %tid.y;\n"
	"\tmad.lo.u32 %thread, %t0, %t1, %t2;\n\tmov.u32 %t0, %ntid.x;\n\tmov.u32 %t1, %tid.x;\n"
	"\tmad.lo.u32 %thread, %thread, %t0, %t1;\n"
	"\tmov.u32 %t0, %nctaid.y;\n\tmad.lo.u32 %b0, %bz, %t0, %by;\n\tmov.u32 %t1, %nctaid.x;\n"
	"\tmad.lo.u32 %b0, %b0, %t1, %bx;\n\tmul.lo.u32 %grid, %t0, %t1;\n"
	"\tmov.u32 %t0, %nctaid.z;\n\tmul.lo.u32 %grid, %grid, %t0;\n";

static void prologue(struct generator *g)
{
	fprintf(g->text, ".version 7.0\n.target sm_%u\n", g->may_copy ? 80u : 75u);
	fputs(head, g->text);
	/* With much shared memory, the launch's words lie in it, too (passes/tickets/tickets.c). */
	fprintf(g->text, "\t.shared .align 4 .b8 sums[%u];\n", pick(g, 3) ? 16u : 4096u);
	fputs(begin, g->text);
	fprintf(g->text,
		"\tmul.lo.u32 %%grid, %%grid, %u;\n\tmul.wide.u32 %%counters, %%grid, 4;\n"
		"\tadd.u64 %%counters, %%counters, %%own;\n"
		"\tmad.lo.u32 %%t0, %%b0, %u, %%thread;\n\tmul.wide.u32 %%d0, %%t0, 4;\n"
		"\tadd.u64 %%own, %%own, %%d0;\n",
		g->threads, g->threads);
	fprintf(g->text,
		"\tmov.u32 %%words, words_memory;\n\tshl.b32 %%mine, %%thread, 2;\n"
		"\tadd.u32 %%mine, %%mine, %%words;\n\tst.shared.u32 [%%mine], %%thread;\n"
		"\tmov.u32 %%t1, 0;\n\tst.local.v4.u32 [array], {%%t1, %%t1, %%t1, %%t1};\n"
		"\tsetp.lt.u32 %%p2, %%thread, %u;\n\tsetp.ne.u32 %%p0, %%thread, 0;\n"
		"\t@%%p0 bra START;\n\tst.shared.u32 [sums], %%t1;\n\tst.shared.u32 [sums+4], "
		"%%t1;\n"
		"\tst.shared.u32 [sums+8], %%t1;\n\tst.shared.u32 [sums+12], %%t1;\nSTART:\n"
		"\tbar.sync 0;\n",
		pick(g, 40));
	fputs("\tsetp.gt.u32 %q0, %thread, 9;\n\tsetp.lt.u32 %q1, %thread, %n;\n"
	      "\tsetp.gt.u32 %q2, %b0, 2;\n\tcvt.u64.u32 %w0, %thread;\n\tcvt.u64.u32 %w1, %n;\n"
	      "\tcvt.u16.u32 %h0, %thread;\n\tmov.b16 %h1, 77;\n\tmov.b16 %h2, 5;\n",
	      g->text);
	for (unsigned k = 0; k < VALUES; k++)
		fprintf(g->text, "\tmad.lo.u32 %%v%u, %s, %u, %%%s;\n", k,
			k % 2 ? "%t0" : "%thread", random_next(&g->random), k % 3 ? "n" : "b0");
}

static void shape(struct generator *g, struct generated *out)
{
	static const uint32_t blocks[][3] = {{32, 1, 1}, {64, 1, 1}, {16, 4, 1},
					     {8, 4, 3},  {40, 1, 1}, {128, 1, 1}};
	unsigned which = pick(g, 6);

	for (unsigned k = 0; k < 3; k++) {
		out->grid[k] = 1 + pick(g, k ? 4 : 9);
		out->block[k] = blocks[which][k];
	}
	g->threads = out->block[0] * out->block[1] * out->block[2];
	out->dynamic_shared = 8 * g->threads;
	/* A warp with absent lanes cannot be named as a whole. */
	g->some_left = g->threads % 32;
}

void generate(struct generated *out, uint64_t seed)
{
	struct generator g = {.random = seed * 1000003 + 17};
	size_t size;

	g.text = open_memstream(&out->ptx, &size);
	if (!g.text)
		abort();
	shape(&g, out);
	g.leaving = pick(&g, 3);
	g.swap = 3 * pick(&g, 2);
	g.may_copy = pick(&g, 2);
	prologue(&g);
	g.room = 60;
	for (unsigned n = 3 + pick(&g, 10); n; n--)
		statements(&g, 0, true);
	if (pick(&g, 2))
		together_exchange(&g, true);
	if (pick(&g, 2))
		together_fade(&g);
	finish(&g);
	fputs("}\n", g.text);
	fclose(g.text);
}
