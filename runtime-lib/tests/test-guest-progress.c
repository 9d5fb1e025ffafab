/* The status page tells the agent what was executed, and which starts were late. */
#include "guest.h"

/* The last of them has one behind it. The worker asks for it once it has seen a launch. */
static unsigned launches_up_to_a_marker(unsigned n, unsigned kernel)
{
	int before = driver->markers_recorded;
	unsigned launches = 0;

	while (driver->markers_recorded == before && launches++ < 1000) {
		settle(0);
		launch_on(STREAM(n, 1), kernel);
	}
	assert_true(launches <= 1000);
	return launches;
}

static void progress_is_told(void **state)
{
	(void)state;
	unsigned n = welcomed(0, 1);

	learn(n, 100, 50000);
	assert_true(eventually(agent.status->outstanding == 0));
	settle(50000); /* all of the page is of this client, and of now */
	uint64_t before = agent.status->executed;
	driver->streams_busy = driver->events_busy = 1;
	for (int i = 0; i < 4; i++)
		launch_on(STREAM(n, 1), 100);
	/* Less what the kernels may have run meanwhile. */
	assert_true(eventually(atomic_load(&agent.status->remaining) != 0));
	assert_in_range(agent.status->remaining, 1, 4 * 50000);
	assert_int_equal(agent.status->executed, before);

	/* Under contention finished launches are seen though the stream never runs dry. */
	agent.control->flags = WEIR_CONTROL_HOLDABLE | WEIR_CONTROL_CONTENDED;
	settle(50000);
	unsigned marked = 4 + launches_up_to_a_marker(n, 100);
	launch_on(STREAM(n, 1), 100);
	settle(50000);
	assert_int_equal(agent.status->executed, before);
	driver->events_busy = 0;
	assert_true(eventually(agent.status->executed == before + marked * 50000));
	assert_true(eventually(agent.status->remaining <= 50000));
	assert_true(agent.status->remaining > 0);
	assert_int_equal(cuStreamSynchronize(STREAM(n, 1)), CUDA_SUCCESS);
	assert_true(eventually(agent.status->executed == before + (marked + 1) * 50000));
	assert_true(eventually(agent.status->remaining == 0));
	agent.control->flags = 0;
	gone(n);
}

static void progress_is_told_with(uint32_t flags)
{
	unsigned n = welcomed(0, 1);

	learn(n, 120, 50000);
	assert_true(eventually(agent.status->outstanding == 0));
	agent.control->flags = flags;
	driver->streams_busy = driver->events_busy = 1;
	uint64_t before = agent.status->executed;
	launches_up_to_a_marker(n, 120);
	launch_on(STREAM(n, 1), 120);
	assert_int_equal(agent.status->executed, before);
	driver->events_busy = 0;
	assert_true(eventually(agent.status->executed > before));
	assert_true(agent.status->outstanding > 0);
	driver->streams_busy = 0;
	assert_int_equal(cuStreamSynchronize(STREAM(n, 1)), CUDA_SUCCESS);
	agent.control->flags = 0;
	gone(n);
}

/* The agent compares what sliced clients got, and their streams never run dry. */
static void progress_under_slices_is_told(void **state)
{
	(void)state;
	progress_is_told_with(WEIR_CONTROL_SLICED);
}

static void progress_for_a_minimum_rate_is_told(void **state)
{
	(void)state;
	progress_is_told_with(WEIR_CONTROL_RATED);
}

/* What ran before a gate is known, though it is closed and the stream never runs dry. */
static void progress_at_gates_is_told(void **state)
{
	(void)state;
	unsigned n = welcomed(0, 1);

	learn(n, 110, 50000);
	assert_true(eventually(agent.status->outstanding == 0));
	agent.control->flags = WEIR_CONTROL_HOLDABLE | WEIR_CONTROL_CONTENDED;
	driver->streams_busy = driver->events_busy = 1;
	launch_on(STREAM(n, 1), 110);
	settle(100000); /* markers are wanted */
	uint64_t before = agent.status->executed;
	for (int i = 0; i < 20; i++)
		launch_on(STREAM(n, 1), 110);
	assert_int_equal(agent.status->executed, before);
	driver->events_busy = 0;
	assert_true(eventually(agent.status->executed >= before + 18 * 50000));
	assert_true(agent.status->executed < before + 21 * 50000);
	assert_int_equal(cuStreamSynchronize(STREAM(n, 1)), CUDA_SUCCESS);
	agent.control->flags = 0;
	gone(n);
}

static void starts_after_the_objective_are_counted(void **state)
{
	(void)state;
	agent.control->latency_slo = 10000000;
	unsigned n = welcomed(0, 1);

	assert_true(
		eventually(agent.status->starts == 1)); /* the first launch, behind an open gate */
	driver->streams_busy = 1;
	for (int i = 0; i < 3; i++) /* the first of them finds nothing outstanding */
		launch_on(STREAM(n, 2), 700);
	assert_true(eventually(agent.status->starts == 2));
	assert_int_equal(agent.status->starts_late, 0);

	agent.demand[0]->word = 1;
	launch_on(STREAM(n, 3), 701);
	launch_on(STREAM(n, 4), 702); /* waits with it */
	settle(50000);
	assert_int_equal(agent.status->starts, 2); /* not yet */
	agent.demand[0]->word = 0;
	assert_true(eventually(agent.status->starts == 3));
	assert_int_equal(agent.status->starts_late, 1);

	agent.control->latency_slo = UINT64_MAX; /* nothing is late */
	agent.demand[0]->word = 1;
	launch_on(STREAM(n, 5), 703);
	settle(50000);
	agent.demand[0]->word = 0;
	assert_true(eventually(agent.status->starts == 4));
	assert_int_equal(agent.status->starts_late, 1);
	agent.control->latency_slo = 0;
	gone(n);
}

/* No gate is closed, but others' kernels have the GPU. */
static void starts_behind_others_are_late(void **state)
{
	(void)state;
	unsigned n = welcomed(0, 1);

	learn(n, 710, 50000);
	assert_int_equal(cuStreamSynchronize(STREAM(n, 1)), CUDA_SUCCESS);
	agent.control->latency_slo = 10000000;
	settle(50000); /* all of the page is of now */
	uint64_t starts = agent.status->starts, late = agent.status->starts_late;
	launch_on(STREAM(n, 2), 710);
	assert_true(eventually(agent.status->starts == starts + 1));
	driver->streams_busy = 1;
	driver->last_busy = 1;
	launch_on(STREAM(n, 3), 710);
	settle(60000);
	assert_int_equal(agent.status->starts, starts + 1); /* not yet */
	driver->last_busy = 0;
	assert_true(eventually(agent.status->starts == starts + 2));
	assert_int_equal(agent.status->starts_late, late + 1);
	agent.control->latency_slo = 0;
	gone(n);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(progress_is_told),
		cmocka_unit_test(progress_under_slices_is_told),
		cmocka_unit_test(progress_for_a_minimum_rate_is_told),
		cmocka_unit_test(progress_at_gates_is_told),
		cmocka_unit_test(starts_after_the_objective_are_counted),
		cmocka_unit_test(starts_behind_others_are_late),
	};

	return cmocka_run_group_tests(tests, guest_begin_called, guest_finish);
}
