/* A policy sees its clients, ticks when it wants, and its holds reach their pages. */
#include "../scheduler.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

/* Holds everybody but the last that came or changed, and ticks as often as it was told. */
struct turns {
	int ticks;
	struct policy_client *last;
};

static void take_turn(void *state, struct policy_view *view, struct policy_client *client,
		      uint64_t now)
{
	struct turns *turns = state;

	(void)now;
	if (turns->last && turns->last != client)
		view->hold(view, turns->last, true);
	view->hold(view, client, false);
	turns->last = client;
}

static void end_turn(void *state, struct policy_view *view, struct policy_client *client,
		     uint64_t now)
{
	struct turns *turns = state;

	(void)view, (void)now;
	if (turns->last == client)
		turns->last = NULL;
}

static uint64_t tick(void *state, struct policy_view *view, uint64_t now)
{
	struct turns *turns = state;

	(void)view;
	return ++turns->ticks < 3 ? now : POLICY_NEVER;
}

static const struct policy turns_policy = {
	.name = "turns",
	.holds = true,
	.state_size = sizeof(struct turns),
	.added = take_turn,
	.removed = end_turn,
	.changed = take_turn,
	.tick = tick,
};

static void test_holds(void **state)
{
	struct weir_control_page pages[2] = {0};
	struct gpu gpu = {0}, *gpus = NULL;
	struct client a = {.gpu = &gpu, .pages.control = &pages[0], .level = 1};
	struct client b = {.gpu = &gpu, .pages.control = &pages[1]};
	struct scheduler scheduler;
	struct loop loop;

	(void)state;
	HASH_ADD(hh, gpus, uuid, sizeof(gpu.uuid), &gpu);
	assert_int_equal(loop_init(&loop), 0);
	assert_int_equal(scheduler_init(&scheduler, &loop, &turns_policy, &gpus), 0);
	assert_int_equal(scheduler_add(&scheduler, &a), 0);
	assert_int_equal(a.policy.level, 1);
	assert_true(pages[0].flags & WEIR_CONTROL_HOLDABLE);
	assert_int_equal(pages[0].hold, 0);
	assert_int_equal(scheduler_add(&scheduler, &b), 0);
	assert_int_equal(pages[0].hold, 1);
	assert_int_equal(pages[1].hold, 0);
	a.level = 3;
	scheduler_change(&scheduler, &a);
	assert_int_equal(a.policy.level, 3);
	assert_int_equal(pages[0].hold, 0);
	assert_int_equal(pages[1].hold, 1);

	/* Three ticks are over; no timer is left. */
	const struct turns *turns = gpu.policy_state;
	assert_int_equal(turns->ticks, 3);
	assert_int_equal(loop_step(&loop, 5), 0);
	scheduler_remove(&scheduler, &a);
	assert_null(turns->last);
	scheduler_deinit(&scheduler);
	loop_deinit(&loop);
	HASH_CLEAR(hh, gpus);
	free(gpu.policy_state);
}

/* hpf by levels alone needs neither hold words nor time. */
static void test_hpf(void **state)
{
	struct weir_control_page page = {0};
	struct gpu gpu = {0}, *gpus = NULL;
	struct client client = {.gpu = &gpu, .pages.control = &page};
	struct scheduler scheduler;
	struct loop loop;

	(void)state;
	assert_non_null(policy_find("hpf"));
	assert_null(policy_find("best"));
	HASH_ADD(hh, gpus, uuid, sizeof(gpu.uuid), &gpu);
	assert_int_equal(loop_init(&loop), 0);
	assert_int_equal(scheduler_init(&scheduler, &loop, policy_find("hpf"), &gpus), 0);
	assert_int_equal(scheduler_add(&scheduler, &client), 0);
	assert_int_equal(page.flags, 0);
	assert_int_equal(page.hold, 0);
	assert_int_equal(loop_step(&loop, 5), 0);
	scheduler_remove(&scheduler, &client);
	scheduler_deinit(&scheduler);
	loop_deinit(&loop);
	HASH_CLEAR(hh, gpus);
	free(gpu.policy_state);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_holds),
		cmocka_unit_test(test_hpf),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
