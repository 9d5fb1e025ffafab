/* The configurations of kernels that run at the same time, and the search among them: against brute
 * force, on curves that were measured on an H100 and on made-up ones. SEED=N repeats a run. */
#include "policy/coexec/search.h"

#include "coexec-curves.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "weir/base.h"

#define CURVES 2000u
#define WORTH  1.03 /* else kernels take turns */
#define NOISE  0.02 /* of what is measured, at most */

static uint64_t state;

static double uniform(void)
{
	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (double)(state >> 11) / (double)(1ull << 53);
}

static unsigned below(unsigned n)
{
	return (unsigned)(uniform() * n);
}

static struct coexec_kernel kernel_of(uint32_t threads, uint32_t registers, uint32_t shared,
				      uint32_t places)
{
	return (struct coexec_kernel){.number = 1, .parts = {threads, registers, shared, places}};
}

/* A kernel of which an SM holds @n workers. */
static struct coexec_kernel fits(unsigned n)
{
	return kernel_of(WEIR_SM_PARTS / n, 1, 1, WEIR_SM_PARTS / 32);
}

/* Spaces */

static bool is_valid(const struct coexec_kernel *kernels, unsigned n,
		     const struct coexec_configuration *c)
{
	for (unsigned i = 0; i < n; i++)
		if (c->workers[i] > coexec_room(kernels, n, c, i))
			return false;
	return true;
}

/* FlexSched's example: seven configurations of eight workers. */
static void test_pair(void **unused)
{
	struct coexec_kernel kernels[] = {fits(8), fits(8)};
	struct coexec_space space;

	(void)unused;
	coexec_space_pair(&space, kernels);
	assert_int_equal(space.n, 7);
	for (unsigned i = 0; i < 7; i++) {
		assert_int_equal(space.of[i].workers[0], i + 1);
		assert_int_equal(space.of[i].workers[1], 7 - i);
	}
}

static void test_pair_by_several_resources(void **unused)
{
	/* The first is bounded by registers, the second by shared memory: 4 and 4 fit. */
	struct coexec_kernel kernels[] = {
		kernel_of(WEIR_SM_PARTS / 16, WEIR_SM_PARTS / 4 - 1, 0, WEIR_SM_PARTS / 32),
		kernel_of(WEIR_SM_PARTS / 16, 1, WEIR_SM_PARTS / 4 - 1, WEIR_SM_PARTS / 32)};
	struct coexec_space space;

	(void)unused;
	coexec_space_pair(&space, kernels);
	assert_int_equal(space.n, 1);
	assert_int_equal(space.of[0].workers[0], 4);
	assert_int_equal(space.of[0].workers[1], 4);
}

static void test_pair_that_does_not_fit(void **unused)
{
	struct coexec_kernel kernels[] = {fits(1), fits(8)};
	struct coexec_space space;

	(void)unused;
	coexec_space_pair(&space, kernels);
	assert_int_equal(space.n, 0);
}

/* One that cannot be bounded takes what the other leaves. */
static void test_unbounded(void **unused)
{
	struct coexec_kernel kernels[] = {{.number = 1}, fits(4)};
	struct coexec_space space;

	(void)unused;
	coexec_space_pair(&space, kernels);
	assert_int_equal(space.n, 3);
	for (unsigned i = 0; i < space.n; i++) {
		assert_int_equal(space.of[i].workers[0], 0);
		assert_int_equal(space.of[i].workers[1], i + 1);
	}
	kernels[1] = kernels[0];
	coexec_space_pair(&space, kernels);
	assert_int_equal(space.n, 1);
}

static void test_join(void **unused)
{
	struct coexec_kernel kernels[] = {fits(8), fits(8), fits(4)};
	struct coexec_configuration before = {{3, 2}};
	struct coexec_space space;

	(void)unused;
	coexec_space_join(&space, kernels, 3, &before);
	assert_true(space.n > 1);
	/* The room that is left, without taking anything away. */
	assert_memory_equal(space.of[0].workers, ((uint8_t[]){3, 2, 1, 0}), COEXEC_MOST);
	for (unsigned i = 0; i < space.n; i++) {
		assert_true(is_valid(kernels, 3, &space.of[i]));
		assert_true(space.of[i].workers[0] && space.of[i].workers[1]);
		if (i)
			assert_true(space.of[i].workers[2] > space.of[i - 1].workers[2]);
	}
}

/* Whatever clients report: nothing overflows, and all that is found fits. */
static void test_hostile(void **unused)
{
	static const uint32_t odd[] = {0, 1, 2, 65535, 65536, 65537, UINT32_MAX};

	(void)unused;
	for (unsigned run = 0; run < 20000; run++) {
		struct coexec_kernel kernels[3];
		struct coexec_configuration before = {{(uint8_t)below(256), (uint8_t)below(256)}};
		struct coexec_space space;
		for (unsigned k = 0; k < 3; k++)
			kernels[k] = kernel_of(odd[below(7)], odd[below(7)], odd[below(7)],
					       odd[below(7)]);
		coexec_space_pair(&space, kernels);
		assert_in_range(space.n, 0, COEXEC_WORKERS);
		for (unsigned i = 0; i < space.n; i++)
			assert_true(is_valid(kernels, 2, &space.of[i]) ||
				    !coexec_is_bounded(&kernels[0]) ||
				    !coexec_is_bounded(&kernels[1]));
		coexec_space_join(&space, kernels, 3, &before);
		assert_in_range(space.n, 0, COEXEC_WORKERS);
	}
}

/* Searches */

struct curve {
	unsigned n;
	double rates[COEXEC_WORKERS][2];
};

static double sum(const struct curve *curve, unsigned i)
{
	return curve->rates[i][0] + curve->rates[i][1];
}

static double brute_force(const struct curve *curve)
{
	double best = 0;

	for (unsigned i = 0; i < curve->n; i++)
		if (fmin(curve->rates[i][0], curve->rates[i][1]) >= COEXEC_LEAST)
			best = fmax(best, sum(curve, i));
	return best;
}

static double took, sequential; /* of all tries, if each takes as long */

/* What the search loses against the best, or turns; it measures with an error of up to @noise. */
static double loss(const struct curve *curve, double noise, unsigned *tries)
{
	const struct coexec_space space = {.n = curve->n};
	struct coexec_search search;

	coexec_search_begin(&search, &space, 2, WORTH);
	while (!search.done) {
		assert_true(search.at < curve->n && !search.measured[search.at]);
		double seen[2];
		for (unsigned k = 0; k < 2; k++)
			seen[k] = curve->rates[search.at][k] * (1 + noise * (2 * uniform() - 1));
		took += 1;
		sequential += sum(curve, search.at);
		coexec_search_feed(&search, seen);
		assert_in_range(search.tries, 1, curve->n);
	}
	*tries += search.tries;
	bool chosen = search.highest >= WORTH;
	return 1 - (chosen ? sum(curve, search.best) : 1) / fmax(brute_force(curve), 1);
}

/* Kernels of 256 threads beside each other: arithmetic, memory, second-level cache, sines. */
static const struct curve measured[] = {
	{7,
	 {{.350, .991},
	  {.721, .980},
	  {.957, .357},
	  {.994, .049},
	  {.998, .010},
	  {.999, .005},
	  {.997, .003}}},
	{7,
	 {{.353, .993},
	  {.727, .934},
	  {.952, .217},
	  {.993, .027},
	  {.999, .005},
	  {.999, .002},
	  {.999, .001}}},
	{7,
	 {{.415, .986},
	  {.808, .410},
	  {.963, .089},
	  {.994, .012},
	  {.999, .002},
	  {.999, .001},
	  {.999, .000}}},
	{7,
	 {{.281, .895},
	  {.542, .798},
	  {.702, .668},
	  {.775, .426},
	  {.760, .226},
	  {.754, .107},
	  {.864, .051}}},
	{7,
	 {{.512, .998},
	  {.806, .995},
	  {.931, .993},
	  {.973, .989},
	  {.981, .959},
	  {.984, .829},
	  {.988, .506}}},
	{7,
	 {{.566, .986},
	  {.930, .973},
	  {.980, .969},
	  {.988, .958},
	  {.989, .907},
	  {.990, .778},
	  {.995, .469}}},
};

static struct curve curve_of(const struct measured_pair *pair)
{
	struct curve out = {.n = pair->n};

	for (unsigned i = 0; i < pair->n; i++)
		memcpy(out.rates[i], pair->of[i].rates, sizeof(out.rates[i]));
	return out;
}

/* The same from the other end. */
static struct curve reversed(const struct curve *curve)
{
	struct curve out = {.n = curve->n};

	for (unsigned i = 0; i < curve->n; i++)
		for (unsigned k = 0; k < 2; k++)
			out.rates[i][k] = curve->rates[curve->n - 1 - i][1 - k];
	return out;
}

static void test_measured_curves(void **unused)
{
	unsigned tries = 0;

	(void)unused;
	for (size_t i = 0; i < countof(measured); i++) {
		struct curve other = reversed(&measured[i]);
		assert_true(loss(&measured[i], 0, &tries) < 0.01);
		assert_true(loss(&other, 0, &tries) < 0.01);
	}
	assert_true(tries < 12 * 6.5);
}

/* A family of curves: what the search loses on them, and what it costs. */
struct outcome {
	double lost, worst;
	unsigned n, tries, all;
};

static void feed(struct outcome *out, const struct curve *curve)
{
	double now = loss(curve, NOISE, &out->tries);

	out->lost += now;
	out->worst = fmax(out->worst, now);
	out->all += curve->n;
	out->n++;
}

/* FlexSched's figures: 1 % on average, 6 % at worst. */
static void judge(const char *name, const struct outcome *out)
{
	print_message("%s: lost %.4f on average, %.4f at worst; %u tries of %u; time of the tries "
		      "over sequential %.3f\n",
		      name, out->lost / out->n, out->worst, out->tries, out->all,
		      took / sequential);
	assert_true(out->lost / out->n < 0.01);
	assert_true(out->worst < 0.06);
}

static void test_measured_pairs(void **unused)
{
	struct outcome out = {0};

	(void)unused;
	took = sequential = 0;
	for (unsigned i = 0; i < 40 * countof(measured_pairs); i++) {
		struct curve curve = curve_of(&measured_pairs[i / 2 % countof(measured_pairs)]);
		struct curve other = reversed(&curve);
		feed(&out, i % 2 ? &other : &curve);
	}
	judge("measured pairs", &out);
	assert_true(took / sequential < 0.92);
}

/* Two kernels on three things that an SM or the GPU has one of. Each kernel needs so many workers
 * to get all that it can use; if both want more than there is, the one with more workers gets more.
 */
static void make_up(struct curve *curve)
{
	unsigned all = 3 + below(14);
	double needs[2], uses[2][3];

	for (unsigned k = 0; k < 2; k++) {
		unsigned bound = below(3);
		needs[k] = 1 + uniform() * all;
		for (unsigned r = 0; r < 3; r++)
			uses[k][r] = r == bound ? 1 : uniform() * uniform();
	}
	curve->n = all - 1;
	for (unsigned i = 0; i < curve->n; i++) {
		double workers[2] = {i + 1, all - 1 - i}, scale = 1;
		double wish[2];
		for (unsigned k = 0; k < 2; k++)
			wish[k] = 1 - exp(-2 * workers[k] / needs[k]);
		for (unsigned r = 0; r < 3; r++)
			scale = fmin(scale,
				     1 / (wish[0] * uses[0][r] + wish[1] * uses[1][r] + 1e-9));
		for (unsigned k = 0; k < 2; k++)
			curve->rates[i][k] =
				wish[k] * scale *
				pow(2 * workers[k] / (workers[0] + workers[1]), fmax(0, 1 - scale));
	}
}

/* The first needs hardly any workers, the second all: the best is at an end. */
static void make_end(struct curve *curve)
{
	double all = curve->n + 1, most = 0.3 + 0.6 * uniform(), bend = 0.7 + uniform();
	double needs = 1 + uniform();

	for (unsigned i = 0; i < curve->n; i++) {
		curve->rates[i][0] = most * fmin(1, (i + 1) / needs);
		curve->rates[i][1] = pow(1 - (i + 1) / all, bend);
	}
}

/* Both get most of their speed with some workers: the best is somewhere in the middle. */
static void make_middle(struct curve *curve)
{
	double all = curve->n + 1, bends[] = {1 + 2 * uniform(), 1 + 2 * uniform()};

	for (unsigned i = 0; i < curve->n; i++) {
		curve->rates[i][0] = 1 - pow(1 - (i + 1) / all, bends[0]);
		curve->rates[i][1] = 1 - pow((i + 1) / all, bends[1]);
	}
}

static void make_flat(struct curve *curve)
{
	double all = curve->n + 1, gain = 1 + 0.4 * uniform();

	for (unsigned i = 0; i < curve->n; i++) {
		curve->rates[i][0] = gain * (i + 1) / all;
		curve->rates[i][1] = gain * (1 - (i + 1) / all);
	}
}

/* Speed comes in steps, of which some are large: the best may stand alone anywhere. */
static void make_steps(struct curve *curve)
{
	for (unsigned k = 0; k < 2; k++) {
		unsigned last = curve->n - 1, at[] = {below(curve->n + 1), below(curve->n + 1)};
		double even = 0.1 + 0.9 * uniform(), most = 0.6 + 0.4 * uniform();
		double first = uniform();
		for (unsigned i = 0; i <= last; i++)
			curve->rates[k ? last - i : i][k] =
				most * (even * (i + 1) / (last + 2) +
					(1 - even) * (i >= at[0] ? first : 0) +
					(1 - even) * (i >= at[1] ? 1 - first : 0));
	}
}

static double step_at(double where, double part, double wide)
{
	return 1 / (1 + exp((where - part) / wide));
}

/* The first gets faster where the second is not slower yet, twice: two humps, and a valley between
 * them. More workers make a kernel slower in places. */
static void make_humps(struct curve *curve)
{
	double at[4] = {0.15 * uniform()}, high[] = {0.3 + 0.4 * uniform(), 0.3 + 0.4 * uniform()};
	double wide = 0.01 + 0.04 * uniform();

	for (unsigned i = 1; i < 4; i++)
		at[i] = at[i - 1] + 0.1 + 0.18 * uniform();
	for (unsigned i = 0; i < curve->n; i++) {
		double part = (double)(i + 1) / (curve->n + 1);
		curve->rates[i][0] = high[0] * step_at(at[0], part, wide) +
				     (1 - high[0]) * step_at(at[2], part, wide);
		curve->rates[i][1] = 1 - high[1] * step_at(at[1], part, wide) -
				     (1 - high[1]) * step_at(at[3], part, wide);
		for (unsigned k = 0; k < 2; k++)
			curve->rates[i][k] *= 1 - 0.03 * uniform();
	}
}

static void test_made_up_curves(void **unused)
{
	static const struct {
		const char *name;
		void (*make)(struct curve *curve);
	} families[] = {{"shared things", make_up},
			{"best at an end", make_end},
			{"best in the middle", make_middle},
			{"flat", make_flat},
			{"steps", make_steps},
			{"two humps", make_humps}};

	(void)unused;
	for (size_t i = 0; i < countof(families); i++) {
		struct outcome out = {0};
		took = sequential = 0;
		for (unsigned k = 0; k < CURVES; k++) {
			struct curve curve = {.n = 3 + below(13)};
			families[i].make(&curve);
			struct curve other = reversed(&curve);
			feed(&out, k % 2 ? &other : &curve);
		}
		judge(families[i].name, &out);
	}
}

/* Any number of configurations, any rates: it ends. */
static void test_ends(void **unused)
{
	(void)unused;
	for (unsigned i = 0; i < CURVES; i++) {
		struct curve curve = {.n = 1 + below(COEXEC_WORKERS)};
		unsigned tries = 0;
		for (unsigned k = 0; k < curve.n; k++)
			for (unsigned j = 0; j < 2; j++)
				curve.rates[k][j] = below(4) ? uniform() : 0;
		curve.rates[0][0] = 0.001;
		loss(&curve, 0, &tries);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pair),
		cmocka_unit_test(test_pair_by_several_resources),
		cmocka_unit_test(test_pair_that_does_not_fit),
		cmocka_unit_test(test_unbounded),
		cmocka_unit_test(test_join),
		cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_measured_curves),
		cmocka_unit_test(test_measured_pairs),
		cmocka_unit_test(test_made_up_curves),
		cmocka_unit_test(test_ends),
	};
	const char *seed = getenv("SEED");

	state = seed ? strtoull(seed, NULL, 10) : 20261126;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
