/* When the hardware stops clients that are held by hand, on a model of the GPU (gpu-model.h). */
#include "gpu-model.h"

#include "scheduler/preemption.h"

#define MOMENT 100000ull

static uint64_t told; /* what the server's process heard last */

static void hear(struct channels_client *server, uint64_t until)
{
	(void)server;
	told = until;
}

static struct channels_client server;

static int set_up(void **state)
{
	server = (struct channels_client){.n_groups = 1, .usable = true, .tell_stopped = hear};
	return model_set_up(state);
}

#define HOLD_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, world_tear_down)

static void come_with_channels(unsigned i, uint8_t level)
{
	come(i, level, 30);
	world.clients[i].channels.usable = true;
	change();
}

static void come_in_server(unsigned i)
{
	come(i, 1, 30);
	world.clients[i].first_level = 1;
}

/* Returns when it began. */
static uint64_t hold_by_hand(unsigned i)
{
	scheduler_hold(&world.scheduler, &world.clients[i], 500 * MS);
	return world.clients[i].preemption.hold_began;
}

static void release(unsigned i)
{
	scheduler_hold(&world.scheduler, &world.clients[i], 0);
}

static bool is_stopped(unsigned i)
{
	return world.clients[i].channels.stopped;
}

/* Sooner than one that is held for another one's turn. */
static void test_stops_soon(void **state)
{
	(void)state;
	come_with_channels(0, 1);
	work(0, 50 * MS);
	uint64_t began = hold_by_hand(0);
	assert_int_equal(world.scheduler.due, began + PREEMPTION_HOLD_BY_HAND_NS);
	look_after(PREEMPTION_HOLD_BY_HAND_NS - 1);
	assert_false(is_stopped(0));
	look_after(1);
	assert_true(is_stopped(0));
	assert_true(world.control[0].stopped_until > world.now);
	/* From then on it is looked at as often as others. */
	assert_in_range(look_after(MS), MOMENT, 50 * MS);
	release(0);
	assert_false(is_stopped(0));
	assert_int_equal(world.control[0].stopped_until, 0);
}

/* Also one that passes by all gates, and so never reports any work. */
static void test_an_idle_one_stands_in_time(void **state)
{
	(void)state;
	come_with_channels(0, 1);
	run(2000 * MS); /* looks are rare by now */
	hold_by_hand(0);
	run(2 * MS - MOMENT);
	assert_true(hardware.stands[0]);
	run(400 * MS);
	assert_true(hardware.stands[0]);
	run(110 * MS); /* the hold has ended */
	assert_false(hardware.stands[0]);
}

static void test_one_that_leaves_is_not_stopped(void **state)
{
	(void)state;
	come_with_channels(0, 1);
	work(0, MS);
	hold_by_hand(0);
	world.status[0].flags = WEIR_STATUS_DONE;
	for (unsigned i = 0; i < 20; i++) {
		look_after(MOMENT);
		assert_false(is_stopped(0));
		assert_true(preemption_due(&world.clients[0]) == POLICY_NEVER);
	}
	/* What it launches then has as long as the first kernel had. */
	world.status[0].flags = 0;
	look_after(MOMENT);
	assert_false(is_stopped(0));
	look_after(PREEMPTION_HOLD_BY_HAND_NS);
	assert_true(is_stopped(0));
}

static void test_released_before_the_stop(void **state)
{
	(void)state;
	come_with_channels(0, 1);
	work(0, 50 * MS);
	hold_by_hand(0);
	run(4 * MOMENT);
	release(0);
	assert_true(preemption_due(&world.clients[0]) == POLICY_NEVER);
	for (unsigned i = 0; i < 20; i++) {
		run(MOMENT);
		assert_false(is_stopped(0));
	}
	/* A hold that is shorter than what a client may go on. */
	scheduler_hold(&world.scheduler, &world.clients[0], 3 * MOMENT);
	run(MS);
	assert_false(is_stopped(0));
	assert_int_equal(world.control[0].stopped_until, 0);
}

/* After the agent's decision, before the driver has done it, and at any other time. */
static void test_released_amid_the_stop(void **state)
{
	(void)state;
	come_with_channels(0, 1);
	work(0, 50 * MS);
	for (unsigned held = 0; held < 20; held++) {
		hold_by_hand(0);
		run(held * MOMENT);
		release(0);
		assert_int_equal(world.control[0].hold, 0);
		run(MS);
		assert_false(hardware.stands[0]);
		uint64_t before = hardware.ran[0];
		run(MS);
		assert_int_equal(hardware.ran[0] - before, MS);
	}
}

/* What it was held for another one's turn counts: it could leave meanwhile. */
static void test_after_a_policys_hold(void **state)
{
	(void)state;
	scheduler_set_policy(&world.scheduler, policy_find("hpf"));
	come_with_channels(0, 1);
	come_with_channels(1, 1);
	work(0, 50 * MS);
	work(1, 5 * MS); /* the shortest one first */
	for (unsigned i = 0; i < 1000 && !world.control[0].hold; i++)
		look_after(MOMENT);
	assert_true(world.control[0].hold);
	look_after(MS);
	assert_false(is_stopped(0)); /* 3 ms */
	hold_by_hand(0);
	assert_true(is_stopped(0));
	assert_false(is_stopped(1));
}

static void test_without_the_hardware(void **state)
{
	(void)state;
	come_with_channels(0, 1);
	world.clients[0].channels.usable = false;
	work(0, 50 * MS);
	hold_by_hand(0);
	assert_true(preemption_due(&world.clients[0]) == POLICY_NEVER);
	assert_true(look_after(MS) >= MOMENT);
	assert_false(is_stopped(0));
	assert_true(world.control[0].hold);
	/* It gets there late. */
	world.clients[0].channels.usable = true;
	change();
	assert_true(is_stopped(0));
}

/* All clients of the level are in it. */
static void test_a_server(void **state)
{
	(void)state;
	come_in_server(0);
	come_in_server(1);
	come(2, 0, 30);
	preemption_set_server(&world.gpu, 1, &server);
	hold_by_hand(0);
	assert_true(preemption_due(&world.clients[0]) == POLICY_NEVER);
	look_after(4 * MS);
	assert_false(server.stopped); /* another client's kernels run in it */
	uint64_t began = hold_by_hand(1);
	assert_int_equal(world.scheduler.due, began + PREEMPTION_HOLD_BY_HAND_NS);
	look_after(PREEMPTION_HOLD_BY_HAND_NS - 1);
	assert_false(server.stopped);
	look_after(1);
	assert_true(server.stopped);
	assert_true(told > world.now);
	assert_true(look_after(MS) >= MOMENT);
	release(0);
	assert_false(server.stopped);
	assert_int_equal(told, 0);
	preemption_set_server(&world.gpu, 1, NULL);
}

/* Its kernels may still run in the server of the level that it came with. */
static void test_a_client_in_another_server(void **state)
{
	(void)state;
	come_in_server(0);
	come(1, 0, 30);
	world.clients[1].first_level = 1;
	preemption_set_server(&world.gpu, 1, &server);
	hold_by_hand(0);
	hold_by_hand(1);
	look_after(4 * MS);
	assert_false(server.stopped);
	preemption_set_server(&world.gpu, 1, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HOLD_TEST(test_stops_soon),
		HOLD_TEST(test_an_idle_one_stands_in_time),
		HOLD_TEST(test_one_that_leaves_is_not_stopped),
		HOLD_TEST(test_released_before_the_stop),
		HOLD_TEST(test_released_amid_the_stop),
		HOLD_TEST(test_after_a_policys_hold),
		HOLD_TEST(test_without_the_hardware),
		HOLD_TEST(test_a_server),
		HOLD_TEST(test_a_client_in_another_server),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
