/* Which SMs a client with demand needs, and who may leave it only those, on one GPU. */
#include "gpu-fixture.h"

#include <string.h>

#include "policy/yield.h"
#include "scheduler/gpu/demand-words.h"
#include "scheduler/sms.h"
#include "scheduler/tenants.h"
#include "scheduler/yields.h"

#include "weir/base.h"

static void test_dead_client_needs_no_sms(void **state)
{
	(void)state;
	uint8_t a = add(0, 3, WEIR_BIT_NONE), b = add(1, 2, WEIR_BIT_NONE);
	set_words(1ull << a | 1ull << b);
	statuses[0].outstanding = statuses[1].outstanding = 1;
	statuses[0].level = 3;
	statuses[1].level = 2;
	statuses[0].demand_sms = 20;
	statuses[1].demand_sms = 12;
	for (int level = 0; level < 3; level++)
		atomic_store(&page(level)->sms, 32);
	gpu_remove(&gpu, &clients[0], false);
	assert_true(page(0)->sms == 32); /* it may have been about to take its part away */
	gpu_sweep(&gpu, loop_now());
	assert_true(page(0)->sms == 12 && page(1)->sms == 12 && page(2)->sms == 0);
	/* Only the bits that are not in `whole` count. */
	atomic_store(&page(0)->whole, 1ull << b);
	gpu_sweep(&gpu, loop_now());
	gpu_sweep(&gpu, loop_now());
	assert_true(page(0)->sms == 0 && page(1)->sms == 12);
}

/* A sum that grows between two looks is left alone. */
static void test_changing_sms_are_kept(void **state)
{
	(void)state;
	uint8_t a = add(0, 3, WEIR_BIT_NONE);
	set_words(1ull << a);
	statuses[0].outstanding = 1;
	statuses[0].level = 3;
	for (uint32_t n = 1; n < 10; n++) {
		statuses[0].demand_sms = n; /* and not added yet */
		gpu_sweep(&gpu, loop_now());
		assert_true(page(0)->sms == n - 1);
		atomic_store(&page(0)->sms, n);
		gpu_sweep(&gpu, loop_now());
		assert_true(page(0)->sms == n);
	}
}

/* The part of a paused client stays in the sum, and it comes back as one that needs a part. */
static void test_paused_client_keeps_its_part(void **state)
{
	(void)state;
	uint64_t a = 1ull << add(0, 3, WEIR_BIT_NONE), b = 1ull << add(1, 3, WEIR_BIT_NONE);
	set_words(a | b);
	atomic_store(&page(0)->whole, b);
	atomic_store(&page(0)->sms, 9);
	statuses[0].outstanding = statuses[1].outstanding = 1;
	statuses[0].level = statuses[1].level = 3;
	statuses[0].demand_sms = 9;
	demand_words_pause(&gpu, &clients[0], true);
	demand_words_pause(&gpu, &clients[1], true);
	assert_true(word(0) == 0 && page(0)->whole == 0);
	gpu_sweep(&gpu, loop_now());
	gpu_sweep(&gpu, loop_now());
	assert_true(page(0)->sms == 9);
	demand_words_pause(&gpu, &clients[0], false);
	demand_words_pause(&gpu, &clients[1], false);
	assert_true(word(0) == (a | b) && page(0)->whole == b);
}

/* Of a client under MPS. */
static void add_concurrent(int i, uint8_t level, uint32_t yield)
{
	clients[i].yield = yield;
	statuses[i].level = level;
	statuses[i].flags = WEIR_STATUS_CONCURRENT;
	statuses[i].gpu_sms = 132;
	add(i, level, WEIR_BIT_NONE);
}

static bool is_spatial(int i)
{
	return controls[i].flags & WEIR_CONTROL_SPATIAL;
}

static void test_who_may_rely_on_whole(void **state)
{
	struct channels_client server;

	(void)state;
	add_concurrent(0, 0, 0);
	add_concurrent(1, 1, 0);
	assert_false(is_spatial(0)); /* nobody above yields less than the whole GPU */
	add_concurrent(2, 2, 1);
	assert_true(is_spatial(0) && is_spatial(1));
	assert_false(is_spatial(2)); /* nobody is above it */

	/* Before a client of an older libweir can show demand. */
	clients[3].says_whole = false;
	add_concurrent(3, 3, 0);
	assert_false(is_spatial(0) || is_spatial(1) || is_spatial(2));
	gpu_remove(&gpu, &clients[3], false);
	assert_true(is_spatial(0) && is_spatial(1));
	/* One of which it is known at once takes nothing away. */
	clients[4].comes_concurrent = true;
	add(4, 3, WEIR_BIT_NONE);
	assert_true(is_spatial(0) && is_spatial(1));
	gpu_remove(&gpu, &clients[4], false);
	gpu_set_level(&gpu, &clients[1], 3); /* it is above the others */
	assert_true(is_spatial(0));
	assert_false(is_spatial(1) || is_spatial(2));

	/* Where it counts: time-sliced, or with a server of another level. */
	statuses[2].flags = 0;
	gpu_set_level(&gpu, &clients[1], 1);
	assert_false(is_spatial(0) || is_spatial(1));
	statuses[2].flags = statuses[1].flags = WEIR_STATUS_CONCURRENT;
	statuses[0].flags = 0;
	gpu_set_level(&gpu, &clients[1], 0);
	assert_false(is_spatial(0));
	assert_true(is_spatial(1));
	gpu.servers[2] = &server;
	gpu_set_level(&gpu, &clients[1], 1);
	assert_false(is_spatial(0) || is_spatial(1));
	gpu.servers[2] = NULL;

	/* A client may come back after a restart, with any libweir. */
	gpu.reserved = 1 << 20;
	gpu_set_level(&gpu, &clients[1], 0);
	assert_false(is_spatial(1));
	gpu.reserved = 0;
	gpu_set_level(&gpu, &clients[1], 1);
	assert_true(is_spatial(1));
	clients[2].yield = 0;
	gpu_set_level(&gpu, &clients[1], 0);
	assert_false(is_spatial(1));
}

static uint32_t company_after(uint64_t *now, unsigned looks)
{
	while (looks--) {
		*now += YIELDS_BELOW_NS;
		yields_look(&gpu, *now);
	}
	return controls[2].company;
}

/* What is the fastest for a client depends on whose kernels run beside its own. */
static void test_clients_know_who_works_below(void **state)
{
	uint64_t now = loop_now();

	(void)state;
	for (int i = 0; i < 4; i++)
		clients[i].number = 11 + (uint64_t)i;
	add_concurrent(0, 0, 0);
	add_concurrent(1, 1, 0);
	add_concurrent(2, 2, YIELD_NEEDED);
	add_concurrent(3, 3, 0);
	assert_int_equal(company_after(&now, 1), 0);
	statuses[0].outstanding = statuses[3].outstanding = 1;
	uint32_t first = company_after(&now, 1);
	assert_true(first);
	statuses[1].outstanding = 1;
	uint32_t both = company_after(&now, 1);
	assert_true(both && both != first);
	assert_true(!controls[0].company && !controls[1].company);
	assert_int_equal(controls[3].company, 0); /* it needs the whole GPU anyway */
	/* A pause is no departure. */
	statuses[1].outstanding = 0;
	assert_int_equal(company_after(&now, 1), both);
	assert_int_equal(company_after(&now, YIELDS_WORKED), first);
	statuses[0].flags = 0; /* time-sliced */
	assert_int_equal(company_after(&now, 1), 0);
	statuses[0].flags = WEIR_STATUS_CONCURRENT;
	assert_int_equal(company_after(&now, 1), first);
	clients[2].yield = WEIR_YIELD_NUMBER + 4; /* nothing is compared */
	assert_int_equal(company_after(&now, 1), 0);
	clients[2].yield = YIELD_NEEDED;
	assert_int_equal(company_after(&now, 1), first);
	clients[2].yield = 0;
	assert_int_equal(company_after(&now, 1), 0);
}

/* To leave a part of the GPU costs those below something: only while somebody asks for it. */
static void test_those_that_find_out_ask_when_they_need_it(void **state)
{
	uint64_t now = loop_now();

	(void)state;
	add_concurrent(0, 0, 0);
	add_concurrent(2, 2, YIELD_AUTO);
	statuses[0].outstanding = 1;
	assert_true(company_after(&now, 1));
	assert_false(is_spatial(0));
	statuses[2].yield_asks = 1;
	company_after(&now, 1);
	assert_true(is_spatial(0));
	statuses[2].yield_asks = 0;
	company_after(&now, 1);
	assert_false(is_spatial(0));
	clients[2].yield = 0;
}

/* The agent says `whole` for a libweir that does not. */
static void test_older_clients_need_all(void **state)
{
	(void)state;
	add_concurrent(0, 0, 0);
	add_concurrent(1, 2, 1);
	clients[2].says_whole = false;
	uint64_t older = 1ull << add(2, 2, WEIR_BIT_NONE), newer = 1ull << clients[1].bit;
	set_words(older | newer);
	gpu_sweep(&gpu, loop_now());
	assert_true(page(0)->whole == older && page(1)->whole == older && page(2)->whole == 0);
	set_words(newer);
	gpu_sweep(&gpu, loop_now());
	assert_true(page(0)->whole == 0 && page(1)->whole == 0);
}

static void test_sms_for_people(void **state)
{
	(void)state;
	add_concurrent(0, 0, 0);
	add_concurrent(1, 2, 1);
	assert_int_equal(sms_needed(&clients[1]), 0);
	assert_int_equal(sms_left(&clients[0]), 132);
	statuses[1].outstanding = 1;
	statuses[1].demand_sms = 12;
	page(0)->word = page(1)->word = 1ull << clients[1].bit;
	page(0)->sms = 12;
	assert_int_equal(sms_needed(&clients[1]), 12);
	assert_int_equal(sms_left(&clients[1]), 132);
	assert_int_equal(sms_left(&clients[0]), 120);
	page(0)->sms = 1000; /* hostile */
	assert_int_equal(sms_left(&clients[0]), 0);
	statuses[1].demand_sms = 1000;
	assert_int_equal(sms_needed(&clients[1]), 132);
	page(0)->sms = statuses[1].demand_sms = 0;
	page(0)->whole = 1ull << clients[1].bit;
	assert_int_equal(sms_needed(&clients[1]), 132);
	assert_int_equal(sms_left(&clients[0]), 0);
	page(0)->whole = 0;
	controls[0].flags &= ~(unsigned)WEIR_CONTROL_SPATIAL;
	assert_int_equal(sms_left(&clients[0]), 0); /* it waits for any demand */
	controls[0].flags |= WEIR_CONTROL_SPATIAL;
	statuses[0].given_sms = 106;
	page(0)->sms = 20;
	assert_int_equal(sms_given(&clients[0]), 106);
	assert_int_equal(sms_left(&clients[0]), 106);
	page(0)->sms = 30;
	assert_int_equal(sms_left(&clients[0]), 102);
	statuses[0].given_sms = 1000; /* hostile */
	assert_int_equal(sms_given(&clients[0]), 132);
	statuses[0].given_sms = 0;
	page(0)->sms = 0;
	assert_int_equal(sms_given(&clients[0]), 132);
	statuses[0].flags = 0;
	assert_true(sms_given(&clients[0]) == SMS_UNKNOWN);
	assert_true(sms_left(&clients[0]) == SMS_UNKNOWN);
	statuses[1].gpu_sms = 0; /* an older library */
	assert_true(sms_needed(&clients[1]) == SMS_UNKNOWN);
}

/* A client that has not come back yet cannot say what it has added. */
static void test_sums_outlive_a_restart(void **state)
{
	(void)state;
	add(0, 3, WEIR_BIT_NONE);
	gpu.reserved = 1 << 9;
	gpu.reserved_until = UINT64_MAX;
	page(0)->sms = 5;
	for (int i = 0; i < 3; i++)
		gpu_sweep(&gpu, loop_now());
	assert_int_equal(page(0)->sms, 5);
	gpu.reserved = 0;
	for (int i = 0; i < 3; i++)
		gpu_sweep(&gpu, loop_now());
	assert_int_equal(page(0)->sms, 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		GPU_TEST(test_dead_client_needs_no_sms),
		GPU_TEST(test_changing_sms_are_kept),
		GPU_TEST(test_paused_client_keeps_its_part),
		GPU_TEST(test_who_may_rely_on_whole),
		GPU_TEST(test_clients_know_who_works_below),
		GPU_TEST(test_those_that_find_out_ask_when_they_need_it),
		GPU_TEST(test_older_clients_need_all),
		GPU_TEST(test_sms_for_people),
		GPU_TEST(test_sums_outlive_a_restart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
