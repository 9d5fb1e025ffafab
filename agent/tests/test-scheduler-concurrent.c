/* Same-level clients under MPS, whose kernels run at the same time. */
#include "scheduler/contention.h"
#include "scheduler-world.h"

static void launch(unsigned i, uint64_t launches, uint64_t each)
{
	world.status[i].outstanding = launches;
	world.status[i].remaining = launches * each;
}

static void come_under_mps(unsigned i)
{
	world.status[i].flags = WEIR_STATUS_CONCURRENT;
	come(i, 1, 100);
}

static void two_run_together(void)
{
	come_under_mps(0);
	come_under_mps(1);
	scheduler_set_policy(&world.scheduler, &policy_hpf);
	world.now = loop_now();
	launch(0, 100, MS / 20);
	launch(1, 200, MS / 20);
	look_after(MS);
	assert_int_equal(n_held(), 0);
}

/* Under MPS `hpf` holds a client with long kernels while another has less left, and tells it to
 * expect that. All others run concurrently. */
static void test_concurrent(void **state)
{
	const uint32_t told = WEIR_CONTROL_CONTENDED | WEIR_CONTROL_URGENT;

	(void)state;
	two_run_together();
	assert_true(world.control[0].flags & WEIR_CONTROL_HOLDABLE);
	assert_false((world.control[0].flags | world.control[1].flags) & told);
	assert_int_equal(world.control[0].beside, 0);
	world.control[0].above = world.control[1].above = 1;
	look_after(MS);
	assert_int_equal(world.control[0].beside, 2);
	assert_int_equal(world.control[1].beside, 2);
	launch(1, 1, 10 * MS);
	look_after(MS);
	assert_int_equal(world.control[0].beside, 1);
	assert_int_equal(n_held(), 1);
	assert_true(world.control[1].hold);
	assert_int_equal(world.control[1].flags & told, told);
	assert_false(world.control[0].flags & told);
	launch(0, 200, MS / 20); /* about as much as the other has */
	look_after(MS);
	assert_int_equal(n_held(), 0);
	launch(1, 0, 0);
	look_after(MS);
	assert_int_equal(world.control[1].flags & told, told); /* its next launch may be as long */
	look_after(SCHEDULER_LONG_FOR);
	assert_false(world.control[1].flags & told);
}

static bool goes_ahead(void)
{
	look_after(MS);
	assert_int_equal(world.control[0].flags & WEIR_CONTROL_AHEAD,
			 world.control[1].flags & WEIR_CONTROL_AHEAD);
	return world.control[0].flags & WEIR_CONTROL_AHEAD;
}

/* Short launches go ahead only where all clients are concurrent and can order their launches. */
static void test_ahead(void **state)
{
	const uint32_t all = WEIR_STATUS_CONCURRENT | WEIR_STATUS_ORDERED;

	(void)state;
	come_under_mps(0);
	world.status[0].flags = world.status[1].flags = all;
	scheduler_set_policy(&world.scheduler, &policy_hpf);
	world.now = loop_now();
	assert_false(goes_ahead()); /* of one client */
	come(1, 1, 100);
	assert_true(goes_ahead());
	world.status[1].flags = WEIR_STATUS_ORDERED;
	assert_false(goes_ahead());
	world.status[1].flags = WEIR_STATUS_CONCURRENT;
	assert_false(goes_ahead());
	world.status[1].flags = all;
	assert_true(goes_ahead());
	come(2, 2, 100); /* other levels do not matter; it is alone on its own */
	assert_true(goes_ahead());
	assert_false(world.control[2].flags & WEIR_CONTROL_AHEAD);
	scheduler_set_policy(&world.scheduler, &policy_wfq);
	assert_false(goes_ahead());
}

/* A client with work makes progress, whichever clients are ahead of it. */
static void test_no_client_is_ahead_for_ever(void **state)
{
	(void)state;
	come_under_mps(0);
	come_under_mps(1);
	world.status[0].flags = world.status[1].flags =
		WEIR_STATUS_CONCURRENT | WEIR_STATUS_ORDERED;
	scheduler_set_policy(&world.scheduler, &policy_hpf);
	world.now = loop_now();
	launch(0, 100, MS / 20);
	launch(1, 1, MS / 20);
	world.status[0].executed = world.status[1].executed = MS;
	assert_true(goes_ahead());
	for (uint64_t waited = 0; waited < POLICY_AGING - 2 * MS; waited += MS) {
		world.status[0].executed += MS;
		assert_true(goes_ahead());
	}
	for (int i = 0; i < 3; i++) {
		world.status[0].executed += MS;
		look_after(MS);
	}
	assert_false(goes_ahead());
	world.status[1].executed += 5 * MS;
	assert_true(goes_ahead());
	launch(0, 0, 0);
	launch(1, 0, 0);
	for (uint64_t idle = 0; idle < 2 * POLICY_AGING; idle += MS)
		assert_true(goes_ahead());

	/* Nor of a client that is current for its age, whatever it reports. */
	bool ahead = true;
	launch(0, 100, MS / 20);
	launch(1, 1, 20 * MS);
	for (uint64_t waited = 0; waited < 2 * POLICY_AGING && ahead; waited += MS) {
		world.status[0].executed += MS;
		world.status[1].executed += MS;
		ahead = goes_ahead();
	}
	assert_false(ahead);
	assert_true(world.control[0].hold);
}

/* No client of a level is concurrent if one is time-sliced, or has an objective. */
static void test_not_concurrent(void **state)
{
	(void)state;
	two_run_together();
	world.status[0].flags = 0;
	look_after(MS);
	assert_int_equal(n_held(), 1);
	world.status[0].flags = WEIR_STATUS_CONCURRENT;
	look_after(MS);
	assert_int_equal(n_held(), 0);
	world.tenants[1].slo = 2 * MS;
	scheduler_change(&world.scheduler, &world.gpu);
	world.now = loop_now();
	look_after(MS);
	assert_int_equal(n_held(), 1);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		WORLD_TEST(test_concurrent),
		WORLD_TEST(test_ahead),
		WORLD_TEST(test_no_client_is_ahead_for_ever),
		WORLD_TEST(test_not_concurrent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
