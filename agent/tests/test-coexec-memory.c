/* What the policy coexec remembers of kernels. */
#include "policy/coexec/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static struct coexec_memory memory;

static int set_up(void **state)
{
	(void)state;
	memset(&memory, 0, sizeof(memory));
	return 0;
}

static void put_pair(uint64_t a, uint64_t b, double speed_up)
{
	coexec_memory_put(&memory, (uint64_t[]){a, b}, 2, (uint8_t[]){3, 4}, speed_up);
}

static double find_pair(uint64_t a, uint64_t b)
{
	return coexec_memory_find(&memory, (uint64_t[]){a, b}, 2, NULL);
}

/* A set that is looked up stays; others make room. */
static void test_bounded(void **unused)
{
	(void)unused;
	for (uint64_t i = 1; i <= 3 * COEXEC_SETS; i++) {
		put_pair(i, i + 1000000, 1.5);
		put_pair(i + 1000000, i, 1.4);
		assert_true(find_pair(1, 1000001) == 1.4);
	}
	assert_true(find_pair(2, 1000002) == 0);
}

static void test_order_does_not_matter(void **unused)
{
	uint8_t workers[COEXEC_MOST];

	(void)unused;
	coexec_memory_put(&memory, (uint64_t[]){9, 5, 7}, 3, (uint8_t[]){1, 2, 3}, 2);
	assert_true(coexec_memory_find(&memory, (uint64_t[]){7, 9, 5}, 3, workers) == 2);
	assert_memory_equal(workers, ((uint8_t[]){3, 1, 2}), 3);
	assert_true(find_pair(7, 9) == 0);
}

static void test_alike(void **unused)
{
	(void)unused;
	put_pair(21, 22, 1.3);
	put_pair(23, 22, 1.3);
	put_pair(24, 22, 1.0);
	assert_true(coexec_memory_alike(&memory, 21, 23));
	assert_false(coexec_memory_alike(&memory, 21, 22));
	assert_false(coexec_memory_alike(&memory, 21, 24));
	assert_false(coexec_memory_alike(&memory, 9, 21));
}

static void test_knows(void **unused)
{
	(void)unused;
	put_pair(9, 5, 1.3);
	assert_true(coexec_memory_knows(&memory, 9));
	assert_false(coexec_memory_knows(&memory, 77));
	assert_false(coexec_memory_knows(&memory, 0));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_bounded, set_up),
		cmocka_unit_test_setup(test_order_does_not_matter, set_up),
		cmocka_unit_test_setup(test_alike, set_up),
		cmocka_unit_test_setup(test_knows, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
