#include "generator.h"

#include "generate.h"

#define ENTRIES 8u /* of the module's tables */

void alone_compute(struct generator *g)
{
	static const char *const operations[] = {"add.u32",    "sub.u32", "xor.b32",
						 "mul.lo.u32", "min.u32", "or.b32"};
	unsigned to = value(g);

	if (pick(g, 2))
		fprintf(g->text, "\t%s %%v%u, %%v%u, %%v%u;\n", operations[pick(g, 6)], to,
			value(g), value(g));
	else
		fprintf(g->text, "\tmad.lo.u32 %%v%u, %%v%u, %u, %u;\n", to, value(g),
			random_next(&g->random) | 1, random_next(&g->random));
}

void alone_load(struct generator *g)
{
	fprintf(g->text,
		"\tand.b32 %%t0, %%v%u, %u;\n\tmul.wide.u32 %%d0, %%t0, 4;\n"
		"\tadd.u64 %%d0, %%d0, %%in;\n\tld.global.u32 %%v%u, [%%d0];\n",
		value(g), GENERATED_INPUTS - 1, value(g));
}

/* Reads a variable of the module by address or by index. */
void alone_look_up(struct generator *g)
{
	static const struct {
		const char *space, *name;
	} tables[] = {{"const", "constants"}, {"global", "table"}};
	unsigned which = pick(g, 2);

	if (pick(g, 2))
		fprintf(g->text, "\tld.%s.u32 %%v%u, [%s+%u];\n", tables[which].space, value(g),
			tables[which].name, 4 * pick(g, ENTRIES));
	else
		fprintf(g->text,
			"\tand.b32 %%t0, %%v%u, %u;\n\tmul.wide.u32 %%d0, %%t0, 4;\n\tmov.u64 "
			"%%d1, %s;\n"
			"\tadd.u64 %%d0, %%d0, %%d1;\n\tld.%s.u32 %%v%u, [%%d0];\n",
			value(g), ENTRIES - 1, tables[which].name, tables[which].space, value(g));
}

/* Registers of other sizes, which live as long as the values do. */
void alone_other_sizes(struct generator *g)
{
	unsigned to = value(g);

	if (pick(g, 2))
		fprintf(g->text,
			"\tmad.lo.u64 %%w0, %%w0, %u, %%w1;\n\tmov.b64 {%%t0, %%t1}, %%w0;\n"
			"\txor.b32 %%v%u, %%v%u, %%t1;\n\tcvt.u64.u32 %%w1, %%v%u;\n",
			random_next(&g->random), to, to, value(g));
	else
		fprintf(g->text,
			"\tmad.lo.u16 %%h0, %%h0, %%h1, %%h2;\n\tcvt.u32.u16 %%t0, %%h0;\n"
			"\txor.b32 %%v%u, %%v%u, %%t0;\n\tcvt.u16.u32 %%h%u, %%v%u;\n",
			to, to, 1 + pick(g, 2), value(g));
}

/* Predicates that live as long, and guards. */
void alone_guarded(struct generator *g)
{
	unsigned to = value(g);

	fprintf(g->text,
		"\tsetp.lt.and.u32 %%q0|%%q1, %%v%u, %%v%u, %%q%u;\n\txor.pred %%q2, %%q2, %%q0;\n"
		"\t@%%q2 mad.lo.u32 %%v%u, %%v%u, %u, 1;\n\t@!%%q%u ld.const.u32 %%v%u, "
		"[constants+%u];\n",
		value(g), value(g), pick(g, 3), to, to, random_next(&g->random) | 1, pick(g, 3),
		value(g), 4 * pick(g, ENTRIES));
}

/* The lanes that happen to be here. */
void alone_name_lanes(struct generator *g)
{
	fprintf(g->text, "\tactivemask.b32 %%m%u;\n\tbar.warp.sync %%m%u;\n", g->masks, g->masks);
	g->masks++;
}

void alone_count(struct generator *g)
{
	fprintf(g->text,
		"\tand.b32 %%t0, %%v%u, %u;\n\tmul.wide.u32 %%d0, %%t0, 4;\n"
		"\tadd.u64 %%d0, %%d0, %%counters;\n\tred.global.add.u32 [%%d0], %%v%u;\n",
		value(g), GENERATED_COUNTERS - 1, value(g));
}

void alone_local(struct generator *g)
{
	fprintf(g->text,
		"\tand.b32 %%t0, %%v%u, 3;\n\tshl.b32 %%t0, %%t0, 2;\n\tmov.u32 %%t1, array;\n"
		"\tadd.u32 %%t0, %%t0, %%t1;\n\tst.local.u32 [%%t0], %%v%u;\n"
		"\tld.local.u32 %%v%u, [array+%u];\n",
		value(g), value(g), value(g), 4 * pick(g, 4));
}

void alone_call(struct generator *g)
{
	fprintf(g->text,
		"\t{\n\t.param .b32 a0;\n\t.param .b32 r0;\n\tst.param.b32 [a0], %%v%u;\n"
		"\tcall.uni (r0), mix, (a0);\n\tld.param.b32 %%v%u, [r0];\n\t}\n",
		value(g), value(g));
}

void alone_table(struct generator *g)
{
	unsigned first = g->labels;

	g->labels += 4;
	fprintf(g->text,
		"\tand.b32 %%t0, %%v%u, 2;\n\t{\n\tT%u: .branchtargets L%u, L%u, L%u;\n"
		"\tbrx.idx %%t0, T%u;\n\t}\n",
		value(g), first, first, first + 1, first + 2, first);
	for (unsigned k = 0; k < 3; k++) {
		fprintf(g->text, "L%u:\n", first + k);
		alone_compute(g);
		if (k < 2)
			fprintf(g->text, "\tbra L%u;\n", first + 3);
	}
	fprintf(g->text, "L%u:\n", first + 3);
}
