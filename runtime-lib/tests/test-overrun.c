/* For how long a kernel stays on the GPU although gates have closed behind it, on the null driver.
 * Nothing is finished while its streams and events are busy. */
#include "launch/overrun.h"

#include "client/worker.h"

#include "inside.h"

#include <setjmp.h>
#include <stdarg.h>
#include <unistd.h>

#include <cmocka.h>

#define KERNEL ((CUfunction)(uintptr_t)0x9000)

static void launch(CUstream stream)
{
	assert_int_equal(cuLaunchKernel(KERNEL, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL), 0);
}

static void busy(int is)
{
	driver->streams_busy = driver->events_busy = is;
}

static uint64_t overrun(void)
{
	worker_wake();
	return atomic_load(&agent.status->overrun);
}

static unsigned begin(void)
{
	unsigned n = context_welcomed(1);

	atomic_store(&agent.control->flags, WEIR_CONTROL_HOLDABLE);
	cuStreamSynchronize(STREAM(n, 1));
	busy(1);
	return n;
}

static void finish(unsigned n)
{
	busy(0);
	hold(0);
	assert_true(eventually(!overrun()));
	context_gone(n);
}

static void counts_from_when_gates_close(void **state)
{
	unsigned n = begin();

	(void)state;
	launch(STREAM(n, 1));
	looks();
	assert_int_equal(overrun(), 0);
	hold(1);
	assert_true(eventually(overrun() > 20 * NS_PER_MS));
	/* All its time from now on. */
	hold(0);
	uint64_t before = overrun();
	assert_true(eventually(overrun() > before + 20 * NS_PER_MS));
	finish(n);
}

static void demand_closes_gates_too(void **state)
{
	unsigned n = begin();

	(void)state;
	launch(STREAM(n, 1));
	looks();
	atomic_store(&agent.demand[1]->word, 4);
	assert_true(eventually(overrun() > 0));
	atomic_store(&agent.demand[1]->word, 0);
	finish(n);
}

static void not_while_the_hardware_stops_it(void **state)
{
	unsigned n = begin();

	(void)state;
	launch(STREAM(n, 1));
	looks();
	atomic_store(&agent.control->stopped_until, client_now() + 3600 * NS_PER_S);
	hold(1);
	looks();
	assert_int_equal(overrun(), 0);
	atomic_store(&agent.control->stopped_until, 0);
	assert_true(eventually(overrun() > 0));
	finish(n);
}

/* It waits at its gate. */
static void not_what_comes_behind_closed_gates(void **state)
{
	unsigned n = begin();

	(void)state;
	hold(1);
	launch(STREAM(n, 1));
	looks();
	assert_int_equal(overrun(), 0);
	finish(n);
}

/* Without a marker nobody knows which of them is not finished. */
static void not_what_is_uncertain(void **state)
{
	unsigned n = begin();

	(void)state;
	launch(STREAM(n, 1));
	launch(STREAM(n, 1));
	looks();
	hold(1);
	looks();
	assert_int_equal(overrun(), 0);
	finish(n);
}

static void a_marker_before_the_gate_makes_it_certain(void **state)
{
	unsigned n = begin();

	(void)state;
	atomic_store(&agent.control->flags, WEIR_CONTROL_HOLDABLE | WEIR_CONTROL_CONTENDED);
	launch(STREAM(n, 1));
	looks();
	launch(STREAM(n, 1));
	hold(1);
	assert_true(eventually(overrun() > 0));
	finish(n);
}

static void not_what_has_gates_inside(void **state)
{
	unsigned n = begin();

	(void)state;
	launch(STREAM(n, 1));
	struct stream *stream = stream_known(STREAM(n, 1), false);
	assert_non_null(stream);
	stream->gated_inside = atomic_load(&stream->begun);
	looks();
	hold(1);
	looks();
	assert_int_equal(overrun(), 0);
	finish(n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_from_when_gates_close),
		cmocka_unit_test(demand_closes_gates_too),
		cmocka_unit_test(not_while_the_hardware_stops_it),
		cmocka_unit_test(not_what_comes_behind_closed_gates),
		cmocka_unit_test(not_what_is_uncertain),
		cmocka_unit_test(a_marker_before_the_gate_makes_it_certain),
		cmocka_unit_test(not_what_has_gates_inside),
	};

	driver_load();
	return cmocka_run_group_tests(tests, agent_begin, agent_finish);
}
