/* Launches that can leave a part of the SMs, as the driver sees them. On the null driver. */
#include "formed.h"

#include "gates/gate.h"
#include "gates/waiting.h"

#include "weir/tickets.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define MANY_BLOCKS (2 * BLOCKS) /* of a kernel of 1 ms: 16 us each */
#define CHAIN       6            /* operations: constants, kernel, two continuations behind gates */

static const struct constant_copy constants[] = {{.to = 0x5000, .from = 0x6000, .size = 40}};
static struct rewritten rewritten;
static unsigned n;

static void set_spatial(bool on)
{
	if (on)
		agent.control->flags |= WEIR_CONTROL_SPATIAL;
	else
		agent.control->flags &= ~(unsigned)WEIR_CONTROL_SPATIAL;
}

static CUfunction settled(uint64_t ns, unsigned forms, unsigned blocks)
{
	n = welcomed(1);
	set_spatial(false);
	agent.demand[1]->sms = 0;
	rewritten = in_forms(forms);
	rewritten.constants = constants;
	rewritten.n_constants = 1;
	CUfunction kernel = kernel_of(ns, &rewritten);
	assert_true(settles(n, kernel, blocks));
	somebody_waits(n); /* else nobody asks, and kernels do not look */
	usleep(30000);
	ops_of(n, kernel, blocks); /* may begin with a gate */
	ops_of(n, kernel, blocks);
	assert_true(is_form(&driver->ops[1]));
	return kernel;
}

/* Clients above say what they need: gates and kernels wait for demand for the whole GPU, and read
 * how many SMs they are to leave. */
static void waits_for_the_whole(void **state)
{
	CUfunction kernel = settled(2000000, 1u << WEIR_PERSISTENT, BLOCKS);
	const struct null_op *ops = driver->ops;

	(void)state;
	assert_int_equal(ops_of(n, kernel, BLOCKS), CHAIN);
	uint64_t word = hidden_of(&ops[1])->demand;
	assert_true(hidden_of(&ops[1])->room == 0);
	assert_int_equal(hidden_of(&ops[1])->dealt, AT_ONCE);
	assert_int_equal(hidden_of(&ops[3])->dealt, AT_ONCE);

	set_spatial(true);
	assert_int_equal(ops_of(n, kernel, BLOCKS), CHAIN); /* the last gate was for any demand */
	for (size_t i = 1; i < CHAIN; i += 2) {
		const struct weir_persistent *hidden = hidden_of(&ops[i]);
		bool last = i == CHAIN - 1;
		assert_true(hidden->demand ==
			    (last ? 0 : word + offsetof(struct weir_demand_page, whole)));
		assert_true(hidden->room ==
			    (last ? 0 : word + offsetof(struct weir_demand_page, sms)));
		assert_int_equal(hidden->quota, 0);
		assert_int_equal(hidden->across, 1);
		/* Continuations begin with the quota of the launch before. */
		assert_int_equal(hidden->dealt, i == 3 ? 0 : AT_ONCE);
		if (!last)
			assert_true(ops[i + 1].address == hidden->demand);
	}
	assert_int_equal(ops_of(n, kernel, BLOCKS), CHAIN); /* nor does the next one need a gate */
	gone(n);
}

/* Where many workers have many tickets each, one of them polls. Nobody asks the last continuation.
 */
static void many_workers_have_a_poller(void **state)
{
	static const struct {
		int occupancy;
		uint32_t blocks, poller;
	} cases[] = {
		{WEIR_POLLER_WORKERS / NULL_SMS, 60 * WEIR_POLLER_WORKERS + 1, 1},
		{WEIR_POLLER_WORKERS / NULL_SMS, 60 * WEIR_POLLER_WORKERS, 0}, /* come out even */
		{WEIR_POLLER_WORKERS / NULL_SMS - 1, 60 * WEIR_POLLER_WORKERS, 0},
	};

	(void)state;
	for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
		const uint32_t workers = (uint32_t)cases[k].occupancy * NULL_SMS;
		driver->occupancy = cases[k].occupancy;
		CUfunction kernel = settled(2000000, 1u << WEIR_PERSISTENT, cases[k].blocks);
		set_spatial(true);
		for (uint32_t sms = 0; sms <= 1; sms++) {
			agent.demand[1]->sms = sms;
			assert_int_equal(ops_of(n, kernel, cases[k].blocks), CHAIN);
			for (size_t i = 1; i < CHAIN; i += 2) {
				const struct weir_persistent *hidden = hidden_of(&driver->ops[i]);
				bool last = i == CHAIN - 1;
				uint32_t poller = last ? 0 : cases[k].poller;
				assert_int_equal(driver->ops[i].grid[0], workers);
				assert_int_equal(hidden->poller, poller);
				assert_int_equal(hidden->dealt,
						 i == 3 || (sms && !last) ? 0 : workers - poller);
			}
		}
		gone(n);
	}
	driver->occupancy = 0;
}

/* A launch that begins while others need some SMs leaves them from the beginning. */
static void begins_with_a_quota(void **state)
{
	CUfunction kernel = settled(2000000, 1u << WEIR_PERSISTENT, BLOCKS);
	static const uint32_t sms[] = {1, 20, UINT32_MAX};

	(void)state;
	set_spatial(true);
	for (size_t k = 0; k < 3; k++) {
		agent.demand[1]->sms = sms[k];
		ops_of(n, kernel, BLOCKS);
		assert_int_equal(hidden_of(&driver->ops[1])->quota, weir_quota(sms[k]));
		assert_int_equal(hidden_of(&driver->ops[1])->dealt, 0);
		assert_int_equal(hidden_of(&driver->ops[CHAIN - 1])->quota, 0);
		assert_int_equal(hidden_of(&driver->ops[CHAIN - 1])->dealt, AT_ONCE);
	}
	agent.demand[1]->sms = 0;
	ops_of(n, kernel, BLOCKS);
	assert_int_equal(hidden_of(&driver->ops[1])->quota, 0);
	assert_int_equal(hidden_of(&driver->ops[1])->dealt, AT_ONCE);
	gone(n);
}

/* A kernel that leaves no part of the SMs waits for any demand, also behind one that does. */
static void others_wait_for_any_demand(void **state)
{
	CUfunction kernel = settled(2000000, 1u << WEIR_PERSISTENT, BLOCKS);

	(void)state;
	uint64_t word = hidden_of(&driver->ops[1])->demand;
	set_spatial(true);
	ops_of(n, kernel, BLOCKS);
	driver->n_ops = 0;
	cuLaunchCooperativeKernel(kernel, 1, 1, 1, 64, 1, 1, 0, STREAM(n, 1), params);
	assert_int_equal(driver->n_ops, 2);
	assert_int_equal(driver->ops[0].kind, NULL_GATE);
	assert_true(driver->ops[0].address == word);
	gone(n);
}

/* Blocks of 2.5 ms end too late for a quota; a grid that fits as a whole needs all its workers. */
static void some_forms_leave_no_part(void **state)
{
	static const struct {
		uint64_t ns;
		unsigned blocks;
	} kernels[] = {{5000000, 2 * AT_ONCE}, {5000000, AT_ONCE}};

	(void)state;
	for (size_t k = 0; k < 2; k++) {
		CUfunction kernel = settled(kernels[k].ns, 1u << WEIR_RESUMABLE, kernels[k].blocks);
		uint64_t word = hidden_of(&driver->ops[1])->demand;
		assert_true(word);
		set_spatial(true);
		ops_of(n, kernel, kernels[k].blocks);
		assert_true(hidden_of(&driver->ops[1])->room == 0);
		assert_true(hidden_of(&driver->ops[1])->demand == word);
		gone(n);
	}
}

/* A client waits that says these bits in `places`; its own is the first. */
static void somebody_says(unsigned places)
{
	const struct waiters *waiters = waiters_of(client);

	agent.demand[1]->places = places;
	agent.demand[1]->word = 1;
	assert_true(eventually(atomic_load(&waiters->waiting) == WAITING_URGENT &&
			       atomic_load(&waiters->places) == (int)(places & 1)));
	agent.demand[1]->word = 0;
}

/* One more launch: where its first gate waits, and whether it is in a form. */
static bool launches_in_form(CUfunction kernel, unsigned blocks, uint64_t *gate)
{
	ops_of(n, kernel, blocks); /* its gate may be that of another kind of launch */
	size_t ops = ops_of(n, kernel, blocks);

	*gate = 0;
	for (size_t i = ops; i-- > 0;)
		if (driver->ops[i].kind == NULL_GATE)
			*gate = driver->ops[i].address;
	return in_form();
}

/* Blocks that end soon give places to short work above. No workers have to leave, so the native
 * kernel will do, unless the work above needs SMs of its own, or not all clients above say what
 * they need. */
static void short_work_above_gets_places(void **state)
{
	CUfunction kernel = settled(1000000, 1u << WEIR_PERSISTENT, MANY_BLOCKS);
	uint64_t word = hidden_of(&driver->ops[1])->demand, gate;
	uint64_t whole = word + offsetof(struct weir_demand_page, whole);

	(void)state;
	set_spatial(true);
	somebody_says(3);
	assert_false(launches_in_form(kernel, MANY_BLOCKS, &gate));
	assert_true(gate == whole);
	set_spatial(false);
	assert_true(launches_in_form(kernel, MANY_BLOCKS, &gate));
	assert_true(gate == word);
	set_spatial(true);
	somebody_says(2); /* another client's bit */
	assert_true(launches_in_form(kernel, MANY_BLOCKS, &gate));
	assert_true(gate == whole);
	assert_true(hidden_of(&driver->ops[1])->room || hidden_of(&driver->ops[0])->room);
	gone(n);
}

/* Blocks of 64 us come to an end too late. Short work is done before workers could have come back
 * to some SMs, so all of them leave. */
static void short_work_above_long_blocks_gets_all(void **state)
{
	CUfunction kernel = settled(2000000, 1u << WEIR_PERSISTENT, BLOCKS);
	uint64_t word = hidden_of(&driver->ops[1])->demand, gate;

	(void)state;
	set_spatial(true);
	somebody_says(1);
	assert_true(launches_in_form(kernel, BLOCKS, &gate));
	assert_true(gate == word);
	gone(n);
}

static void report(uint32_t evictions, uint32_t returns, uint32_t partial)
{
	struct preempt_slots *slots = atomic_load(&preempting_of(client)->slots);

	for (size_t i = 0; i < PREEMPT_SLOTS_MAX; i++) {
		struct preempt_slot *slot = &slots->slot[i];
		uint32_t last = atomic_load(&slot->last);
		if (last == atomic_load(&slot->seen))
			continue;
		atomic_store(&slot->reports[last % FLIGHTS_MAX].partial,
			     (uint64_t)returns << 32 | partial);
		atomic_store(&slot->reports[last % FLIGHTS_MAX].launch,
			     (uint64_t)(slot->evictions + evictions) << 32 | last);
		assert_true(eventually(atomic_load(&slot->seen) == last));
	}
}

/* A launch that left some SMs, and came back to them, was not evicted. */
static void partial_leaves_are_counted(void **state)
{
	CUfunction kernel = settled(2000000, 1u << WEIR_PERSISTENT, BLOCKS);
	const struct weir_status_page *status = agent.status;

	(void)state;
	set_spatial(true);
	uint64_t before = status->evictions;
	launch_call(n, kernel, BLOCKS);
	report(0, 0, 1); /* as it does to the end */
	assert_true(eventually(status->partial_leaves == 1));
	launch_call(n, kernel, BLOCKS);
	report(3, 2, 4);
	assert_true(eventually(status->partial_leaves == 4));
	assert_int_equal(status->evictions, before + 1);
	launch_call(n, kernel, BLOCKS);
	report(1, 0, 2); /* of an older launch: this one left nothing */
	assert_true(eventually(status->evictions == before + 2));
	launch_call(n, kernel, BLOCKS);
	report(1, 9, 5); /* half of a report */
	assert_true(eventually(status->evictions == before + 3));
	assert_int_equal(status->partial_leaves, 4);
	gone(n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(waits_for_the_whole),
		cmocka_unit_test(many_workers_have_a_poller),
		cmocka_unit_test(begins_with_a_quota),
		cmocka_unit_test(others_wait_for_any_demand),
		cmocka_unit_test(some_forms_leave_no_part),
		cmocka_unit_test(short_work_above_gets_places),
		cmocka_unit_test(short_work_above_long_blocks_gets_all),
		cmocka_unit_test(partial_leaves_are_counted),
	};

	driver_load();
	return cmocka_run_group_tests(tests, agent_begin, agent_finish);
}
