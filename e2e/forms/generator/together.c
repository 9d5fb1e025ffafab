#include "generator.h"

#define SUMS 4

static unsigned for_all(struct generator *g)
{
	return (pick(g, 3) + g->swap) % 6;
}

static unsigned for_some(struct generator *g)
{
	return (3 + pick(g, 3) + g->swap) % 6;
}

static void barrier(struct generator *g)
{
	fprintf(g->text, "\t%s %u;\n", pick(g, 2) ? "bar.sync" : "barrier.sync.aligned",
		for_all(g));
}

/* Each thread reads the word of another one. The last exchange of a block needs no final barrier.
 */
void together_exchange(struct generator *g, bool last)
{
	fprintf(g->text, "\tst.shared.u32 [%%mine], %%v%u;\n", value(g));
	barrier(g);
	fprintf(g->text,
		"\tadd.u32 %%t0, %%thread, %u;\n\trem.u32 %%t0, %%t0, %u;\n\tshl.b32 %%t0, %%t0, "
		"2;\n"
		"\tadd.u32 %%t0, %%t0, %%words;\n\tld.shared.u32 %%v%u, [%%t0];\n",
		pick(g, g->threads), g->threads, value(g));
	if (!last)
		barrier(g);
}

void together_sum(struct generator *g)
{
	unsigned at = 4 * pick(g, SUMS);

	fprintf(g->text, "\tatom.shared.add.u32 %%t0, [sums+%u], %%v%u;\n", at, value(g));
	barrier(g);
	fprintf(g->text, "\tld.shared.u32 %%v%u, [sums+%u];\n", value(g), at);
	barrier(g);
}

void together_reduce(struct generator *g)
{
	static const char *const kinds[] = {"and", "or"};
	const char *sign = pick(g, 2) ? "!" : "";

	fprintf(g->text, "\tand.b32 %%t0, %%v%u, %u;\n\tsetp.eq.u32 %%p0, %%t0, 0;\n", value(g),
		1u << pick(g, 4));
	if (pick(g, 2))
		fprintf(g->text, "\tbar.red.popc.u32 %%v%u, %u, %s%%p0;\n", value(g), for_all(g),
			sign);
	else
		fprintf(g->text,
			"\tbar.red.%s.pred %%p1, %u, %s%%p0;\n\tselp.u32 %%v%u, %u, 7, %%p1;\n",
			kinds[pick(g, 2)], for_all(g), sign, value(g), random_next(&g->random));
}

/* All remaining lanes of a warp, whether others exited or never existed. */
void together_in_warp(struct generator *g)
{
	fprintf(g->text,
		"\tshfl.sync.bfly.b32 %%v%u, %%v%u, %u, 31, -1;\n"
		"\tvote.sync.ballot.b32 %%t0, %%p2, -1;\n\txor.b32 %%v%u, %%v%u, %%t0;\n",
		value(g), value(g), 1u << pick(g, 5), value(g), value(g));
	if (!pick(g, 2))
		return;
	fprintf(g->text,
		"\tactivemask.b32 %%m%u;\n\tmatch.any.sync.b32 %%t0, %%v%u, %%m%u;\n"
		"\tbar.warp.sync %%m%u;\n\txor.b32 %%v%u, %%v%u, %%t0;\n",
		g->masks, value(g), g->masks, g->masks, value(g), value(g));
	g->masks++;
}

/* Two groups of lanes, perhaps with absent lanes, shrink as lanes finish. */
void together_fade(struct generator *g)
{
	unsigned label = g->labels++;

	fprintf(g->text,
		"\tand.b32 %%t0, %%v%u, %u;\n\tsetp.eq.u32 %%p0, %%t0, 0;\n"
		"\tvote.sync.ballot.b32 %%m%u, %%p0, -1;\n\t@!%%p0 not.b32 %%m%u, %%m%u;\n"
		"\tand.b32 %%c0, %%v%u, %u;\nL%u:\n\tsetp.eq.u32 %%p1, %%c0, %%c0;\n",
		value(g), 1 + pick(g, 7), g->masks, g->masks, g->masks, value(g), 1 + pick(g, 7),
		label);
	fprintf(g->text,
		"\tvote.sync.ballot.b32 %%t0, %%p1, %%m%u;\n\txor.b32 %%v%u, %%v%u, %%t0;\n"
		"\tsetp.eq.u32 %%p0, %%c0, 0;\n\tsub.u32 %%c0, %%c0, 1;\n\t@!%%p0 bra L%u;\n",
		g->masks, value(g), value(g), label);
	g->masks++;
}

/* Two warps with barriers of their own. */
void together_some(struct generator *g)
{
	unsigned label = g->labels++;

	fprintf(g->text,
		"\tsetp.ge.u32 %%p0, %%thread, 64;\n\t@%%p0 bra L%u;\n\tst.shared.u32 [%%mine], "
		"%%v%u;\n"
		"\tbar.sync %u, 64;\n\txor.b32 %%t0, %%thread, 32;\n\tshl.b32 %%t0, %%t0, 2;\n"
		"\tadd.u32 %%t0, %%t0, %%words;\n\tld.shared.u32 %%v%u, [%%t0];\n",
		label, value(g), for_some(g), value(g));
	fprintf(g->text, "\tbar.red.popc.u32 %%v%u, %u, 64, %%p2;\nL%u:\n", value(g), for_some(g),
		label);
	barrier(g);
}
