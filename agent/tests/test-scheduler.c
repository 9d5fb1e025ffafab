/* The policy's decisions reach the clients' pages, and what pages report reaches the policy. */
#include "scheduler/contention.h"
#include "scheduler-world.h"

static void test_alone(void **state)
{
	(void)state;
	two_at_work(0, 1);
	assert_int_equal(n_held(), 0);
	assert_false(world.control[0].flags & WEIR_CONTROL_HOLDABLE);
	assert_int_equal(loop_step(&world.loop, 60), 0);
}

static void test_contention(void **state)
{
	(void)state;
	come(0, 1, 100);
	come(1, 1, 100);
	assert_true(world.control[0].flags & WEIR_CONTROL_HOLDABLE);
	assert_true(world.control[1].flags & WEIR_CONTROL_HOLDABLE);
	work(0, MS);
	look_after(MS);
	assert_int_equal(n_held(), 0);
	assert_false(world.control[0].flags & WEIR_CONTROL_CONTENDED); /* alone with its work */
	assert_true(world.control[1].flags & WEIR_CONTROL_CONTENDED);
	work(1, MS);
	look_after(MS);
	assert_true(world.control[0].flags & WEIR_CONTROL_CONTENDED);
	assert_int_equal(n_held(), 1);
	assert_true(world.control[1].hold);
	assert_true(world.control[1].hold_until > world.now);
	world.control[1].hold = 0; /* as a client does when the agent does not look for long */
	look_after(MS);
	assert_true(world.control[1].hold);
	work(0, 0);
	look_after(MS);
	assert_int_equal(n_held(), 0);
	work(0, MS);
	look_after(MS);
	assert_int_equal(n_held(), 1);
	go(0);
	look_after(MS);
	assert_int_equal(n_held(), 0);
	assert_false(world.control[1].flags & WEIR_CONTROL_HOLDABLE);
}

/* The agent's own timer, on the real clock. */
static void test_timer(void **state)
{
	(void)state;
	come(0, 1, 100);
	come(1, 1, 100);
	work(0, MS);
	work(1, MS);
	for (unsigned i = 0; i < 1000 && n_held() == 0; i++)
		assert_true(loop_step(&world.loop, 1000) >= 0);
	assert_int_equal(n_held(), 1);
}

/* A client without predictions is not taken for one that is nearly done. */
static void test_unpredicted(void **state)
{
	(void)state;
	come(0, 1, 100);
	come(1, 1, 100);
	scheduler_set_policy(&world.scheduler, &policy_hpf);
	world.now = loop_now();
	work(0, 5 * MS);
	look_after(MS);
	world.status[1].outstanding = 3;
	look_after(MS);
	assert_false(world.control[0].hold);
	assert_true(world.control[1].hold);
	world.status[1].remaining = MS;
	look_after(MS);
	assert_true(world.control[0].hold);
	assert_false(world.control[1].hold);
}

/* A client that is done is released, whichever client is current. Its next launch is held. */
static void test_a_client_that_is_done_passes(void **state)
{
	(void)state;
	come(0, 1, 100);
	come(1, 1, 100);
	scheduler_set_policy(&world.scheduler, &policy_wfq);
	world.now = loop_now();
	work(0, 100 * MS);
	look_after(MS);
	work(1, MS);
	look_after(MS);
	assert_true(world.control[1].hold);
	world.status[1].flags = WEIR_STATUS_DONE;
	look_after(MS);
	assert_int_equal(n_held(), 0);
	assert_int_equal(world.control[1].hold_until, 0);
	world.status[1].flags = 0;
	look_after(MS);
	assert_int_equal(n_held(), 1);
	assert_true(world.control[1].hold);
	assert_false(world.control[0].hold);
}

/* Forms that leave at once cost more, so only some policies want them. All policies that let a
 * client take over see its work soon. */
static void test_urgent(void **state)
{
	const struct {
		const char *policy;
		bool urgent, polls_fast;
	} cases[] = {{"hpf", true, true},
		     {"dynamic", false, true},
		     {"static", false, true},
		     {"ffs", false, false}};

	(void)state;
	come(0, 1, 50);
	come(1, 1, 50);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		scheduler_set_policy(&world.scheduler, policy_find(cases[i].policy));
		world.now = loop_now();
		work(0, 50 * MS);
		work(1, 60 * MS);
		look_after(MS);
		assert_int_equal(!!(world.control[0].flags & WEIR_CONTROL_URGENT), cases[i].urgent);
		assert_true(world.control[0].flags & WEIR_CONTROL_CONTENDED);
		assert_int_equal(!!(world.control[0].flags & WEIR_CONTROL_TELL),
				 cases[i].polls_fast);
		work(1, 0);
		assert_int_equal(look_after(MS) <= LOOKS_FAST_NS, cases[i].polls_fast);
	}
}

/* A client that reports new work is current at once, where it may take over. */
static void test_reported_work(void **state)
{
	const char *const policies[] = {"ffs", "hpf"};

	(void)state;
	come(0, 1, 50);
	come(1, 1, 50);
	for (unsigned hpf = 0; hpf < 2; hpf++) {
		work(0, 50 * MS);
		work(1, 0);
		scheduler_set_policy(&world.scheduler, policy_find(policies[hpf]));
		assert_int_equal(n_held(), 0);
		work(1, MS);
		scheduler_hear(&world.scheduler, &world.clients[1]);
		assert_int_equal(world.control[0].hold, hpf);
		assert_int_equal(world.control[1].hold, 0);
	}
}

static bool is_urgent(unsigned i)
{
	return world.control[i].flags & WEIR_CONTROL_URGENT;
}

/* An objective makes other tenants' kernels leave, never the client's own. */
static void test_urgent_for_others(void **state)
{
	(void)state;
	scheduler_set_policy(&world.scheduler, policy_find("wfq"));
	come(0, 1, 50);
	come(1, 1, 50);
	for (unsigned with = 0; with <= 2; with++) {
		if (with > 0)
			world.tenants[with - 1].slo = 2 * MS;
		scheduler_change(&world.scheduler, &world.gpu);
		world.now = loop_now();
		work(0, 50 * MS);
		work(1, 60 * MS);
		look_after(MS);
		assert_int_equal(is_urgent(0), with == 2);
		assert_int_equal(is_urgent(1), with >= 1);
	}
	world.tenants[1].slo = OBJECTIVE_TIGHT;
	scheduler_change(&world.scheduler, &world.gpu);
	look_after(MS);
	assert_false(is_urgent(0));
	assert_true(is_urgent(1));
}

/* The GPU is idle until the end of a run is seen. Where runs are short and many, that is soon. */
static void test_end_is_polled_for(void **state)
{
	(void)state;
	come(0, 1, 100);
	come(1, 1, 100);
	work(0, 3 * MS / 10);
	look_after(MS);
	work(1, 50 * MS);
	look_after(0);
	assert_int_equal(world.control[1].hold, 1);
	assert_true(look_after(3 * MS / 10 - 1000) > LOOKS_END_NS); /* no objective */
	world.tenants[0].slo = 10 * MS;
	scheduler_change(&world.scheduler, &world.gpu);
	world.now = loop_now();
	while (world.control[0].hold)
		look_after(MS);
	work(0, 3 * MS / 10 + 1); /* a new prediction */
	assert_true(look_after(0) <= 3 * MS / 10 + 1 - LOOKS_LATE_NS);
	assert_int_equal(world.control[0].hold, 0);
	assert_int_equal(look_after(3 * MS / 10 + 1 - LOOKS_LATE_NS), 1);
	assert_int_equal(look_after(LOOKS_SPIN_NS - 1), 1);
	assert_int_equal(look_after(1), LOOKS_END_NS); /* not for ever */
	assert_int_equal(look_after(LOOKS_END_NS), LOOKS_END_NS);
	work(1, 0); /* no client waits for it */
	assert_true(look_after(LOOKS_END_NS) > LOOKS_END_NS);
}

static void test_change_of_policy(void **state)
{
	const struct policy *const policies[] = {&policy_hpf, &policy_static, &policy_dynamic,
						 &policy_wfq, &policy_ffs};

	(void)state;
	come(0, 1, 100);
	come(1, 1, 100);
	work(0, MS);
	work(1, MS);
	for (unsigned i = 0; i < 5; i++) {
		scheduler_set_policy(&world.scheduler, policies[i]);
		world.now = loop_now();
		look_after(MS);
		assert_int_equal(n_held(), 1);
		assert_true(world.control[0].flags & WEIR_CONTROL_HOLDABLE);
		scheduler_set_policy(&world.scheduler, &policy_levels);
		world.now = loop_now();
		assert_int_equal(n_held(), 0);
		assert_false(world.control[0].flags & WEIR_CONTROL_HOLDABLE);
		look_after(MS);
		assert_int_equal(n_held(), 0);
	}
}

/* Each client that comes makes the agent configure its GPU again. */
static void test_commanded(void **state)
{
	struct scheduler *scheduler = &world.scheduler;

	(void)state;
	scheduler_configure(scheduler, &world.gpu, &policy_ffs, &policy_defaults);
	assert_ptr_equal(world.gpu.policy, &policy_ffs);
	scheduler_set_policy(scheduler, &policy_wfq);
	assert_ptr_equal(world.gpu.policy, &policy_wfq);
	come(0, 1, 50);
	scheduler_configure(scheduler, &world.gpu, &policy_ffs, &policy_defaults);
	come(1, 1, 50);
	assert_ptr_equal(world.gpu.policy, &policy_wfq);
	assert_ptr_equal(world.gpu.queues.policy, &policy_wfq);
	scheduler_take(scheduler, &policy_hpf, &policy_defaults);
	scheduler_configure(scheduler, &world.gpu, &policy_hpf, &policy_defaults);
	assert_ptr_equal(world.gpu.policy, &policy_hpf);
	assert_ptr_equal(world.gpu.queues.policy, &policy_hpf);
}

static void test_other_level(void **state)
{
	(void)state;
	two_at_work(1, 1);
	assert_int_equal(n_held(), 1);
	world.clients[1].level = 2;
	world.gpu.n_level[1]--;
	world.gpu.n_level[2]++;
	scheduler_change(&world.scheduler, &world.gpu);
	assert_int_equal(n_held(), 0);
	assert_int_equal(world.control[0].flags, 0);
}

static void test_by_hand(void **state)
{
	(void)state;
	come(0, 1, 100);
	work(0, MS);
	scheduler_hold(&world.scheduler, &world.clients[0], 10 * MS);
	world.now = loop_now();
	assert_true(world.control[0].hold);
	assert_true(world.control[0].flags & WEIR_CONTROL_HOLDABLE);
	assert_in_range(scheduler_hold_left(&world.clients[0], world.now), 9 * MS, 10 * MS);
	scheduler_hold(&world.scheduler, &world.clients[0], 0);
	assert_false(world.control[0].hold);
	assert_int_equal(scheduler_hold_left(&world.clients[0], world.now), 0);
	assert_int_equal(world.control[0].flags, 0);
	scheduler_hold(&world.scheduler, &world.clients[0], 10 * MS);
	world.now = loop_now();
	look_after(MS);
	assert_true(world.control[0].hold);
	look_after(10 * MS);
	assert_false(world.control[0].hold);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		WORLD_TEST(test_alone),
		WORLD_TEST(test_contention),
		WORLD_TEST(test_timer),
		WORLD_TEST(test_other_level),
		WORLD_TEST(test_change_of_policy),
		WORLD_TEST(test_commanded),
		WORLD_TEST(test_by_hand),
		WORLD_TEST(test_unpredicted),
		WORLD_TEST(test_a_client_that_is_done_passes),
		WORLD_TEST(test_urgent),
		WORLD_TEST(test_urgent_for_others),
		WORLD_TEST(test_reported_work),
		WORLD_TEST(test_end_is_polled_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
