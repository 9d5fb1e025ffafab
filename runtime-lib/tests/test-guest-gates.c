/* Where gates are put, and which launches are measured. */
#include "guest.h"

#include <unistd.h>

#include <weir/base.h>

/* Gates put by so many launches of the kernel. */
static int gates_of(unsigned n, unsigned kernel, int launches)
{
	int before = driver->gates;

	for (int i = 0; i < launches; i++)
		launch_on(STREAM(n, 1), kernel);
	return driver->gates - before;
}

static void gates_by_predicted_work(void **state)
{
	(void)state;
	unsigned n = welcomed(0, 1);

	assert_int_equal(driver->waits_in_gates, driver->gates); /* one wait a gate */
	/* 50 us each. With nobody above a gate after each 1000 us: each twentieth launch. */
	learn(n, 100, 50000);
	settle(100000);
	assert_in_range(gates_of(n, 100, 100), 4, 6);

	/* Somebody is above: after each 400 us, each eighth launch. */
	agent.control->above = 1;
	settle(100000);
	assert_in_range(gates_of(n, 100, 51), 6, 7);

	/* Dense, each second launch, after demand was seen. */
	agent.demand[0]->word = 1;
	launch_on(STREAM(n, 1), 100);
	settle(50000);
	agent.demand[0]->word = 0;
	assert_in_range(gates_of(n, 100, 50), 24, 26);

	/* Denser, each launch, beside three that run at the same time. */
	agent.control->beside = 4;
	settle(50000);
	assert_in_range(gates_of(n, 100, 50), 49, 50);
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
	assert_in_range(gates_of(n, 100, 100), 4, 7);
	agent.control->flags = WEIR_CONTROL_HOLDABLE | WEIR_CONTROL_CONTENDED;
	settle(100000);
	assert_in_range(gates_of(n, 100, 50), 24, 26);
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
		assert_int_equal(gates_of(n, 160, 1), round > 0); /* since the last round */
		assert_int_equal(gates_of(n, 161, 5), 0);
	}
	/* But only a few of them. */
	assert_int_equal(gates_of(n, 161, 1), 1);
	/* And none while higher-level clients come and go. */
	agent.control->above = 1;
	agent.demand[0]->word = 1;
	launch_on(STREAM(n, 1), 160);
	settle(50000);
	agent.demand[0]->word = 0;
	assert_int_equal(gates_of(n, 161, 1), 1);
	gone(n);
	agent.control->above = 0;
}

/* Gates put by a launch into a stream that has run dry. */
static int gates_at_a_start(unsigned n, unsigned kernel)
{
	cuStreamSynchronize(STREAM(n, 1));
	return gates_of(n, kernel, 1);
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
	assert_int_equal(gates_of(n, 170, 1), 1);
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

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(gates_by_predicted_work),
		cmocka_unit_test(short_kernels_go_before_a_gate),
		cmocka_unit_test(a_gate_that_would_be_open_is_not_put_before_a_start),
		cmocka_unit_test(few_starts_are_measured),
		cmocka_unit_test(a_start_behind_one_that_took_far_too_long_is_measured),
	};

	return cmocka_run_group_tests(tests, guest_begin_called, guest_finish);
}
