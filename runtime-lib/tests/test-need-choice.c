/* A client finds out which way of making room is the fastest for its kernels (gates/need-choice.h):
 * launches under the null driver, which says how long each takes. */
#include "gates/demand-pages.h"
#include "gates/need-choice.h"
#include "gates/priority.h"
#include "measure/kernel.h"

#include "needing.h"

#include <unistd.h>

#define OTHER ((CUfunction)(uintptr_t)0xa000)

/* ns that a launch takes, by the room that lower levels leave. */
struct times {
	unsigned apart, whole, third;
};

static bool is_whole(void)
{
	return agent.demand[0]->whole & OWN;
}

/* True: it asked for the whole GPU. */
static bool launch_timed(unsigned n, CUfunction kernel, const struct times *times)
{
	driver->streams_busy = 1;
	launch_of(kernel, n, 1, 2);
	bool whole = is_whole();
	driver->elapsed_ns = whole ? times->whole : times->apart;
	finish_work(n);
	assert_true(eventually(!atomic_load(&sampler_of(client)->armed)));
	return whole;
}

static bool is_tried(void)
{
	return atomic_load(&need_choices_of(client)->tried);
}

/* A busy machine takes longer for a way's launches than a client is patient. */
static void stay_patient(void)
{
	need_choices_of(client)->until = client_now() + 60 * NS_PER_S;
}

/* Launches that asked for the whole GPU, until the client has measured. */
static unsigned compare(unsigned n, CUfunction kernel, const struct times *times)
{
	unsigned wholes = 0, tries = 0;

	for (; !is_tried(); tries++) {
		launch_timed(n, kernel, times);
		assert_true(tries < 4000);
	}
	for (tries = 0; is_tried(); tries++) {
		stay_patient();
		wholes += launch_timed(n, kernel, times);
		assert_true(tries < 4000);
	}
	return wholes;
}

static unsigned begin_beside(uint32_t company)
{
	unsigned n = begin(NEEDED);

	atomic_store(&agent.control->company, company);
	return n;
}

static void end_beside(unsigned n)
{
	atomic_store(&agent.control->company, 0);
	end(n);
}

static void what_is_slow_on_some_sms_gets_all(void **state)
{
	static const struct times slow = {90000, 70000};
	unsigned n = begin_beside(7);

	(void)state;
	uint64_t begun = client_now();
	assert_false(launch_timed(n, OTHER, &slow));
	assert_true(compare(n, OTHER, &slow) >= NEED_TRIAL_SAMPLES);
	/* In both ways lower levels have time to get used to it. */
	assert_true(client_now() - begun > 2 * 80 * NS_PER_MS);
	for (unsigned i = 0; i < 8; i++)
		assert_true(launch_timed(n, OTHER, &slow));
	/* Beside others it may be another way. */
	atomic_store(&agent.control->company, 8);
	assert_false(launch_timed(n, OTHER, &slow));
	atomic_store(&agent.control->company, 7);
	assert_true(launch_timed(n, OTHER, &slow));
	/* Until the agent tells who works below, it is probably the same. */
	atomic_store(&agent.control->company, 0);
	assert_true(launch_timed(n, OTHER, &slow));
	end_beside(n);
}

static void what_is_as_fast_on_some_sms_does_with_them(void **state)
{
	static const struct times same = {76000, 70000};
	unsigned n = begin_beside(7);

	(void)state;
	assert_true(compare(n, OTHER, &same) >= NEED_TRIAL_SAMPLES);
	for (unsigned i = 0; i < 8; i++)
		assert_false(launch_timed(n, OTHER, &same));
	end_beside(n);
}

/* Returns for what it asked. It takes 20 us packed, else 30. */
static enum need_way launch_short(unsigned n)
{
	driver->streams_busy = 1;
	launch_of(OTHER, n, 1, 2);
	enum need_way way = sms_way(client);
	driver->elapsed_ns = way == NEED_PACKED ? 20000 : 30000;
	finish_work(n);
	assert_true(eventually(!atomic_load(&sampler_of(client)->armed)));
	return way;
}

static void short_work_that_is_faster_packed_is_packed(void **state)
{
	unsigned n = begin_beside(0), tries = 0;
	_Atomic unsigned *priorities = &launch_order_of(client)->priorities;

	(void)state;
	atomic_store(priorities, 5);
	while (launch_short(n) != NEED_PLACES) /* it is not known yet how short it is */
		assert_true(tries++ < 400);
	atomic_store(&agent.control->company, 7);
	for (tries = 0; !is_tried(); tries++) {
		launch_short(n);
		assert_true(tries < 4000);
	}
	for (tries = 0; is_tried(); tries++) {
		stay_patient();
		launch_short(n);
		assert_true(tries < 4000);
	}
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(launch_short(n), NEED_PACKED);
	atomic_store(priorities, 0);
	end_beside(n);
}

static void nothing_is_measured_while_nobody_is_below(void **state)
{
	static const struct times slow = {90000, 70000};
	unsigned n = begin_beside(0);

	(void)state;
	for (unsigned i = 0; i < 200; i++)
		assert_false(launch_timed(n, OTHER, &slow));
	assert_false(is_tried());
	end_beside(n);
}

/* Else a client would try the first way again and again, and never know. */
static void a_comparison_goes_on_after_a_pause_below(void **state)
{
	static const struct times slow = {90000, 70000};
	unsigned n = begin_beside(7);
	struct need_choices *choices = need_choices_of(client);

	(void)state;
	for (unsigned tries = 0; !atomic_load(&choices->measures); tries++) {
		launch_timed(n, OTHER, &slow);
		assert_true(tries < 4000);
	}
	atomic_store(&agent.control->company, 0);
	assert_true(eventually(!atomic_load(&choices->measures)));
	for (unsigned i = 0; i < 50; i++)
		launch_timed(n, OTHER, &slow);
	assert_true(is_tried());
	assert_false(atomic_load(&choices->measures));
	atomic_store(&agent.control->company, 7);
	assert_true(compare(n, OTHER, &slow) >= NEED_TRIAL_SAMPLES);
	assert_true(launch_timed(n, OTHER, &slow));
	end_beside(n);
}

/* Work that needs the whole GPU goes before each of its launches. */
static void what_other_work_hides_is_not_measured_for_long(void **state)
{
	unsigned n = begin_beside(7);

	(void)state;
	for (unsigned tries = 0; !is_tried(); tries++) {
		launch_timed(n, OTHER, &(struct times){90000, 70000});
		assert_true(tries < 4000);
	}
	need_choices_of(client)->until = 0; /* out of patience */
	assert_true(eventually(!is_tried()));
	need_choices_of(client)->next = 0;
	for (unsigned i = 0; i < 200; i++) {
		assert_false(launch_timed(n, OTHER, &(struct times){90000, 70000}));
		assert_false(is_tried());
	}
	end_beside(n);
}

/* What it asks for stays until its work ends. */
static void nothing_is_measured_while_the_work_never_ends(void **state)
{
	unsigned n = begin_beside(7);

	(void)state;
	driver->streams_busy = 1;
	usleep(150000);
	for (unsigned i = 0; i < 200; i++) {
		launch_of(OTHER, n, 1, 2);
		usleep(1000);
		assert_false(is_tried() || is_whole());
	}
	end_beside(n);
}

/* Requests of kernels of many blocks, which take so long with a part of the SMs, and with all.
 * Returns how many SMs it asks for in the end; 0: all. */
static uint32_t part_for(const struct times *times)
{
	unsigned n = begin_beside(7), tries = 0, since = 0;
	uint32_t sms = 0;

	for (; since < 4 && tries < 4000; tries++) {
		uint64_t begun = client_now();
		driver->streams_busy = 1;
		/* While the whole GPU is asked for, nobody looks at launches any more. */
		for (unsigned i = 0; i < 20; i++)
			launch_of(i % 4 == 1 ? KERNEL : OTHER, n, 1, i % 4 == 1 ? 3 : 4);
		sms = is_whole() ? 0 : agent.demand[0]->sms;
		bool stalled = client_now() - begun > NEED_PERIOD_MAX / 2; /* by this machine */
		usleep((!sms ? times->whole : sms == 1 ? times->third : times->apart) / 1000);
		finish_work(n);
		usleep(1000);
		since = is_tried() ? 1 : since && !stalled ? since + 1 : since;
	}
	assert_int_equal(since, 4);
	assert_true(is_clear(agent.demand[0]));
	if (sms) {
		driver->streams_busy = 1;
		launch_of(OTHER, n, 1, 4);
		launch(n, 1, 3); /* beside others it needs no more than these */
		assert_shown(0, sms);
		assert_true(eventually(is_whole())); /* it lasts: maybe blocks find no room */
		finish_work(n);
		assert_true(is_clear(agent.demand[0]));
	}
	end_beside(n);
	return sms;
}

/* Of 4 SMs. */
static void work_that_is_done_as_soon_on_a_part_of_the_sms_does_with_it(void **state)
{
	(void)state;
	assert_int_equal(part_for(&(struct times){1000000, 8000000, 8000000}), 2);
	assert_int_equal(part_for(&(struct times){8000000, 8000000, 1000000}), 1);
}

static void work_that_is_slower_on_a_part_gets_all(void **state)
{
	(void)state;
	assert_int_equal(part_for(&(struct times){8000000, 1000000, 8000000}), 0);
}

/* Its blocks wait for each other. */
static void a_cooperative_launch_needs_all(void **state)
{
	unsigned n = begin_beside(7);
	struct need_choices *choices = need_choices_of(client);

	(void)state;
	assert_int_equal(cuLaunchCooperativeKernel(OTHER, 4, 1, 1, 32, 1, 1, 0, STREAM(n, 1), NULL),
			 CUDA_SUCCESS);
	assert_true(is_whole());
	assert_int_equal(atomic_load(&choices->many), 0);
	finish_work(n);
	end_beside(n);
}

/* A launch may wait for lower levels to leave: its kernel is not longer for that. */
static void a_wait_for_lower_levels_is_not_the_kernels_time(void **state)
{
	static const struct times usual = {20000, 20000}, waits = {5000000, 5000000};
	unsigned n = begin(NEEDED);
	const struct geometry geometry = {OTHER, {2, 1, 1}, {32, 1, 1}, 0};
	const struct kernel_time *kernel = kernel_find(kernel_key(&geometry));

	(void)state;
	client->concurrent = true;
	atomic_store(&agent.control->below, 1);
	for (unsigned i = 0; i < 8; i++) {
		measure_next();
		launch_timed(n, OTHER, &usual);
	}
	for (unsigned i = 0; i < 4; i++) {
		measure_next();
		launch_timed(n, OTHER, &waits);
		assert_in_range(kernel_mean(kernel), 19000, 21000);
	}
	assert_null(atomic_load(&kernel->tuned));
	/* Nor is it measured more often: that would make each launch longer. */
	uint64_t samples = kernel->longer;
	for (unsigned i = 0; i < 4; i++)
		launch_timed(n, OTHER, &waits);
	assert_int_equal(kernel->longer, samples);
	atomic_store(&agent.control->below, 0);
	for (unsigned i = 0; i < 4; i++)
		launch_timed(n, OTHER, &waits);
	assert_true(kernel->longer != samples);
	end(n);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_slow_on_some_sms_gets_all),
		cmocka_unit_test(what_is_as_fast_on_some_sms_does_with_them),
		cmocka_unit_test(short_work_that_is_faster_packed_is_packed),
		cmocka_unit_test(nothing_is_measured_while_nobody_is_below),
		cmocka_unit_test(a_comparison_goes_on_after_a_pause_below),
		cmocka_unit_test(what_other_work_hides_is_not_measured_for_long),
		cmocka_unit_test(nothing_is_measured_while_the_work_never_ends),
		cmocka_unit_test(work_that_is_done_as_soon_on_a_part_of_the_sms_does_with_it),
		cmocka_unit_test(work_that_is_slower_on_a_part_gets_all),
		cmocka_unit_test(a_cooperative_launch_needs_all),
		cmocka_unit_test(a_wait_for_lower_levels_is_not_the_kernels_time),
	};

	driver_load();
	return cmocka_run_group_tests(tests, agent_begin, agent_finish);
}
