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
		{{.below = true, .n = 1, .weight = 100, .weights = 100, .least = 100}, SLICE_ABOVE},
		{{.above = true, .n = 1, .weight = 100, .weights = 100, .least = 100}, SLICE_BELOW},
		/* With short slices they would keep each other from running. */
		{{.above = true, .n = 3, .weight = 100, .weights = 300, .least = 100}, SLICE_AMONG},
		{{.above = true, .below = true, .n = 1, .weight = 1, .weights = 1, .least = 1},
		 SLICE_BETWEEN},
		{{.above = true, .tight = true, .n = 1, .weight = 1, .weights = 1, .least = 1},
		 SLICE_BETWEEN},
		{{.tight = true, .n = 1, .weight = 1, .weights = 1, .least = 1}, SLICE_DEFAULT},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(slice_for(&cases[i].rank), cases[i].us);
}

static uint64_t share(uint64_t weight, uint64_t other)
{
	struct slice_rank rank = {.n = 2,
				  .weight = weight,
				  .weights = weight + other,
				  .least = weight < other ? weight : other};

	return slice_for(&rank);
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
	assert_int_equal(share(100000, 1), SLICE_ABOVE);
	assert_int_equal(share(0, 0), 2000);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_levels),
		cmocka_unit_test(test_shares),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
