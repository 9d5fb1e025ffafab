/* What demand writes into the pages of lower levels: bits, and the SMs that the work needs. */
#include "gates/demand-pages.h"
#include "gates/need-choice.h"

#include "needing.h"

static void without_a_word_all_is_needed(void **state)
{
	unsigned n = begin(0);

	(void)state;
	assert_true(agent.hello.flags & WEIR_HELLO_SAYS_WHOLE);
	launch(n, 1, 1);
	assert_shown(OWN, 0);
	end(n);
}

static void a_launch_needs_an_sm_for_each_block(void **state)
{
	static const struct {
		uint32_t yield;
		unsigned blocks;
		uint32_t sms; /* 0: the whole GPU */
	} cases[] = {
		{NEEDED, 1, 1},
		{NEEDED, 2, 2},
		{NEEDED, 3, 3},
		{NEEDED, 4, 0}, /* above 3/4 */
		{NEEDED, 0x7fffffff, 0},
		{NEEDED + 25, 1, 2}, /* rounded up */
		{NEEDED + 50, 2, 3},
		{NEEDED + 100, 1, 2},
		{NEEDED + 100, 2, 0},
		{NEEDED + 101, 1, 0}, /* no such value */
		{WEIR_YIELD_NUMBER, 1, 0},
		{WEIR_YIELD_NUMBER + 1, 2, 1},
		{WEIR_YIELD_NUMBER + 3, 2, 3},
		{WEIR_YIELD_NUMBER + 4, 2, 0},
		{WEIR_YIELD_NUMBER + 2, 4, 0}, /* not few */
		{WEIR_YIELD_NUMBER + 10000, 1, 0},
		{UINT32_MAX, 1, 0},
	};
	unsigned n = begin(NEEDED);

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		atomic_store(&agent.control->yield, cases[i].yield);
		driver->streams_busy = 1;
		launch(n, 1, cases[i].blocks);
		assert_shown(cases[i].sms ? 0 : OWN, cases[i].sms);
		finish_work(n);
	}
	end(n);
}

static void the_need_grows_until_the_work_ends(void **state)
{
	unsigned n = begin(NEEDED);

	(void)state;
	launch(n, 1, 1);
	assert_shown(0, 1);
	launch(n, 1, 3);
	assert_shown(0, 3);
	launch(n, 1, 1);
	assert_shown(0, 3);
	launch(n, 1, 4);
	assert_shown(OWN, 0);
	launch(n, 1, 1);
	assert_shown(OWN, 0);
	finish_work(n);
	driver->streams_busy = 1;
	launch(n, 1, 1);
	assert_shown(0, 1);
	end(n);
}

static void two_streams_need_all(void **state)
{
	unsigned n = begin(NEEDED);

	(void)state;
	launch(n, 1, 1);
	assert_shown(0, 1);
	launch(n, 2, 1);
	assert_shown(OWN, 0);
	finish_work(n);
	/* One after the other. */
	driver->streams_busy = 1;
	launch(n, 2, 1);
	assert_shown(0, 1);
	end(n);
}

static void launches_that_cannot_be_counted_need_all(void **state)
{
	CUlaunchAttribute overlap = {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
				     .value.programmaticStreamSerializationAllowed = 1};
	unsigned n = begin(NEEDED);
	CUlaunchConfig config = {1, 1, 1, 32, 1, 1, 0, STREAM(n, 1), &overlap, 1};

	(void)state;
	assert_int_equal(
		cuLaunchCooperativeKernel(KERNEL, 1, 1, 1, 32, 1, 1, 0, STREAM(n, 1), NULL),
		CUDA_SUCCESS);
	assert_shown(OWN, 0);
	finish_work(n);
	driver->streams_busy = 1;
	assert_int_equal(cuGraphLaunch((CUgraphExec)(uintptr_t)0x77, STREAM(n, 1)), CUDA_SUCCESS);
	assert_shown(OWN, 0);
	finish_work(n);
	driver->streams_busy = 1;
	assert_int_equal(cuLaunchKernelEx(&config, KERNEL, NULL, NULL), CUDA_SUCCESS);
	assert_shown(OWN, 0);
	finish_work(n);
	driver->streams_busy = 1;
	/* More blocks than 64 bits can count. */
	cuLaunchKernel(KERNEL, 0xffffffff, 0xffffffff, 0xffffffff, 1, 1, 1, 0, STREAM(n, 1), NULL,
		       NULL);
	assert_shown(OWN, 0);
	end(n);
}

static void a_copy_expects_the_last_need(void **state)
{
	unsigned n = begin(NEEDED);

	(void)state;
	launch(n, 1, 2);
	finish_work(n);
	assert_true(demand_set_speculatively(client, atomic_load(&client->binding)));
	assert_shown(0, 2);
	driver->streams_busy = 1;
	launch(n, 1, 3);
	assert_shown(0, 3);
	finish_work(n);

	/* What was guessed is not learned. */
	driver->streams_busy = 1;
	assert_int_equal(cuGraphLaunch((CUgraphExec)(uintptr_t)0x77, STREAM(n, 1)), CUDA_SUCCESS);
	finish_work(n);
	assert_true(demand_set_speculatively(client, atomic_load(&client->binding)));
	assert_shown(OWN, 0);
	driver->streams_busy = 1;
	launch(n, 1, 1);
	assert_shown(OWN, 0);
	finish_work(n);
	assert_true(demand_set_speculatively(client, atomic_load(&client->binding)));
	assert_shown(0, 1);
	end(n);
}

/* Whether the SMs stay shown for a while when the work has ended, at once in @tries. The next
 * launch is expected after @gap ns. */
static bool sms_stay_shown(unsigned n, unsigned blocks, uint64_t gap, unsigned tries)
{
	bool stay = false;

	for (unsigned i = 0; i < tries && !stay; i++) {
		driver->streams_busy = 1;
		launch(n, 1, blocks);
		atomic_store(&demand_of(client)->gap, gap);
		driver->streams_busy = 0;
		cuStreamSynchronize(STREAM(n, 1));
		stay = !agent.demand[0]->word && agent.demand[0]->sms == blocks;
		assert_true(eventually(all_clear()));
	}
	return stay;
}

static void sms_stay_while_that_is_cheap(void **state)
{
	unsigned n = begin(NEEDED);

	(void)state;
	/* 25 us of all are 3300 us of one. Gaps below 100 us linger. */
	sms_of(client)->of_gpu = 132;
	assert_true(sms_stay_shown(n, 1, 1900000, 400));
	assert_true(sms_stay_shown(n, 10, 300000, 400));
	assert_false(sms_stay_shown(n, 20, 300000, 20));
	assert_false(sms_stay_shown(n, 1, 2100000, 20)); /* too long */
	assert_false(sms_stay_shown(n, 1, 0, 20));       /* not known */
	end(n);
}

static uint32_t need_packed(unsigned n, unsigned blocks, uint64_t gap)
{
	const struct geometry geometry = {KERNEL, {blocks, 1, 1}, {32, 1, 1}, 0};
	const struct level_binding *binding = atomic_load(&client->binding);
	struct need_choices *choices = need_choices_of(client);
	uint64_t kernel = need_kernel(kernel_key(&geometry));

	atomic_store(&choices->company, 7);
	atomic_store(&choices->way, NEED_PACKED);
	atomic_store(&choices->tried, kernel);
	atomic_store(&sms_of(client)->gap, gap);
	uint32_t need = sms_count(stream_known(STREAM(n, 1), false), binding, &geometry, 20000,
				  SMS_COUNTED);
	atomic_store(&choices->tried, 0);
	atomic_store(&choices->company, 0);
	return need;
}

/* As many as stay shown until the next launch, with a quarter to spare. */
static void packed_work_needs_what_stays(void **state)
{
	unsigned n = begin(NEEDED);

	(void)state;
	launch(n, 1, 1);
	finish_work(n);
	sms_of(client)->of_gpu = 132;
	assert_int_equal(need_packed(n, 20, 0), 20 | SMS_PACKED); /* not known */
	assert_int_equal(need_packed(n, 20, 2100000), 20 | SMS_PACKED);
	assert_int_equal(need_packed(n, 20, 400000), 6 | SMS_PACKED);
	/* The gap varies: it is the same number while that pays. */
	assert_int_equal(need_packed(n, 20, 300000), 6 | SMS_PACKED);
	assert_int_equal(need_packed(n, 20, 540000), 6 | SMS_PACKED);
	assert_int_equal(need_packed(n, 20, 600000), 4 | SMS_PACKED);
	assert_int_equal(need_packed(n, 20, 200000), 12 | SMS_PACKED);
	assert_int_equal(need_packed(n, 3, 200000), 3 | SMS_PACKED);
	/* Never more than 8 blocks on an SM. */
	assert_int_equal(need_packed(n, 8, 1900000), 1 | SMS_PACKED);
	assert_int_equal(need_packed(n, 9, 1900000), 9 | SMS_PACKED);
	assert_int_equal(need_packed(n, 97, 200000), 97 | SMS_PACKED);
	assert_int_equal(need_packed(n, 96, 200000), 12 | SMS_PACKED);
	driver->streams_busy = 1;
	end(n);
}

static void assert_places(bool places)
{
	for (unsigned q = 0; q < 2; q++)
		assert_int_equal(agent.demand[q]->places, places ? OWN : 0);
}

/* Short launches get by on places of blocks that end, if they have a higher priority. */
static void short_work_needs_no_sms_of_its_own(void **state)
{
	const struct geometry geometry = {KERNEL, {2, 1, 1}, {32, 1, 1}, 0};
	unsigned n = begin(NEEDED);

	(void)state;
	launch(n, 1, 2);
	assert_places(false); /* of unknown time */
	struct stream *stream = stream_known(STREAM(n, 1), false);
	assert_non_null(stream);
	const struct level_binding *binding = atomic_load(&client->binding);
	static const struct {
		uint64_t ahead;
		uint32_t need;
	} cases[] = {
		{20000, 2},
		{60000, 2},
		{60001, 2 | SMS_APART},
		{0, 2 | SMS_APART},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(sms_count(stream, binding, &geometry, cases[i].ahead, SMS_COUNTED),
				 cases[i].need);
	end(n);
}

/* As soon as it is known how long the kernel takes; not with a priority of the program's own. */
static void launches_say_so(void **state)
{
	CUlaunchAttribute own = {.id = CU_LAUNCH_ATTRIBUTE_PRIORITY, .value.priority = 0};
	unsigned n = begin(NEEDED);
	CUlaunchConfig config = {1, 1, 1, 32, 1, 1, 0, STREAM(n, 1), &own, 1};
	_Atomic unsigned *priorities = &launch_order_of(client)->priorities;

	(void)state;
	driver->elapsed_ns = 20000;
	atomic_store(priorities, 5);
	for (unsigned i = 0; i < 400 && !agent.demand[0]->places; i++) {
		measure_next();
		launch(n, 1, 1);
		finish_work(n);
	}
	assert_places(true);
	assert_int_equal(cuLaunchKernelEx(&config, KERNEL, NULL, NULL), CUDA_SUCCESS);
	assert_places(false);
	finish_work(n);
	launch(n, 1, 1);
	assert_places(true);
	finish_work(n);
	atomic_store(priorities, 0);
	launch(n, 1, 1);
	assert_places(false);
	end(n);
}

/* The bits stay when the work has ended, and go when other work comes. */
static void places_are_shown(void **state)
{
	const struct level_binding *binding;
	unsigned n = begin(NEEDED);

	(void)state;
	binding = atomic_load(&client->binding);
	static const struct {
		uint32_t need;
		bool places;
		uint32_t sms;
	} rounds[] = {{2, true, 2},
		      {2 | SMS_APART, false, 2},
		      {2 | SMS_PACKED, false, 2},
		      {1, true, 1},
		      {SMS_WHOLE, false, 0}};
	for (size_t i = 0; i < sizeof(rounds) / sizeof(rounds[0]); i++) {
		sms_raise(client, rounds[i].need);
		pages_set(client, binding);
		assert_places(rounds[i].places);
		assert_int_equal(agent.demand[0]->sms, rounds[i].sms);
		pages_withdraw(client, binding, 0);
		assert_places(rounds[i].places);
	}
	/* Of several launches the greedier counts. */
	sms_raise(client, 3);
	sms_raise(client, 1 | SMS_APART);
	pages_set(client, binding);
	assert_places(false);
	assert_int_equal(agent.demand[0]->sms, 3);
	assert_false(sms_grows(client, 2));
	assert_false(sms_grows(client, 3 | SMS_APART));
	assert_int_equal(sms_way(client), NEED_APART);
	assert_true(sms_grows(client, 4));
	assert_true(sms_grows(client, SMS_WHOLE));
	pages_withdraw(client, binding, 0);
	end(n);
}

/* Ahead of its minimum rate: its work is told, but neither launches nor copies show demand. */
static void one_that_leaves_shows_nothing(void **state)
{
	unsigned n = begin(NEEDED);

	(void)state;
	agent.control->flags = WEIR_CONTROL_LEAVES;
	launch(n, 1, 2);
	assert_int_equal(agent.status->outstanding, 1);
	launch(n, 2, 4);
	assert_false(demand_set_speculatively(client, atomic_load(&client->binding)));
	assert_true(all_clear());
	finish_work(n);
	launch(n, 1, 4);
	assert_true(all_clear());
	/* It lacks its rate: the agent shows what is there, and it shows what comes. */
	agent.control->flags = 0;
	for (unsigned q = 0; q < 2; q++)
		agent.demand[q]->word = agent.demand[q]->whole = OWN;
	finish_work(n);
	driver->streams_busy = 1;
	launch(n, 1, 2);
	assert_shown(0, 2);
	end(n);
}

static void give_bit_back(void)
{
	atomic_store(&agent.control->flags, WEIR_CONTROL_RATED);
	for (unsigned q = 0; q < 2; q++) {
		atomic_fetch_or(&agent.demand[q]->whole, OWN);
		atomic_fetch_or(&agent.demand[q]->word, OWN);
	}
}

/* The agent takes its bit away meanwhile, and does not know what it needs when it gives it back. */
static void a_client_that_leaves_needs_nothing(void **state)
{
	unsigned n = begin(NEEDED);

	(void)state;
	driver->events_busy = 1; /* nor do markers say that it has ended */
	atomic_store(&agent.control->flags, WEIR_CONTROL_RATED | WEIR_CONTROL_LEAVES);
	launch(n, 1, 2);
	assert_true(all_clear());
	give_bit_back();
	assert_true(eventually(!agent.demand[0]->whole && !agent.demand[1]->whole));
	assert_shown(0, 2);
	/* In the middle of its work. */
	atomic_store(&agent.control->flags, WEIR_CONTROL_RATED | WEIR_CONTROL_LEAVES);
	for (unsigned q = 0; q < 2; q++)
		atomic_fetch_and(&agent.demand[q]->word, ~OWN);
	assert_true(eventually(all_clear()));
	give_bit_back();
	assert_true(eventually(!agent.demand[0]->whole && !agent.demand[1]->whole));
	assert_shown(0, 2);
	/* What needs all stays so. */
	launch(n, 1, 4);
	assert_shown(OWN, 0);
	driver->events_busy = 0;
	atomic_store(&agent.control->flags, 0);
	end(n);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_a_word_all_is_needed),
		cmocka_unit_test(a_launch_needs_an_sm_for_each_block),
		cmocka_unit_test(the_need_grows_until_the_work_ends),
		cmocka_unit_test(two_streams_need_all),
		cmocka_unit_test(launches_that_cannot_be_counted_need_all),
		cmocka_unit_test(a_copy_expects_the_last_need),
		cmocka_unit_test(sms_stay_while_that_is_cheap),
		cmocka_unit_test(packed_work_needs_what_stays),
		cmocka_unit_test(short_work_needs_no_sms_of_its_own),
		cmocka_unit_test(launches_say_so),
		cmocka_unit_test(places_are_shown),
		cmocka_unit_test(one_that_leaves_shows_nothing),
		cmocka_unit_test(a_client_that_leaves_needs_nothing),
	};

	driver_load();
	return cmocka_run_group_tests(tests, agent_begin, agent_finish);
}
