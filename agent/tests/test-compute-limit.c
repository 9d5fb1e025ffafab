/* Compute limits and shares by slices in the scheduler, on a model of the GPU: the linker replaces
 * the measured time that a client's groups were not stopped. */
#include "gpu-model.h"

#include "hardware/slices.h"
#include "scheduler/first-turn.h"
#include "scheduler/looks.h"
#include "scheduler/preemption.h"
#include "scheduler/siblings.h"

#include <string.h>
#include <utlist.h>

#include "weir/base.h"

#define LIMIT_TEST(name) cmocka_unit_test_setup_teardown(name, model_set_up, world_tear_down)

#define POLICY_TEST(name)                                                                     \
	{                                                                                     \
		"test_policy " name, test_policy, model_set_up, world_tear_down, (void *)name \
	}

static void come_with(unsigned i, uint8_t level, uint32_t percent)
{
	come(i, level, 30);
	world.clients[i].channels.usable = true;
	world.clients[i].bit = (uint8_t)i;
	world.tenants[i].compute_limit = percent;
	world.status[i].level = level;
	change();
}

static void is_of_first_tenant(unsigned i)
{
	world.clients[i].tenant = &world.tenants[0];
	world.clients[i].entry.group = world.clients[0].entry.group;
	world.tenants[i].clients = NULL;
	world.clients[0].tenant_prev = &world.clients[0];
	DL_APPEND2(world.tenants[0].clients, &world.clients[i], tenant_prev, tenant_next);
	change();
}

/* No others want the GPU. */
static void test_alone(void **state)
{
	const uint32_t parts[] = {10, 30, 70};

	(void)state;
	come_with(0, 1, 0);
	work(0, 50 * MS);
	assert_true(look_after(0) == POLICY_NEVER - world.now); /* no limit: no timer */
	for (unsigned i = 0; i < 3; i++) {
		world.tenants[0].compute_limit = parts[i];
		change();
		run(SECOND);
		for (unsigned window = 0; window < 5; window++)
			assert_in_range(ms_of(0, SECOND), 10 * parts[i] - 10, 10 * parts[i] + 10);
	}
	const struct usage *usage = tenant_usage(&world.tenants[0], &world.gpu);
	assert_in_range(usage->limit.used / MS, 6 * 1100 - 60, 6 * 1100 + 120);
	assert_in_range(usage->limit.throttled / MS, 6 * 1900 - 400, 6 * 1900 + 60);
	/* It has no work: nothing needs to be looked at but new work. */
	work(0, 0);
	run(SECOND);
	assert_false(world.clients[0].channels.stopped);
	assert_true(world.control[0].flags & WEIR_CONTROL_TELL);
	/* The limit goes while it is stopped. */
	work(0, 50 * MS);
	while (!world.clients[0].channels.stopped)
		run(MS);
	assert_true(world.control[0].stopped_until > world.now);
	world.tenants[0].compute_limit = 0;
	change();
	assert_false(world.clients[0].channels.stopped);
	assert_int_equal(world.control[0].stopped_until, 0);
}

/* The GPU is shared: the limit is on its time, not on that in which the client may run. */
static void test_beside_another(void **state)
{
	(void)state;
	scheduler_set_policy(&world.scheduler, policy_find("levels"));
	come_with(0, 1, 30);
	come_with(1, 1, 0);
	work(0, 50 * MS);
	work(1, 50 * MS);
	run(SECOND);
	uint64_t other = hardware.ran[1];
	for (unsigned window = 0; window < 5; window++)
		assert_in_range(ms_of(0, SECOND), 285, 315);
	assert_in_range((hardware.ran[1] - other) / MS, 5 * 680, 5 * 720);
	/* One that does not say what it runs gets less of what it may have, not more. */
	hardware.silent[1] = true;
	run(SECOND);
	assert_in_range(ms_of(0, 2 * SECOND), 570, 630);
	hardware.silent[0] = true;
	run(SECOND);
	assert_in_range(ms_of(0, 2 * SECOND), 570, 1030);
}

/* Nobody is held for a client that is over its limit. */
static void test_policy(void **state)
{
	scheduler_set_policy(&world.scheduler, policy_find(*state));
	come_with(0, 1, 20);
	come_with(1, 1, 0);
	work(0, 50 * MS);
	work(1, 50 * MS);
	run(SECOND);
	uint64_t other = hardware.ran[1];
	assert_in_range(ms_of(0, 2 * SECOND), 370, 430);
	assert_in_range((hardware.ran[1] - other) / MS, 1540, 1640);
}

/* All of a container share its limit. */
static void test_two_processes(void **state)
{
	(void)state;
	come_with(0, 1, 40);
	come_with(1, 1, 0);
	/* The second one belongs to the first one's container. */
	is_of_first_tenant(1);
	work(0, 50 * MS);
	work(1, 50 * MS);
	run(SECOND);
	uint64_t other = hardware.ran[1], first = ms_of(0, SECOND);
	assert_in_range(first + (hardware.ran[1] - other) / MS, 390, 410);
}

/* While a client above is stopped for its limit, those below run. */
static void test_levels(void **state)
{
	(void)state;
	come_with(0, 2, 30);
	come_with(1, 0, 0);
	work(0, 50 * MS);
	work(1, 50 * MS);
	world.demand[0].word = world.demand[1].word = 1; /* the first one's */
	run(SECOND);
	uint64_t low = hardware.ran[1];
	assert_in_range(ms_of(0, SECOND), 290, 310);
	assert_in_range((hardware.ran[1] - low) / MS, 640, 710);
	while (!world.clients[0].channels.stopped)
		run(MS);
	assert_int_equal(world.demand[0].word, 0);
	while (world.clients[0].channels.stopped)
		run(MS);
	assert_int_equal(world.demand[0].word, 1);
	assert_int_equal(world.demand[1].word, 1);
	assert_int_equal(world.demand[2].word, 0);
	/* Its work ends while it is stopped: its demand does not come back. */
	while (!world.clients[0].channels.stopped)
		run(MS);
	work(0, 0);
	run(SECOND);
	assert_int_equal(world.demand[0].word, 0);
}

/* Gates do what they can. */
static void test_without_the_hardware(void **state)
{
	(void)state;
	come_with(0, 1, 30);
	world.clients[0].channels.usable = false;
	change();
	assert_true(world.control[0].flags & WEIR_CONTROL_HOLDABLE);
	work(0, 50 * MS);
	run(SECOND);
	assert_in_range(ms_of(0, SECOND), 280, 320);
	assert_false(world.clients[0].channels.stopped);
	const struct usage *usage = tenant_usage(&world.tenants[0], &world.gpu);
	assert_int_equal(usage->held, 0);
	assert_in_range(usage->limit.throttled / MS, 1300, 1500);
}

/* It is held by hand, over its limit, and both end. */
static void test_hold_and_limit(void **state)
{
	(void)state;
	come_with(0, 1, 50);
	work(0, 50 * MS);
	while (!world.clients[0].channels.stopped)
		run(MS);
	scheduler_hold(&world.scheduler, &world.clients[0], 500 * MS);
	run(490 * MS); /* some periods */
	assert_true(world.clients[0].channels.stopped);
	run(20 * MS);
	assert_false(world.clients[0].channels.stopped);
	run(LIMIT_PERIOD_NS); /* that one had time left */
	uint64_t before = hardware.ran[0];
	run(SECOND);
	assert_in_range((hardware.ran[0] - before) / MS, 490, 510);
}

static uint64_t slice_of(unsigned i)
{
	return world.clients[i].channels.slice;
}

/* Its requests are not interrupted while somebody who comes below makes a context. */
static void test_slices_of_one(void **state)
{
	(void)state;
	come_with(0, 2, 0);
	assert_int_equal(slice_of(0), SLICE_ALONE);
	come_with(1, 0, 0);
	assert_int_equal(slice_of(0), SLICE_ABOVE);
	go(0);
	assert_int_equal(slice_of(1), SLICE_DEFAULT); /* nobody comes below */
	go(1);
	/* Clients that leave each other turns are not alone. */
	come_with(2, 1, 0);
	come_with(3, 1, 0);
	assert_int_equal(slice_of(2), SLICE_DEFAULT);
}

/* wfq leaves its work to the hardware where it can. */
static void test_slices(void **state)
{
	(void)state;
	scheduler_set_policy(&world.scheduler, policy_find("wfq"));
	come_with(0, 1, 0);
	assert_false(world.gpu.sliced);
	come_with(1, 1, 0);
	assert_true(gpu_slices(&world.gpu, 1));
	work(0, 50 * MS);
	work(1, 50 * MS);
	assert_true(look_after(MS) > 100 * MS);
	assert_false(world.control[0].hold || world.control[1].hold);
	assert_false(world.control[0].flags & WEIR_CONTROL_HOLDABLE);
	assert_true(world.control[0].flags & WEIR_CONTROL_SLICED);
	assert_int_equal(world.clients[0].channels.slice, SLICE_SHARE + SLICE_RESTORE);
	/* Somebody is above: they take turns. */
	come_with(2, 2, 0);
	assert_false(world.gpu.sliced);
	assert_int_equal(world.clients[0].channels.slice, SLICE_BELOW);
	/* A tight objective is met while another one still leaves. */
	world.tenants[0].slo = OBJECTIVE_TIGHT - 1;
	change();
	assert_int_equal(world.clients[0].channels.slice, SLICE_BETWEEN);
	assert_int_equal(world.clients[1].channels.slice, SLICE_BELOW);
	assert_int_equal(world.clients[0].entry.lag, PREEMPTION_LAG_NS);
	world.tenants[0].slo++;
	change();
	assert_int_equal(world.clients[0].channels.slice, SLICE_BELOW);
	world.tenants[0].slo = 0;
	change();
	look_after(MS);
	assert_true(world.control[0].hold || world.control[1].hold);
	go(2);
	assert_true(world.gpu.sliced);
	look_after(MS);
	assert_false(world.control[0].hold || world.control[1].hold);
	/* One cannot. */
	world.clients[1].channels.usable = false;
	change();
	assert_false(world.gpu.sliced);
	world.clients[1].channels.usable = true;
	/* One has an objective, which slices do not know. */
	world.tenants[0].slo = 2 * MS;
	change();
	assert_false(world.gpu.sliced);
	scheduler_set_policy(&world.scheduler, policy_find("levels"));
	assert_true(world.gpu.sliced);
}

/* So does ffs, with slices for which switches cost no more than maxOverhead, whoever is there
 * without work. */
static void test_slices_of_ffs(void **state)
{
	const struct run_queue *queue = &world.gpu.queues.levels[1];

	(void)state;
	scheduler_set_policy(&world.scheduler, policy_find("ffs"));
	come_with(0, 1, 0);
	come_with(1, 1, 0);
	come_with(3, 1, 0);
	work(0, 50 * MS);
	work(1, 50 * MS);
	look_after(MS);
	assert_true(queue->sliced);
	assert_false(world.control[0].hold || world.control[1].hold);
	assert_false(world.control[0].flags &
		     WEIR_CONTROL_CONTENDED); /* though its launch is long */
	assert_int_equal(world.clients[0].channels.slice, 12000 + SLICE_RESTORE);
	world.gpu.queues.settings.max_overhead = 100000; /* millionths */
	preemption_set_slices(&world.gpu);
	assert_int_equal(world.clients[0].channels.slice, 3600 + SLICE_RESTORE);
	world.gpu.queues.settings.max_overhead = 30000;
	world.tenants[1].compute_limit = 30;
	preemption_set_slices(&world.gpu);
	assert_int_equal(world.clients[0].channels.slice, SLICE_SHARE + SLICE_RESTORE);
	world.tenants[1].compute_limit = 0;
	go(3);
	/* Below others its rounds are turns, and longer than without stops. */
	come_with(2, 2, 0);
	look_after(MS);
	assert_false(queue->sliced);
	assert_true(world.control[0].hold != world.control[1].hold);
	assert_true(world.control[0].flags & WEIR_CONTROL_CONTENDED);
	assert_int_equal(world.clients[0].channels.slice, SLICE_BELOW);
	assert_int_equal(queue->costs, 2 * (policy_defaults.cost + POLICY_STOP));
	world.clients[0].channels.usable = false;
	change();
	assert_int_equal(queue->costs, 2 * policy_defaults.cost + POLICY_STOP);
	work(0, 0);
	work(1, 0);
	look_after(MS);
	assert_int_equal(queue->costs, 0);
}

static bool room_is_made(unsigned i)
{
	return world.control[i].hold && !world.clients[i].channels.stopped;
}

/* Client 0 has a tight objective; 1 and 2 of its level have much work, and the turn is 1's. */
static void come_with_objective(void)
{
	scheduler_set_policy(&world.scheduler, policy_find("wfq"));
	come_with(0, 1, 0);
	come_with(1, 1, 0);
	come_with(2, 1, 0);
	come_with(3, 2, 0);
	world.tenants[0].slo = OBJECTIVE_TIGHT / 10;
	change();
	work(1, 50 * MS);
	look_after(MS);
	work(2, 50 * MS);
	look_after(MS);
}

/* A tight objective: clients of its level make room for short work without the driver's calls. */
static void test_short_requests(void **state)
{
	(void)state;
	come_with_objective();
	assert_false(world.control[1].hold);
	assert_true(world.clients[2].channels.stopped);
	hardware.stands[2] = true;
	work(0, SLICE_BETWEEN * NS_PER_US);
	look_after(MS / 10);
	assert_false(world.control[0].hold);
	assert_true(room_is_made(1));
	assert_true(world.clients[2].channels.stopped);
	work(0, 0);
	look_after(MS / 10);
	assert_false(world.control[1].hold);
	/* It is longer than predicted. */
	work(0, SLICE_BETWEEN * NS_PER_US);
	look_after(MS / 10);
	world.clients[1].preemption.hold_began = world.now; /* the agent's clock is behind */
	look_after(PREEMPTION_HOLD_NS - 1);
	assert_true(room_is_made(1));
	look_after(1);
	assert_true(world.clients[1].channels.stopped);
	work(0, 0);
	look_after(MS / 10);
	/* It is not short. */
	work(0, MS);
	look_after(MS / 10);
	assert_true(world.control[1].hold);
	assert_true(world.clients[1].channels.stopped);
	work(0, 0);
	look_after(MS / 10);
	assert_false(world.clients[1].channels.stopped);
}

/* While a tight objective is there, others' first kernels after a pause wait for the agent: of
 * those that come at once only one runs. The agent stops no client for it. */
static void test_first_turn(void **state)
{
	(void)state;
	come_with_objective();
	work(1, 0);
	work(2, 0);
	look_after(MS);
	assert_false(world.control[0].hold || world.control[1].hold || world.control[2].hold);
	look_after(FIRST_TURN_PAUSE_NS);
	look_after(LOOKS_FAST_NS);
	assert_false(world.control[0].hold); /* it has the objective */
	assert_false(world.control[3].hold); /* it is of another level */
	for (unsigned i = 1; i < 3; i++) {
		assert_true(world.control[i].hold);
		assert_true(world.control[i].hold_until > world.now + SCHEDULER_HOLD_NS / 2);
		assert_false(world.clients[i].channels.stopped || world.clients[i].entry.held);
	}
	work(1, 50 * MS);
	work(2, 50 * MS);
	look_after(LOOKS_FAST_NS);
	assert_true(world.control[1].hold != world.control[2].hold);
	/* It does not wait again before the next pause. */
	unsigned turn = world.control[1].hold ? 2 : 1;
	work(3 - turn, 0);
	look_after(MS);
	assert_false(world.control[3 - turn].hold);
	look_after(FIRST_TURN_PAUSE_NS);
	assert_true(world.control[3 - turn].hold);
	/* It has no reason to wait. */
	world.tenants[0].slo = 0;
	change();
	assert_false(world.control[3 - turn].hold);
	world.tenants[0].slo = OBJECTIVE_TIGHT / 10;
	change();
	look_after(MS);
	assert_true(world.control[3 - turn].hold);
	world.clients[3 - turn].channels.usable = false;
	look_after(MS);
	assert_false(world.control[3 - turn].hold);
}

/* It comes when a turn has just begun: the driver is asked for nothing meanwhile. */
static void test_short_request_between_turns(void **state)
{
	(void)state;
	come_with_objective();
	hardware.stands[2] = true;
	while (!world.control[1].hold)
		look_after(MS);
	world.clients[1].preemption.hold_began = world.now; /* the agent's clock is behind */
	assert_true(world.clients[1].channels.stopped);
	assert_false(world.clients[2].channels.stopped);
	work(0, SLICE_BETWEEN * NS_PER_US);
	look_after(MS / 10);
	look_after(LOOKS_FAST_NS);
	assert_true(room_is_made(1));
	assert_true(world.clients[2].channels.stopped);
	work(0, 0);
	look_after(MS / 10);
	look_after(LOOKS_FAST_NS);
	assert_true(world.clients[1].channels.stopped);
	assert_false(world.control[2].hold || world.clients[2].channels.stopped);
}

/* An objective that leaves time, of a client whose work fits into one slice: it begins at once, and
 * nobody is stopped for it. With more work the client waits its time. */
static void test_quick_requests(void **state)
{
	const uint64_t slice = SLICE_BETWEEN * NS_PER_US;

	(void)state;
	come_with_objective();
	world.tenants[0].slo = 2 * OBJECTIVE_TIGHT;
	change();
	hardware.stands[2] = true;
	work(0, slice);
	look_after(MS / 10);
	assert_true(world.control[0].hold); /* more may come */
	assert_int_equal(world.clients[0].channels.slice, SLICE_BELOW);
	work(0, 0);
	look_after(SCHEDULER_LONG_FOR);
	assert_int_equal(world.clients[0].channels.slice, SLICE_BETWEEN);
	unsigned turn = world.control[1].hold ? 2 : 1;
	hardware.stands[3 - turn] = true;
	hardware.stands[turn] = false;
	work(0, slice);
	look_after(MS / 10);
	assert_false(world.control[0].hold);
	assert_true(room_is_made(turn));
	work(0, 0);
	look_after(MS / 10);
	assert_false(world.control[turn].hold);
	work(0, slice + 1);
	look_after(MS / 10);
	assert_true(world.control[0].hold);
	assert_false(world.control[turn].hold);
	assert_int_equal(world.clients[0].channels.slice, SLICE_BELOW);
}

/* Two clients of one tenant are not held for each other. While both work below another one they
 * share by slices. One that works alone has a short slice, as one of another tenant has. */
static void test_slices_of_one_tenant(void **state)
{
	(void)state;
	scheduler_set_policy(&world.scheduler, policy_find("whpf"));
	come_with(0, 1, 0);
	come_with(1, 1, 0);
	come_with(2, 2, 0);
	come_with(3, 1, 0);
	is_of_first_tenant(1);
	work(0, 50 * MS);
	look_after(MS);
	assert_int_equal(world.clients[0].channels.slice, SLICE_BELOW);
	work(1, 50 * MS);
	look_after(MS);
	assert_int_equal(n_held(), 0);
	assert_int_equal(world.clients[0].channels.slice, SLICE_AMONG);
	assert_int_equal(world.clients[1].channels.slice, SLICE_AMONG);
	assert_int_equal(world.clients[2].channels.slice, SLICE_ABOVE);
	assert_int_equal(world.clients[3].channels.slice, SLICE_BELOW);
	/* They have work now and then. */
	work(1, 0);
	look_after(SIBLINGS_NS - 1);
	assert_int_equal(world.clients[0].channels.slice, SLICE_AMONG);
	look_after(1);
	assert_int_equal(world.clients[0].channels.slice, SLICE_BELOW);
	assert_int_equal(world.clients[1].channels.slice, SLICE_BELOW);
	/* Another tenant's client waits for a turn. */
	work(3, 50 * MS);
	look_after(MS);
	assert_int_equal(n_held(), 1);
	assert_int_equal(world.clients[0].channels.slice, SLICE_BELOW);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		LIMIT_TEST(test_alone),
		LIMIT_TEST(test_beside_another),
		POLICY_TEST("ffs"),
		POLICY_TEST("wfq"),
		POLICY_TEST("levels"),
		LIMIT_TEST(test_two_processes),
		LIMIT_TEST(test_levels),
		LIMIT_TEST(test_without_the_hardware),
		LIMIT_TEST(test_hold_and_limit),
		LIMIT_TEST(test_slices_of_one),
		LIMIT_TEST(test_slices),
		LIMIT_TEST(test_slices_of_ffs),
		LIMIT_TEST(test_slices_of_one_tenant),
		LIMIT_TEST(test_short_requests),
		LIMIT_TEST(test_quick_requests),
		LIMIT_TEST(test_first_turn),
		LIMIT_TEST(test_short_request_between_turns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
