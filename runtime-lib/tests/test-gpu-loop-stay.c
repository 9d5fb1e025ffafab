/* For how long a kernel stays when all its blocks wait. */
#include "loop/stay.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { MOST = 100000 };

static void away(struct stay *stay, uint64_t ns, int times)
{
	while (times--)
		stay_back(stay, ns);
}

static void a_loop_that_is_away_for_long_leaves_sooner(void **state)
{
	struct stay stay = stay_of(MOST);

	(void)state;
	assert_int_equal(stay.ns, MOST);
	away(&stay, 10000000, 1);
	assert_in_range(stay.ns, MOST / 2, MOST - 1);
	away(&stay, 10000000, 100);
	assert_int_equal(stay.ns, MOST / STAY_PART);
}

static void one_that_is_wanted_back_at_once_stays(void **state)
{
	struct stay stay = stay_of(MOST);

	(void)state;
	away(&stay, 10000000, 100);
	away(&stay, MOST - 1, 1);
	assert_int_equal(stay.ns, MOST);
	/* In between nothing is learned. */
	away(&stay, 10000000, 1);
	uint32_t before = stay.ns;
	away(&stay, MOST, 1);
	away(&stay, (uint64_t)MOST * STAY_LONG - 1, 1);
	assert_int_equal(stay.ns, before);
}

static void extremes_are_bounded(void **state)
{
	struct stay none = stay_of(0), most = stay_of(UINT32_MAX);

	(void)state;
	away(&none, 0, 3);
	away(&none, UINT64_MAX, 3);
	assert_int_equal(none.ns, 0);
	away(&most, UINT64_MAX, 100);
	assert_int_equal(most.ns, UINT32_MAX / STAY_PART);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_loop_that_is_away_for_long_leaves_sooner),
		cmocka_unit_test(one_that_is_wanted_back_at_once_stays),
		cmocka_unit_test(extremes_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
