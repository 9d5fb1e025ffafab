/* Busy periods alone: the shortest of the latest ones counts. */
#include "gates/busy-period.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static void short_bursts_count(void **state)
{
	struct busy_period burst = {0};

	(void)state;
	assert_int_equal(busy_period_known(&burst), 0);
	busy_period_begin(&burst, 1000);
	busy_period_begin(&burst, 2000); /* it goes on already */
	assert_int_equal(busy_period_known(&burst), 0);
	busy_period_goes_on(&burst, 3000);
	assert_int_equal(busy_period_known(&burst), 2000);
	busy_period_end(&burst, 5000);
	assert_int_equal(busy_period_known(&burst), 4000);

	busy_period_begin(&burst, 10000);
	busy_period_end(&burst, 11000);
	assert_int_equal(busy_period_known(&burst), 1000);

	/* Longer ones are not believed yet, over or not. */
	busy_period_begin(&burst, 20000);
	busy_period_goes_on(&burst, 37000);
	assert_int_equal(busy_period_known(&burst), 1000);
	/* There was no work once, then some more. */
	busy_period_end(&burst, 21000);
	assert_int_equal(busy_period_known(&burst), 1000);

	/* What was seen of one is nothing of the next, and what did not begin is none. */
	busy_period_begin(&burst, 40000);
	assert_int_equal(busy_period_known(&burst), 1000);
	busy_period_end(&burst, 40000);
	busy_period_end(&burst, 50000);
	assert_int_equal(busy_period_known(&burst), 1000);
}

/* Plays bursts until something else is told; how many. */
static unsigned bursts_until_news(struct busy_period *burst, uint64_t length)
{
	uint64_t told = busy_period_known(burst), now = 100000;

	for (unsigned n = 0; n < 4 * BUSY_PERIODS; n++, now += 2 * length) {
		if (busy_period_known(burst) != told)
			return n;
		busy_period_begin(burst, now);
		busy_period_end(burst, now + length);
	}
	return 0;
}

static void short_bursts_are_forgotten(void **state)
{
	struct busy_period burst = {0};

	(void)state;
	busy_period_begin(&burst, 1000);
	busy_period_end(&burst, 2000);
	assert_in_range(bursts_until_news(&burst, 5000), BUSY_PERIODS, 2 * BUSY_PERIODS);
	assert_int_equal(busy_period_known(&burst), 5000);
	assert_int_equal(bursts_until_news(&burst, 3000), 1);
	assert_in_range(bursts_until_news(&burst, 4000), BUSY_PERIODS, 2 * BUSY_PERIODS);
	assert_int_equal(busy_period_known(&burst), 4000);

	/* Nothing is over any more. */
	uint64_t now = 10000000;
	busy_period_begin(&burst, now);
	busy_period_goes_on(&burst, now + BUSY_PERIOD_LONG);
	assert_int_equal(busy_period_known(&burst), 4000);
	busy_period_goes_on(&burst, now + BUSY_PERIOD_LONG + 1);
	assert_int_equal(busy_period_known(&burst), BUSY_PERIOD_LONG + 1);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(short_bursts_count),
		cmocka_unit_test(short_bursts_are_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
