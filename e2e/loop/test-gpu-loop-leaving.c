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

static void it_leaves_and_all_runs_once(void **state)
{
	static const struct weir_loop_options options = {.threads = 64, .blocks = 2};
	uint64_t longest, times;

	(void)state;
	assert_int_equal(fixture_run("tasks", &options, TASKS), 0);
	assert_int_equal(fx.seen[0], 2 * TASKS);
	what_leaving_took(&longest, &times);
	assert_true(times >= 2);
	assert_int_equal(fx.stats.evictions, times);
	assert_int_equal(fx.stats.launches, times + 1);
	assert_true(longest > 0 && longest < fx.stats.ran_ns + 1000000000);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_leaves_and_all_runs_once),
	};

	return cmocka_run_group_tests(tests, fixture_begin, fixture_end);
}
