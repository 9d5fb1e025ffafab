/* WEIR_LOOP_LEAVING: a loop leaves again and again by itself, and knows how long that took. */
#include "fixture.h"

#define TASKS 500u

/* As in weir/loop/leaving.cuh. */
static void what_leaving_took(uint64_t *longest, uint64_t *times)
{
	CUdeviceptr leaving;
	uint64_t words[2];

	assert_int_equal(cuModuleGetGlobal(&leaving, NULL, fx.module, "weir_loop_leaving"),
			 CUDA_SUCCESS);
	assert_int_equal(cuMemcpyDtoH(words, leaving, sizeof(words)), CUDA_SUCCESS);
	*longest = words[0];
	*times = words[1];
}

/* Since the last time. */
static uint64_t must_have_left(void)
{
	static uint64_t before;
	uint64_t longest, times, since;

	what_leaving_took(&longest, &times);
	since = times - before;
	before = times;
	assert_true(since >= 2);
	assert_int_equal(fx.stats.evictions, since);
	assert_int_equal(fx.stats.launches, since + 1);
	return longest;
}

static const struct weir_loop_options options = {.threads = 64, .blocks = 2};

static void it_leaves_and_all_runs_once(void **state)
{
	uint64_t longest;

	(void)state;
	assert_int_equal(fixture_run("tasks", &options, TASKS), 0);
	assert_int_equal(fx.seen[0], 2 * TASKS);
	longest = must_have_left();
	assert_true(longest > 0 && longest < fx.stats.ran_ns + 1000000000);
}

static void it_leaves_and_each_body_runs_once(void **state)
{
	(void)state;
	assert_int_equal(fixture_run("bodies", &options, TASKS), 0);
	assert_int_equal(fx.seen[0], TASKS * (TASKS - 1) / 2);
	must_have_left();
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_leaves_and_all_runs_once),
		cmocka_unit_test(it_leaves_and_each_body_runs_once),
	};

	return cmocka_run_group_tests(tests, fixture_begin, fixture_end);
}
