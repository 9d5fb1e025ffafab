/* How a loop divides an SM's memory into shared memory and cache. */
#include "loop/carveout.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* An H100: 228 KiB of an SM, of which each block takes 1.5 KiB. */
static int of(uint32_t blocks, int now)
{
	const struct carveout carveout = {
		.blocks = blocks, .fit = 16 * 132, .sms = 132, .block = 1536, .sm = 228 << 10};

	return carveout_of(&carveout, now);
}

static void a_loop_that_does_not_fill_the_gpu_leaves_cache(void **state)
{
	(void)state;
	/* 8 blocks of an SM have 12 KiB; the driver's steps are 8, 16 and 32 KiB. */
	assert_int_equal(of(1024, CARVEOUT_USUAL), 6);
	assert_int_equal(of(132, CARVEOUT_USUAL), 2);
}

static void all_blocks_fit(void **state)
{
	(void)state;
	for (uint32_t blocks = 132; blocks < 16 * 132; blocks++)
		assert_true(of(blocks, CARVEOUT_USUAL) * (228 << 10) / 100 >=
			    (int)(blocks + 131) / 132 * 1536);
}

static void others_stay_as_they_are(void **state)
{
	(void)state;
	assert_int_equal(of(16 * 132, CARVEOUT_USUAL), CARVEOUT_USUAL); /* full */
	assert_int_equal(of(3, CARVEOUT_USUAL), CARVEOUT_USUAL);        /* a server */
	const struct carveout unknown = {.blocks = 1, .fit = 2};
	assert_int_equal(carveout_of(&unknown, CARVEOUT_USUAL), CARVEOUT_USUAL);
}

/* An earlier loop of the kernel may have had fewer blocks. */
static void what_is_set_is_only_made_larger(void **state)
{
	(void)state;
	assert_int_equal(of(1024, 50), 50);
	assert_int_equal(of(1024, 2), 6);
	assert_int_equal(of(16 * 132, 6), 12);
	assert_int_equal(of(3, 0), 1);
	const struct carveout large = {
		.blocks = 1, .fit = 1, .sms = 1, .block = 100 << 10, .sm = 100 << 10};
	assert_int_equal(carveout_of(&large, 6), 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_loop_that_does_not_fill_the_gpu_leaves_cache),
		cmocka_unit_test(all_blocks_fit),
		cmocka_unit_test(others_stay_as_they_are),
		cmocka_unit_test(what_is_set_is_only_made_larger),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
