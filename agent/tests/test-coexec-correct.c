/* The search's best configuration is measured on while it is in use: it gives way to one that is
 * better, on pairs that were measured on an H100. SEED=N repeats a run. */
#include "policy/coexec/search.h"

#include "coexec-curves.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "weir/base.h"

#define WORTH 1.03 /* else kernels take turns */
#define NOISE 0.1  /* of what is measured, at most */
#define USES  60u  /* measurements of what is in use */
#define RUNS  50u  /* of each pair */

static uint64_t state;

/* 1, more or less. */
static double error(void)
{
	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return 1 + NOISE * ((double)(state >> 11) / (double)(1ull << 52) - 1);
}

static double gives(const struct measured_pair *pair, unsigned i)
{
	return pair->of[i].rates[0] + pair->of[i].rates[1];
}

static void search(struct coexec_search *search, const struct measured_pair *pair)
{
	const struct coexec_space space = {.n = pair->n};

	coexec_search_begin(search, &space, 2, WORTH);
	while (!search->done) {
		double rates[2], wrong = error();
		for (unsigned k = 0; k < 2; k++)
			rates[k] = pair->of[search->at].rates[k] * wrong;
		coexec_search_feed(search, rates);
	}
}

/* Returns how often another one took its place. */
static unsigned use(struct coexec_search *search, const struct measured_pair *pair)
{
	unsigned changes = 0;

	for (unsigned i = 0; i < USES; i++) {
		unsigned before = search->best;
		bool changed = coexec_search_correct(search, gives(pair, search->best) * error());
		assert_int_equal(changed, search->best != before);
		assert_true(search->measured[search->best]);
		changes += changed;
	}
	return changes;
}

/* Less is lost than by the search's choice, and few changes are needed. */
static void test_errors_are_corrected(void **unused)
{
	double lost = 0, lost_in_use = 0;
	unsigned changes = 0, runs = 0;

	(void)unused;
	for (size_t p = 0; p < countof(measured_pairs); p++) {
		const struct measured_pair *pair = &measured_pairs[p];
		double best = 1;
		for (unsigned i = 0; i < pair->n; i++)
			best = fmax(best, gives(pair, i));
		for (unsigned run = 0; run < RUNS; run++, runs++) {
			struct coexec_search found;
			search(&found, pair);
			lost += 1 - gives(pair, found.best) / best;
			changes += use(&found, pair);
			lost_in_use += 1 - gives(pair, found.best) / best;
		}
	}
	print_message("lost %.4f, in use %.4f; %.2f changes\n", lost / runs, lost_in_use / runs,
		      (double)changes / runs);
	assert_true(lost_in_use < 0.7 * lost);
	assert_true(changes < 4 * runs);
}

/* Of three configurations with these rates. */
static void search_three(struct coexec_search *search, const double rates[3][2])
{
	const struct coexec_space space = {.n = 3};

	coexec_search_begin(search, &space, 2, WORTH);
	while (!search->done)
		coexec_search_feed(search, rates[search->at]);
}

/* A configuration that is hardly better does not take the place of the one in use. */
static void test_the_best_stays(void **unused)
{
	static const double rates[][2] = {{0.5, 0.75}, {0.7, 0.7}, {0.8, 0.5}};
	struct coexec_search search;

	(void)unused;
	search_three(&search, rates);
	assert_int_equal(search.best, 1);
	for (unsigned i = 0; i < 100; i++)
		assert_false(coexec_search_correct(&search, 1.34));
	assert_int_equal(search.best, 1);
}

/* Turns are better than what is left: nothing else is tried. */
static void test_nothing_is_worth_it(void **unused)
{
	static const double rates[][2] = {{0.5, 0.52}, {0.7, 0.7}, {0.5, 0.52}};
	struct coexec_search search;

	(void)unused;
	search_three(&search, rates);
	for (unsigned i = 0; i < 10; i++)
		assert_false(coexec_search_correct(&search, 0.8));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_errors_are_corrected),
		cmocka_unit_test(test_the_best_stays),
		cmocka_unit_test(test_nothing_is_worth_it),
	};
	const char *seed = getenv("SEED");

	state = seed ? strtoull(seed, NULL, 10) : 20261127;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
