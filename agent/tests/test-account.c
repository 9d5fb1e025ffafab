/* Garbage in a status page makes no counter fall, wrap or jump. */
#include "policy/account.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void test_growth(void **state)
{
	struct weir_status_page page = {
		.launches = 5, .gpu_time = 100, .outstanding = 2, .level = 1};
	struct account_reader reader = {0};
	struct account sum = {{3}};

	(void)state;
	account_read(&reader, &page, &sum);
	page.launches = 9;
	account_read(&reader, &page, &sum);
	assert_int_equal(sum.total[ACCOUNT_LAUNCHES], 3 + 9);
	assert_int_equal(reader.own.total[ACCOUNT_LAUNCHES], 9);
	assert_int_equal(sum.total[ACCOUNT_GPU_TIME], 100);
	assert_int_equal(reader.outstanding, 2);
	assert_int_equal(reader.level, 1);
}

static void test_garbage(void **state)
{
	struct weir_status_page page = {.launches = 10};
	struct account_reader reader = {0};
	struct account sum = {0};

	(void)state;
	account_read(&reader, &page, &sum);
	memset(&page, 0xff, sizeof(page));
	account_read(&reader, &page, &sum);
	assert_int_equal(reader.tuning, UINT32_MAX);
	assert_int_equal(sum.total[ACCOUNT_LAUNCHES], 10);
	assert_int_equal(reader.level, WEIR_LEVELS);
	page.launches = 2;
	account_read(&reader, &page, &sum);
	page.launches = 3;
	account_read(&reader, &page, &sum);
	assert_int_equal(sum.total[ACCOUNT_LAUNCHES], 11);
}

static void test_saturation(void **state)
{
	struct weir_status_page page = {.launches = 7};
	struct account_reader reader = {0};
	struct account sum = {{UINT64_MAX - 3}};

	(void)state;
	account_read(&reader, &page, &sum);
	assert_true(sum.total[ACCOUNT_LAUNCHES] == UINT64_MAX);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_growth),
		cmocka_unit_test(test_garbage),
		cmocka_unit_test(test_saturation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
