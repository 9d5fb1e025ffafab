/* Gates, reported progress and starts, and priorities of launches. */
#include "guest.h"

#include <unistd.h>

#include <weir/base.h>

static void gates_by_predicted_work(void **state)
{
	(void)state;
	unsigned n = welcomed(0, 1);
	int none;

	assert_int_equal(driver->waits_in_gates, driver->gates); /* one wait a gate */
	/* 50 us each. With nobody above a gate after each 1000 us: each twentieth launch. */
	learn(n, 100, 50000);
	settle(100000);
	none = driver->gates;
	for (int i = 0; i < 100; i++)
		launch_on(STREAM(n, 1), 100);
	assert_in_range(driver->gates - none, 4, 6);

	/* Somebody is above: after each 400 us, each eighth launch. */
	agent.control->above = 1;
	settle(100000);
	none = driver->gates;
	for (int i = 0; i < 51; i++)
		launch_on(STREAM(n, 1), 100);
	assert_in_range(driver->gates - none, 6, 7);

	/* Dense, each second launch, after demand was seen. */
	agent.demand[0]->word = 1;
	launch_on(STREAM(n, 1), 100);
	settle(50000);
	agent.demand[0]->word = 0;
	none = driver->gates;
	for (int i = 0; i < 50; i++)
		launch_on(STREAM(n, 1), 100);
	assert_in_range(driver->gates - none, 24, 26);

	/* Denser, each launch, beside three that run at the same time. */
	agent.control->beside = 4;
	settle(50000);
	none = driver->gates;
	for (int i = 0; i < 50; i++)
		launch_on(STREAM(n, 1), 100);
	assert_in_range(driver->gates - none, 49, 50);
	agent.control->beside = 0;
	settle(50000);

	/* A kernel of unknown time may be long: a gate before the next. */
	int before = driver->gates;
	for (unsigned i = 0; i < 10; i++)
		launch_on(STREAM(n, 1), 200 + i);
	assert_in_range(driver->gates - before, 9, 10);

	/* The policy may hold: the gate waits for that as well. */
	agent.control->flags = WEIR_CONTROL_HOLDABLE;
	int gates = driver->gates, waits = driver->waits_in_gates;
	launch_on(STREAM(n, 1), 300);
	launch_on(STREAM(n, 1), 301);
	assert_true(driver->gates > gates);
	assert_int_equal(driver->waits_in_gates - waits, 2 * (driver->gates - gates));

	/* Without higher-level clients gates are dense while same-level clients have work. Earlier
	 * contention is forgotten after a second. */
	agent.control->above = 0;
	settle(1300000);
	gates = driver->gates;
	for (int i = 0; i < 100; i++)
		launch_on(STREAM(n, 1), 100);
	assert_in_range(driver->gates - gates, 4, 7);
	agent.control->flags = WEIR_CONTROL_HOLDABLE | WEIR_CONTROL_CONTENDED;
	settle(100000);
	gates = driver->gates;
	for (int i = 0; i < 50; i++)
		launch_on(STREAM(n, 1), 100);
	assert_in_range(driver->gates - gates, 24, 26);
	agent.control->flags = 0;
	gone(n);
}

/* Which the gate would lengthen. */
static void short_kernels_go_before_a_gate(void **state)
{
	(void)state;
	unsigned n = welcomed(0, 1);

	learn(n, 160, 2000000);
	learn(n, 161, 20000);
	settle(100000);
	for (int round = 0; round < 3; round++) {
		int gates = driver->gates;
		launch_on(STREAM(n, 1), 160);
		assert_int_equal(driver->gates - gates, round > 0); /* since the last round */
		gates = driver->gates;
		for (int i = 0; i < 5; i++)
			launch_on(STREAM(n, 1), 161);
		assert_int_equal(driver->gates, gates);
	}
	/* But only a few of them. */
	int gates = driver->gates;
	launch_on(STREAM(n, 1), 161);
	assert_int_equal(driver->gates, gates + 1);
	/* And none while higher-level clients come and go. */
	agent.control->above = 1;
	agent.demand[0]->word = 1;
	launch_on(STREAM(n, 1), 160);
	settle(50000);
	agent.demand[0]->word = 0;
	gates = driver->gates;
	launch_on(STREAM(n, 1), 161);
	assert_int_equal(driver->gates, gates + 1);
	gone(n);
	agent.control->above = 0;
}

/* Gates put by a launch into a stream that has run dry. */
static int gates_at_a_start(unsigned n, unsigned kernel)
{
	cuStreamSynchronize(STREAM(n, 1));
	int before = driver->gates;
	launch_on(STREAM(n, 1), kernel);
	return driver->gates - before;
}

static void a_gate_that_would_be_open_is_not_put_before_a_start(void **state)
{
	(void)state;
	unsigned n = welcomed(0, 1);

	learn(n, 170, 1500000);
	learn(n, 171, 3000000);
	settle(100000);
	for (int i = 0; i < 5; i++)
		assert_int_equal(gates_at_a_start(n, 170), 0);
	/* A launch that is queued behind it has one. */
	int before = driver->gates;
	launch_on(STREAM(n, 1), 170);
	assert_int_equal(driver->gates, before + 1);
	/* A long one may have to wait for what else was queued, and one of unknown time is long. */
	gates_at_a_start(n, 170);
	assert_int_equal(gates_at_a_start(n, 171), 1);
	gates_at_a_start(n, 170);
	assert_int_equal(gates_at_a_start(n, 172), 1);
	/* The agent holds us. */
	agent.control->flags = WEIR_CONTROL_HOLDABLE;
	gates_at_a_start(n, 170);
	assert_int_equal(gates_at_a_start(n, 170), 0);
	agent.control->hold = 1;
	assert_int_equal(gates_at_a_start(n, 170), 1);
	agent.control->hold = 0;
	agent.control->flags = 0;
	/* Somebody may want the GPU any moment. */
	agent.control->above = 1;
	gates_at_a_start(n, 170);
	assert_int_equal(gates_at_a_start(n, 170), 1);
	gone(n);
	agent.control->above = 0;
}

/* Launches that are waited for, 25 ms apart: so many of them are measured. */
static int measured_of(unsigned n, unsigned kernel, int launches)
{
	int before = driver->events_recorded;

	for (int i = 0; i < launches; i++) {
		settle(25000);
		launch_on(STREAM(n, 1), kernel);
		cuStreamSynchronize(STREAM(n, 1));
	}
	return (driver->events_recorded - before) / 2;
}

static void few_starts_are_measured(void **state)
{
	(void)state;
	unsigned n = welcomed(0, 1);

	learn(n, 175, 700000);
	learn(n, 176, 70000);
	assert_in_range(measured_of(n, 175, 28), 2, 5);
	assert_in_range(measured_of(n, 176, 28), 2, 5);
	gone(n);
}

/* Launches, waits so long, and synchronises. True: the launch was measured. */
static bool measured_for(unsigned n, unsigned kernel, useconds_t us)
{
	int before = driver->events_recorded;

	driver->streams_busy = driver->events_busy = 1;
	launch_on(STREAM(n, 1), kernel);
	usleep(us);
	driver->streams_busy = driver->events_busy = 0;
	cuStreamSynchronize(STREAM(n, 1));
	return driver->events_recorded > before;
}

static void a_start_behind_one_that_took_far_too_long_is_measured(void **state)
{
	(void)state;
	unsigned n = welcomed(0, 1);

	learn(n, 178, 700000);
	/* Six behind one that is measured are not. */
	while (!measured_of(n, 178, 1))
		;
	assert_false(measured_for(n, 178, 60000));
	settle(30000); /* the worker has seen that, and may be idle */
	assert_true(measured_for(n, 178, 0));
	gone(n);
}

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

/* The priority with which the next launch of a kernel reaches the driver; 1: none. */
static int priority_of_kernel(CUstream stream, unsigned kernel)
{
	driver->n_ops = 0;
	launch_on(stream, kernel);
	for (size_t i = driver->n_ops; i--;) /* behind it there may be an event */
		if (driver->ops[i].kind == NULL_LAUNCH)
			return driver->ops[i].priority;
	fail_msg("nothing was launched");
	return 0;
}

static int priority_of_launch(CUstream stream)
{
	return priority_of_kernel(stream, 600);
}

static int priority_of_config(CUstream stream, CUlaunchAttribute *attributes, unsigned n)
{
	CUlaunchConfig config = {
		.gridDimX = 1,
		.gridDimY = 1,
		.gridDimZ = 1,
		.blockDimX = 32,
		.blockDimY = 1,
		.blockDimZ = 1,
		.hStream = stream,
		.attrs = attributes,
		.numAttrs = n,
	};

	driver->n_ops = 0;
	assert_int_equal(cuLaunchKernelEx(&config, KERNEL(601), NULL, NULL), CUDA_SUCCESS);
	assert_true(driver->n_ops >= 1);
	return driver->ops[driver->n_ops - 1].priority;
}

/* Of the driver's 0..-5 each level has a part; the program's own order within it stays. So does
 * the priority of a cooperative launch. */
static void launches_have_their_levels_priority(void **state)
{
	static const int plain[] = {1, -1, -3, -5}, ahead[] = {0, -2, -4, -5};
	CUlaunchAttribute attributes[2] = {{.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE},
					   {.id = CU_LAUNCH_ATTRIBUTE_PRIORITY}};

	(void)state;
	driver->mps = 1;
	for (uint8_t level = 0; level < WEIR_LEVELS; level++) {
		driver->priority = 0;
		unsigned n = welcomed(level, 9);
		agent.control->above = agent.control->below = 0;
		assert_int_equal(priority_of_launch(STREAM(n, 1)), 1); /* nobody else is there */
		agent.control->above = level == 0;
		agent.control->below = level > 0;
		assert_int_equal(priority_of_launch(STREAM(n, 1)), plain[level]);
		driver->priority = -3;
		assert_int_equal(priority_of_launch(STREAM(n, 2)), ahead[level]);
		assert_int_equal(priority_of_config(STREAM(n, 2), attributes, 1), ahead[level]);
		assert_int_equal(driver->ops[driver->n_ops - 1].attributes, 2);
		attributes[0].value.cooperative = 1;
		assert_int_equal(priority_of_config(STREAM(n, 2), attributes, 1), 1);
		attributes[0].value.cooperative = 0;
		attributes[1].value.priority = -2; /* the program's own */
		assert_int_equal(priority_of_config(STREAM(n, 2), attributes, 2), -2);
		agent.control->above = agent.control->below = 0;
		gone(n);
	}
	driver->priority = 0;
	driver->mps = 0;
}

/* Clients of one level run at the same time: a launch twice as long has a priority one step less.
 */
static void launches_have_their_lengths_priority(void **state)
{
	static const struct {
		uint64_t ns;
		int priority;
	} cases[] = {{100000, -4},   {1900000, -4}, {2500000, -3}, {5000000, -2},
		     {11000000, -1}, {17000000, 1}, {900000000, 1}};

	(void)state;
	driver->mps = 1;
	unsigned n = welcomed(1, 9);
	for (unsigned i = 0; i < countof(cases); i++)
		learn(n, 610 + i, cases[i].ns);
	assert_int_equal(priority_of_kernel(STREAM(n, 1), 610), 1);
	agent.control->flags = WEIR_CONTROL_AHEAD;
	for (unsigned i = 0; i < countof(cases); i++)
		assert_int_equal(priority_of_kernel(STREAM(n, 1), 610 + i), cases[i].priority);
	/* Nothing is known of it: it is as good as short. */
	assert_int_equal(priority_of_kernel(STREAM(n, 1), 609), -4);
	/* Levels come first. */
	agent.control->below = 1;
	assert_int_equal(priority_of_kernel(STREAM(n, 1), 612), -1);
	assert_int_equal(priority_of_kernel(STREAM(n, 1), 614), -1);
	agent.control->below = agent.control->flags = 0;
	driver->mps = 0;
	gone(n);
}

/* The priority of the first launch of new work, which then goes on. */
static int priority_of_burst(unsigned n, unsigned kernel)
{
	driver->streams_busy = 0;
	assert_int_equal(cuStreamSynchronize(STREAM(n, 1)), CUDA_SUCCESS);
	assert_true(eventually(!(agent.demand[0]->word & 1ull << 9)));
	driver->streams_busy = 1;
	return priority_of_kernel(STREAM(n, 1), kernel);
}

static int priority_now(unsigned n)
{
	return priority_of_kernel(STREAM(n, 1), 620);
}

/* Among same-level clients above others, the one that had work first is ahead for a while. */
static void who_comes_first_is_ahead(void **state)
{
	(void)state;
	driver->mps = 1;
	unsigned n = welcomed(2, 9);
	learn(n, 621, 5000000);
	learn(n, 620, 100000);
	agent.control->below = 1;
	assert_int_equal(priority_of_burst(n, 620), -3); /* the agent does not say so */
	agent.control->flags = WEIR_CONTROL_AHEAD;
	assert_int_equal(priority_of_burst(n, 620), -4);
	agent.demand[0]->word |= 1 << 3; /* those of levels between us count for nothing */
	assert_int_equal(priority_of_burst(n, 620), -4);
	agent.demand[1]->word |= 1 << 4;                             /* an equal comes */
	assert_int_equal(priority_of_kernel(STREAM(n, 1), 621), -3); /* nobody waits behind that */
	agent.control->flags = 0;
	assert_int_equal(priority_now(n), -3);
	agent.control->flags = WEIR_CONTROL_AHEAD;
	assert_true(eventually(priority_now(n) == -3)); /* it was at work for too long */

	assert_int_equal(priority_of_burst(n, 620), -3); /* the equal was before us */
	agent.demand[1]->word &= ~(1ull << 4);
	assert_int_equal(priority_now(n), -3);
	agent.control->below = agent.control->flags = 0;
	agent.demand[0]->word = agent.demand[1]->word = 0;
	driver->streams_busy = driver->mps = 0;
	gone(n);
}

static void launch_cooperative(unsigned n)
{
	assert_int_equal(
		cuLaunchCooperativeKernel(KERNEL(600), 1, 1, 1, 32, 1, 1, 0, STREAM(n, 1), NULL),
		CUDA_SUCCESS);
}

static void launch_graph(unsigned n)
{
	assert_int_equal(cuGraphLaunch((CUgraphExec)KERNEL(700), STREAM(n, 1)), CUDA_SUCCESS);
}

static void launch_cooperative_by_config(unsigned n)
{
	CUlaunchAttribute all = {.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value.cooperative = 1};

	assert_int_equal(priority_of_config(STREAM(n, 1), &all, 1), 1);
}

static void launch_with_priority(unsigned n)
{
	CUlaunchAttribute own = {.id = CU_LAUNCH_ATTRIBUTE_PRIORITY, .value.priority = -5};

	assert_int_equal(priority_of_config(STREAM(n, 1), &own, 1), -5);
}

/* The order of the program's own streams stays. */
static void launch_in_stream_with_priority(unsigned n)
{
	driver->priority = -3;
	assert_int_equal(priority_of_launch(STREAM(n, 3)), 1);
	driver->priority = 0;
}

/* What has no priority by its length is told of, so that no other launch of the level has one. */
static void unordered_launches_are_told(void **state)
{
	static void (*const unordered[])(unsigned n) = {
		launch_cooperative, launch_cooperative_by_config, launch_graph,
		launch_with_priority, launch_in_stream_with_priority};

	(void)state;
	driver->mps = 1;
	for (unsigned i = 0; i < countof(unordered); i++) {
		unsigned n = welcomed(1, 9);
		agent.control->flags = WEIR_CONTROL_AHEAD;
		launch_on(STREAM(n, 1), 600);
		assert_true(eventually(agent.status->flags & WEIR_STATUS_ORDERED));
		unordered[i](n);
		assert_true(eventually(!(agent.status->flags & WEIR_STATUS_ORDERED)));
		launch_on(STREAM(n, 1), 600);
		settle(50000);
		assert_false(agent.status->flags & WEIR_STATUS_ORDERED);
		agent.control->flags = 0;
		gone(n);
	}
	driver->mps = 0;
	unsigned n = welcomed(1, 9);
	settle(50000);
	assert_false(agent.status->flags & WEIR_STATUS_ORDERED);
	gone(n);
}

static void priorities_may_be_unknown(void **state)
{
	(void)state;
	unsigned n = welcomed(2, 9); /* not under MPS */
	agent.control->below = 1;
	assert_int_equal(priority_of_launch(STREAM(n, 1)), 1);
	gone(n);

	driver->mps = 1;
	n = welcomed(2, 9);
	agent.control->flags = WEIR_CONTROL_AHEAD; /* which says nothing here */
	driver->priorities_fail = CUDA_ERROR_INVALID_VALUE;
	assert_int_equal(priority_of_launch(STREAM(n, 1)), 1); /* launched as it is */
	driver->priorities_fail = CUDA_ERROR_NOT_SUPPORTED;
	assert_int_equal(priority_of_launch(STREAM(n, 1)), 1);
	driver->priorities_fail = 0;
	assert_int_equal(priority_of_launch(STREAM(n, 1)), 1); /* not tried again */
	agent.control->below = 0;
	assert_int_equal(priority_of_launch(STREAM(n, 1)), 1);
	agent.control->flags = 0;
	driver->mps = 0;
	gone(n);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(gates_by_predicted_work),
		cmocka_unit_test(short_kernels_go_before_a_gate),
		cmocka_unit_test(a_gate_that_would_be_open_is_not_put_before_a_start),
		cmocka_unit_test(few_starts_are_measured),
		cmocka_unit_test(a_start_behind_one_that_took_far_too_long_is_measured),
		cmocka_unit_test(progress_is_told),
		cmocka_unit_test(progress_under_slices_is_told),
		cmocka_unit_test(progress_for_a_minimum_rate_is_told),
		cmocka_unit_test(progress_at_gates_is_told),
		cmocka_unit_test(starts_after_the_objective_are_counted),
		cmocka_unit_test(starts_behind_others_are_late),
		cmocka_unit_test(launches_have_their_levels_priority),
		cmocka_unit_test(launches_have_their_lengths_priority),
		cmocka_unit_test(who_comes_first_is_ahead),
		cmocka_unit_test(unordered_launches_are_told),
		cmocka_unit_test(priorities_may_be_unknown),
	};

	return cmocka_run_group_tests(tests, guest_begin_called, guest_finish);
}
