/* Gates of a client that MPS started on a part of the SMs: they are open while higher levels need
 * no more than the others. On the null driver, whose GPU has 4 SMs. */
#include "inside.h"

#include "gates/demand-pages.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define KERNEL ((CUfunction)(uintptr_t)0x9000)
#define UNUSED 2u /* SMs on which the client never runs */

static void as_many_sms_as_mps_gives(void **state)
{
	static const struct {
		double percent;
		uint32_t sms, most; /* as an H100 gives; of 132 */
	} cases[] = {{10, 12, 14}, {25, 32, 34}, {50, 66, 68}, {75, 98, 100}, {80, 104, 106}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_in_range(sms_given(cases[i].percent, 132), cases[i].sms, cases[i].most);
	assert_int_equal(sms_given(1, 132), 8);
	assert_int_equal(sms_given(50, 4), 4);
	/* No part. */
	assert_int_equal(sms_given(0, 132), 132);
	assert_int_equal(sms_given(-3, 132), 132);
	assert_int_equal(sms_given(99.9, 132), 132);
	assert_int_equal(sms_given(100, 132), 132);
	assert_int_equal(sms_given(1e300, 132), 132);
	assert_int_equal(sms_given(strtod("nan", NULL), 132), 132);
}

/* A client at level 1, below others, so that each launch of unknown time has a gate: the first one,
 * too, whatever the stream's kernel before has taken. @unused: SMs on which it never runs. */
static unsigned begin(uint32_t unused, uint32_t flags)
{
	atomic_store(&agent.control->above, 1);
	unsigned n = context_welcomed(1);
	store_relaxed(&stream_find(STREAM(n, 1), false)->since_gate, GATE_INTERVAL_QUIET);

	sms_of(client)->unused = unused;
	atomic_store(&agent.control->flags, flags);
	driver->streams_busy = 1;
	return n;
}

static void end(unsigned n)
{
	driver->streams_busy = 0;
	assert_int_equal(cuStreamSynchronize(STREAM(n, 1)), CUDA_SUCCESS);
	atomic_store(&agent.control->flags, 0);
	atomic_store(&agent.control->above, 0);
	context_gone(n);
}

/* Kernels of unknown time: each has a gate. */
static const struct null_op *next_gate(unsigned n)
{
	static uintptr_t kernels;

	atomic_store(&driver->n_ops, 0);
	assert_int_equal(cuLaunchKernel((CUfunction)((uintptr_t)KERNEL + 16 * ++kernels), 64, 1, 1,
					32, 1, 1, 0, STREAM(n, 1), NULL, NULL),
			 CUDA_SUCCESS);
	assert_int_equal(driver->n_ops, 2);
	assert_int_equal(driver->ops[0].kind, NULL_GATE);
	assert_int_equal(driver->ops[1].kind, NULL_LAUNCH);
	return &driver->ops[0];
}

static uint64_t at(size_t offset)
{
	return load_relaxed(&client->binding)->wait->gpu + offset;
}

static bool passes(const struct null_op *gate, uint32_t sms)
{
	assert_int_equal(gate->waits[1].flags, CU_STREAM_WAIT_VALUE_GEQ);
	return (int32_t)(sms - (uint32_t)gate->waits[1].value) >= 0;
}

static void waits_for_more_than_it_leaves(void **state)
{
	unsigned n = begin(UNUSED, WEIR_CONTROL_SPATIAL);

	(void)state;
	next_gate(n);
	const struct null_op *gate = next_gate(n);
	assert_int_equal(gate->n_waits, 2);
	assert_int_equal(gate->waits[0].address, at(offsetof(struct weir_demand_page, whole)));
	assert_int_equal(gate->waits[0].value, 0);
	assert_int_equal(gate->waits[0].flags, CU_STREAM_WAIT_VALUE_EQ);
	assert_int_equal(gate->waits[1].address, at(offsetof(struct weir_demand_page, sms)));
	for (uint32_t sms = 0; sms < 200; sms++)
		assert_int_equal(passes(gate, sms), sms <= UNUSED);

	/* The policy may hold it, too. */
	atomic_store(&agent.control->flags, WEIR_CONTROL_SPATIAL | WEIR_CONTROL_HOLDABLE);
	assert_int_equal(next_gate(n)->n_waits, 3);
	end(n);
}

static void any_demand_closes_other_gates(void **state)
{
	static const struct {
		uint32_t unused, flags;
	} cases[] = {{UNUSED, 0}, {0, WEIR_CONTROL_SPATIAL}, {0, 0}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		unsigned n = begin(cases[i].unused, cases[i].flags);
		next_gate(n);
		const struct null_op *gate = next_gate(n);
		assert_int_equal(gate->n_waits, 1);
		assert_int_equal(gate->address, at(offsetof(struct weir_demand_page, word)));
		end(n);
	}
}

/* What was put while the agent allowed it does not do later. */
static void another_gate_behind_one_that_is_not_enough(void **state)
{
	unsigned n = begin(UNUSED, WEIR_CONTROL_SPATIAL);

	(void)state;
	struct stream *stream = stream_find(STREAM(n, 1), false);
	const struct level_binding *binding = load_relaxed(&client->binding);
	gate_put(stream, binding, GATE_BESIDE);
	int gates = driver->gates;
	gate_pass(stream, binding, 1000, false, GATE_BESIDE);
	assert_int_equal(driver->gates, gates);
	gate_pass(stream, binding, 1000, false, GATE_ALL);
	assert_int_equal(driver->gates, gates + 1);
	gate_pass(stream, binding, 1000, false, GATE_ALL);
	gate_pass(stream, binding, 1000, false, GATE_BESIDE);
	assert_int_equal(driver->gates, gates + 1);
	end(n);
}

static void is_closed_as_its_gates_are(void **state)
{
	unsigned n = begin(UNUSED, WEIR_CONTROL_SPATIAL);
	const struct level_binding *binding = load_relaxed(&client->binding);
	struct weir_demand_page *page = agent.demand[1];

	(void)state;
	page->word = 1u << 9;
	page->sms = UNUSED;
	assert_true(gate_is_closed(client, binding, GATE_ALL));
	assert_false(gate_is_closed(client, binding, GATE_BESIDE));
	page->sms = UNUSED + 1;
	assert_true(gate_is_closed(client, binding, GATE_BESIDE));
	assert_false(gate_is_closed(client, binding, GATE_WHOLE));
	page->sms = 0;
	page->whole = 1u << 9;
	assert_true(gate_is_closed(client, binding, GATE_BESIDE));
	page->whole = 0;
	page->word = 0;
	atomic_store(&agent.control->hold, 1);
	assert_true(gate_is_closed(client, binding, GATE_BESIDE));
	atomic_store(&agent.control->hold, 0);
	end(n);
}

static bool has_interval(uint64_t ns)
{
	return atomic_load(&gating_of(client)->interval) == ns;
}

static void gates_are_dense_while_some_are_closed(void **state)
{
	unsigned n = begin(UNUSED, WEIR_CONTROL_SPATIAL);
	struct weir_demand_page *page = agent.demand[1];

	(void)state;
	page->word = 1u << 9;
	page->sms = UNUSED;
	next_gate(n);
	assert_true(eventually(has_interval(GATE_INTERVAL_QUIET)));
	page->sms = UNUSED + 1;
	assert_true(eventually(has_interval(GATE_INTERVAL_CONTENDED)));
	page->sms = 0;
	page->word = 0;
	end(n);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_many_sms_as_mps_gives),
		cmocka_unit_test(waits_for_more_than_it_leaves),
		cmocka_unit_test(any_demand_closes_other_gates),
		cmocka_unit_test(another_gate_behind_one_that_is_not_enough),
		cmocka_unit_test(is_closed_as_its_gates_are),
		cmocka_unit_test(gates_are_dense_while_some_are_closed),
	};

	driver_load();
	return cmocka_run_group_tests(tests, agent_begin, agent_finish);
}
