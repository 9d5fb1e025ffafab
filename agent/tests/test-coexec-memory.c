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

/* A space of three configurations: 1+3, 2+2, 3+1. */
static struct coexec_space space_of_three(void)
{
	const struct coexec_kernel kernel = {.number = 1, .parts = {WEIR_SM_PARTS / 4}};
	struct coexec_space space;

	coexec_space_pair(&space, (struct coexec_kernel[]){kernel, kernel});
	assert_int_equal(space.n, 3);
	return space;
}

static void try_one(uint64_t a, uint64_t b, unsigned at, const double *rates)
{
	const struct coexec_space space = space_of_three();
	struct coexec_search search;

	coexec_search_begin(&search, &space, 2, 1);
	coexec_search_recall(&search, at, rates);
	coexec_unfinished_put(&memory.unfinished, (uint64_t[]){a, b}, 2, &space, &search);
}

static struct coexec_search resume(uint64_t a, uint64_t b)
{
	const struct coexec_space space = space_of_three();
	struct coexec_search search;

	coexec_search_begin(&search, &space, 2, 1);
	coexec_unfinished_resume(&memory.unfinished, (uint64_t[]){a, b}, 2, &space, &search);
	return search;
}

static double highest(uint64_t a, uint64_t b)
{
	return coexec_unfinished_highest(&memory.unfinished, (uint64_t[]){a, b}, 2);
}

/* The kernels come in another order: so do their workers and rates. */
static void test_unfinished(void **unused)
{
	struct coexec_search search;

	(void)unused;
	try_one(9, 5, 0, (double[]){0.25, 0.875});
	search = resume(5, 9);
	assert_true(search.measured[2] && !search.measured[0] && !search.measured[1]);
	assert_true(search.rates[2][0] == 0.875 && search.rates[2][1] == 0.25);
	assert_true(search.highest == 1.125 && search.at < 2 && search.tries == 0);
	assert_true(highest(5, 9) == 1.125 && highest(5, 8) == 0);
	search = resume(5, 8);
	assert_true(!search.measured[2] && search.at == 1);
	coexec_unfinished_forget(&memory.unfinished, (uint64_t[]){5, 9}, 2);
	assert_true(highest(9, 5) == 0);
}

/* What was tried last stays. */
static void test_unfinished_are_bounded(void **unused)
{
	(void)unused;
	for (uint64_t i = 1; i <= 2 * COEXEC_UNFINISHED; i++) {
		try_one(i, i + 1000000, 1, (double[]){0.5, 0.5});
		try_one(1, 1000001, 1, (double[]){0.5, 0.75});
	}
	assert_true(highest(1, 1000001) == 1.25);
	assert_true(highest(2, 1000002) == 0);
	assert_true(highest(2 * COEXEC_UNFINISHED, 2 * COEXEC_UNFINISHED + 1000000) == 1);
}

static void test_forget(void **unused)
{
	(void)unused;
	put_pair(9, 5, 1.3);
	put_pair(9, 7, 1.3);
	try_one(5, 7, 1, (double[]){0.5, 0.5});
	uint64_t changes = memory.changes;
	assert_int_equal(coexec_memory_forget(&memory), 2);
	assert_true(find_pair(9, 5) == 0 && highest(5, 7) == 0);
	assert_true(memory.changes > changes);
	assert_int_equal(coexec_memory_forget(&memory), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_bounded, set_up),
		cmocka_unit_test_setup(test_order_does_not_matter, set_up),
		cmocka_unit_test_setup(test_alike, set_up),
		cmocka_unit_test_setup(test_knows, set_up),
		cmocka_unit_test_setup(test_unfinished, set_up),
		cmocka_unit_test_setup(test_unfinished_are_bounded, set_up),
		cmocka_unit_test_setup(test_forget, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
