/* Slices by level and weight. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "hardware/slices.h"

static void test_levels(void **state)
{
	static const struct {
		struct slice_rank rank;
		uint64_t us;
	} cases[] = {
		{{.n = 1, .weight = 100, .weights = 100, .least = 100}, SLICE_DEFAULT},
		{{.alone = true, .n = 1, .weight = 100, .weights = 100, .least = 100}, SLICE_ALONE},
		{{.below = true, .n = 1, .weight = 100, .weights = 100, .least = 100}, SLICE_ABOVE},
		{{.above = true, .n = 1, .weight = 100, .weights = 100, .least = 100}, SLICE_BELOW},
		/* With short slices they would keep each other from running. */
		{{.above = true, .n = 3, .weight = 100, .weights = 300, .least = 100}, SLICE_AMONG},
		{{.above = true, .below = true, .n = 1, .weight = 1, .weights = 1, .least = 1},
		 SLICE_BETWEEN},
		{{.above = true, .quick = true, .n = 1, .weight = 1, .weights = 1, .least = 1},
		 SLICE_BETWEEN},
		{{.quick = true, .n = 1, .weight = 1, .weights = 1, .least = 1}, SLICE_DEFAULT},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(slice_for(&cases[i].rank), cases[i].us);
}

/* us that a client gets done in its slice. */
static uint64_t done(const struct slice_rank *rank)
{
	return slice_for(rank) - SLICE_RESTORE;
}

static uint64_t share(uint64_t weight, uint64_t other)
{
	struct slice_rank rank = {.n = 2,
				  .weight = weight,
				  .weights = weight + other,
				  .least = weight < other ? weight : other};

	return done(&rank);
}

static void test_shares(void **state)
{
	(void)state;
	assert_int_equal(share(100, 100), 10000);
	assert_int_equal(share(300, 100), 15000);
	assert_int_equal(share(100, 300), 5000);
	/* The smaller one is no shorter than SLICE_SHARE_MIN, and the ratio holds. */
	assert_int_equal(share(100, 9900), 2000);
	assert_int_equal(share(4900, 100), 98000);
	/* Beyond that no slice is longer than SLICE_ABOVE. */
	assert_int_equal(share(1, 100000), 2000);
	assert_int_equal(share(100000, 1), SLICE_ABOVE - SLICE_RESTORE);
	assert_int_equal(share(0, 0), 2000);
}

static void steady(uint64_t mine, unsigned n, uint64_t others, uint64_t us)
{
	struct slice_rank rank = {.steady = true,
				  .n = n,
				  .weight = mine,
				  .weights = mine + (n - 1) * others,
				  .least = mine < others ? mine : others,
				  .most = mine < others ? others : mine};

	assert_in_range(done(&rank), us - us / 50, us + us / 50);
	rank.above = true;
	assert_true(slice_for(&rank) < SLICE_SHARE);
}

/* Longer slices, but in no window is a part off by more than 12 ms. */
static void test_steady(void **state)
{
	(void)state;
	steady(100, 2, 100, 20000);
	steady(100, 3, 100, 18000);
	steady(100, 4, 100, 16000);
	steady(100, 8, 100, 13714);
	steady(100, 40, 100, 12308);
	steady(200, 4, 100, 20000); /* of 50 ms two fifths */
	/* One that has most of the GPU. */
	steady(300, 4, 100, 24000);
	steady(700, 4, 100, 33600);
	for (unsigned n = 2; n <= 64; n++) {
		struct slice_rank rank = {.steady = true,
					  .n = n,
					  .weight = 100,
					  .weights = 100 * n,
					  .least = 100,
					  .most = 100};
		double part = 1.0 / n, cycle = (double)done(&rank) * n;
		assert_true(part * (1 - part) * cycle <= SLICE_STEADY_OFF);
	}
	/* Weights of nothing. */
	struct slice_rank none = {.steady = true, .n = 2};
	assert_in_range(slice_for(&none), SLICE_SHARE_MIN, SLICE_ABOVE);
}

static uint64_t wanted(uint64_t mean, unsigned n, uint64_t weight)
{
	struct slice_rank rank = {.mean = mean,
				  .n = n,
				  .weight = weight,
				  .weights = 100 * n,
				  .least = weight,
				  .most = 100};

	return done(&rank);
}

/* The policy says how long they are, as long as no part is off by 1 point in a second. */
static void test_wanted(void **state)
{
	(void)state;
	assert_int_equal(wanted(15000, 2, 100), 15000);
	assert_int_equal(wanted(15000, 4, 100), 12000);
	assert_in_range(wanted(15000, 8, 100), 10270, 10300);
	assert_in_range(wanted(15000, 64, 100), 9100, 9200);
	assert_int_equal(wanted(SLICE_ABOVE, 2, 100), 18000);
	assert_int_equal(wanted(4500, 2, 100), 4500);
	assert_int_equal(wanted(450, 2, 100), SLICE_SHARE_MIN);
	assert_int_equal(wanted(15000, 2, 50), 7500);
	/* Below others, who comes waits for one of them. */
	struct slice_rank below = {.above = true,
				   .mean = 15000,
				   .n = 2,
				   .weight = 100,
				   .weights = 200,
				   .least = 100,
				   .most = 100};
	assert_int_equal(slice_for(&below), SLICE_AMONG);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_levels),
		cmocka_unit_test(test_shares),
		cmocka_unit_test(test_steady),
		cmocka_unit_test(test_wanted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
