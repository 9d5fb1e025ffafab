/* What clients report as finished whose speed the agent measures or bounds. */
#include "guest.h"

#include <unistd.h>

static uint64_t executed_by_a_launch(unsigned n, unsigned kernel)
{
	uint64_t before = agent.status->executed;

	launch_on(STREAM(n, 1), kernel);
	assert_int_equal(cuStreamSynchronize(STREAM(n, 1)), CUDA_SUCCESS);
	assert_true(eventually(agent.status->executed > before));
	return agent.status->executed - before;
}

/* Ahead of its minimum rate a client runs beside others, which lengthen its kernels. If these
 * counted as longer, it would report more than it did. */
static void kernels_beside_others_do_not_seem_longer(void **state)
{
	(void)state;
	unsigned n = welcomed(0, 1);

	learn(n, 123, 50000);
	assert_true(eventually(agent.status->outstanding == 0));
	assert_int_equal(executed_by_a_launch(n, 123), 50000);
	agent.control->flags = WEIR_CONTROL_LEAVES;
	driver->elapsed_ns = 90000;
	for (unsigned i = 0; i < 4; i++) {
		int before = driver->events_recorded;
		while (driver->events_recorded == before)
			launch_on(STREAM(n, 1), 123);
		settle(30000); /* the worker reads the sample */
	}
	/* Neither if they have left before the worker reads the sample. */
	driver->events_busy = 1;
	int before = driver->events_recorded;
	while (driver->events_recorded == before)
		launch_on(STREAM(n, 1), 123);
	agent.control->flags = 0;
	settle(30000);
	driver->events_busy = 0;
	settle(30000);
	assert_int_equal(cuStreamSynchronize(STREAM(n, 1)), CUDA_SUCCESS);
	settle(30000);
	assert_int_equal(executed_by_a_launch(n, 123), 50000);
	gone(n);
}

/* Markers behind so many launches of the kernel. */
static int markers_of(unsigned n, unsigned kernel, int launches)
{
	int before = driver->markers_recorded;

	for (int i = 0; i < launches; i++)
		launch_on(STREAM(n, 1), kernel);
	return driver->markers_recorded - before;
}

/* However much is queued, what is finished of it is known in parts. */
static void progress_in_a_long_queue_is_told_with(uint32_t flag)
{
	unsigned n = welcomed(0, 1);

	learn(n, 122, 50000);
	assert_true(eventually(agent.status->outstanding == 0));
	agent.control->flags = flag;
	driver->streams_busy = driver->events_busy = 1;
	launch_on(STREAM(n, 1), 122);
	settle(100000); /* markers are wanted */
	/* Each 100 us at first, then less often. */
	assert_in_range(markers_of(n, 122, 1000), 20, 33);
	/* As many as are passed are left again at the end. */
	uint64_t executed = agent.status->executed;
	driver->events_busy = 0;
	assert_true(eventually(agent.status->executed >= executed + 20 * 100000));
	assert_true(agent.status->outstanding > 0);
	driver->events_busy = 1;
	settle(50000);
	assert_in_range(markers_of(n, 122, 1000), 10, 34);
	/* Without the flag there are none. */
	agent.control->flags = 0;
	settle(100000);
	assert_in_range(markers_of(n, 122, 1000), 0, 2);
	driver->streams_busy = driver->events_busy = 0;
	assert_int_equal(cuStreamSynchronize(STREAM(n, 1)), CUDA_SUCCESS);
	gone(n);
}

static void progress_for_a_minimum_rate_is_told(void **state)
{
	(void)state;
	progress_in_a_long_queue_is_told_with(WEIR_CONTROL_RATED);
}

static void progress_of_measured_work_is_told(void **state)
{
	(void)state;
	progress_in_a_long_queue_is_told_with(WEIR_CONTROL_MEASURED);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(kernels_beside_others_do_not_seem_longer),
		cmocka_unit_test(progress_for_a_minimum_rate_is_told),
		cmocka_unit_test(progress_of_measured_work_is_told),
	};

	return cmocka_run_group_tests(tests, guest_begin_called, guest_finish);
}
