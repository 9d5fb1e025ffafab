/* The simulated GPU where kernels of several clients run on the same SMs: the policy coexec. */
#include "sim-play.h"

#include "weir/base.h"

/* On synthetic rate curves: one waits for arithmetic, the other one for memory. Of the ways to
 * divide an SM the best makes both together 1.80 times as fast as in turns. */
#define ARITHMETIC "always work=8ms launch=2ms fit=8 needs=3 arithmetic=1 memory=0.1"
#define MEMORY     "always work=9ms launch=3ms fit=8 needs=4 arithmetic=0.1 memory=1"
#define END        "\nend 20s"

/* Work of all in thousandths of the time. */
static uint64_t speed_up(const struct sim_result *result)
{
	uint64_t work = 0;

	for (size_t i = 0; i < result->n; i++)
		work += result->clients[i].ran;
	return work * 1000 / result->time;
}

static void assert_speed_up(const char *text, struct sim_options options, uint64_t low,
			    uint64_t high)
{
	struct sim_result result = play(text, options);

	assert_in_range(speed_up(&result), low, high);
	assert_int_equal(result.held_alone, 0);
	sim_result_deinit(&result);
}

static void kernels_that_share_nothing_run_together(void **state)
{
	struct sim_options late = options_for("coexec");

	(void)state;
	late.look = MS;
	late.late = 200 * US;
	assert_speed_up("client a " ARITHMETIC "\nclient m " MEMORY END, options_for("coexec"),
			1770, 1800);
	assert_speed_up("client a " ARITHMETIC "\nclient m " MEMORY END, late, 1760, 1800);
	assert_speed_up("client a copies=2 " ARITHMETIC "\nclient m copies=2 " MEMORY END,
			options_for("coexec"), 1650, 1800);
}

/* Where two gain nothing clients take turns, of equal length by weight. */
static void kernels_that_share_all_take_turns(void **state)
{
	struct sim_result result = play("client m copies=3 " MEMORY END, options_for("coexec"));

	(void)state;
	assert_in_range(speed_up(&result), 990, 1000);
	for (size_t i = 0; i < result.n; i++)
		assert_in_range(result.clients[i].ran, 20000 * MS / 3 - 100 * MS,
				20000 * MS / 3 + 100 * MS);
	sim_result_deinit(&result);
}

/* Launches that only end, and work that comes at times: all of it is done. */
static void work_that_comes_is_done(void **state)
{
	struct sim_result result =
		play("client a copies=2 fit=8 needs=3 arithmetic=1 launch=1ms evict=never\n"
		     "client m fit=4 memory=1 launch=2ms\n"
		     "work 1ms a.0 50ms\nwork 2ms a.1 70ms\nwork 3ms m 90ms\nwork 900ms m 10ms\n"
		     "end 1s",
		     options_for("coexec"));

	(void)state;
	assert_int_equal(result.clients[0].ran, 50 * MS);
	assert_int_equal(result.clients[1].ran, 70 * MS);
	assert_int_equal(result.clients[2].ran, 100 * MS);
	assert_int_equal(result.clients[2].requests, 2);
	/* Nobody else has work then. */
	assert_in_range(result.clients[2].turnaround, 100 * MS, 220 * MS);
	assert_int_equal(result.held_alone, 0);
	sim_result_deinit(&result);
}

/* As under all policies: without MPS, curves for all, or with an objective, one runs at a time. */
static void others_take_turns(void **state)
{
	static const char *const traces[] = {
		"client a " ARITHMETIC "\nclient m always work=9ms launch=3ms" END,
		"client a " ARITHMETIC "\nclient m slo=100ms " MEMORY END,
		"client a " ARITHMETIC "\nclient m min-rate=0.1 " MEMORY END,
		"client a " ARITHMETIC "\nclient m level=high " MEMORY END,
	};
	struct sim_options sliced = options_for("coexec");

	(void)state;
	for (size_t i = 0; i < countof(traces); i++)
		assert_speed_up(traces[i], options_for("coexec"), 900, 1000);
	sliced.mps = false;
	assert_speed_up("client a " ARITHMETIC "\nclient m " MEMORY END, sliced, 900, 1000);
	assert_speed_up("client a " ARITHMETIC "\nclient m " MEMORY END, options_for("wfq"), 900,
			1000);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(kernels_that_share_nothing_run_together),
		cmocka_unit_test(kernels_that_share_all_take_turns),
		cmocka_unit_test(work_that_comes_is_done),
		cmocka_unit_test(others_take_turns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
