/* A client without weir.dev/yield finds out whether lower levels may leave less than the whole GPU
 * (gates/need-auto.h): requests under the null driver, which take as long as the test says. */
#include "gates/demand-pages.h"
#include "gates/need-auto.h"

#include "needing.h"

#include <unistd.h>

#define COMPANY 7
#define TURNS   20000

/* us that a request takes, by the room that lower levels leave. */
struct times {
	unsigned some, whole;
};

static const struct times quick = {300, 3000}, slow = {3000, 300};

static bool is_whole(void)
{
	return agent.demand[0]->whole & OWN;
}

/* Requests are much rarer here than tries would need. */
static void pay(void)
{
	need_auto_of(client)->budget.launches = 1000;
	need_auto_of(client)->budget.ns = 1e9;
}

/* Returns the SMs for which it asked; 0: for all. */
static uint32_t request(unsigned n, unsigned blocks, const struct times *times)
{
	driver->streams_busy = 1;
	launch(n, 1, blocks);
	uint32_t sms = is_whole() ? 0 : agent.demand[0]->sms;
	usleep(sms ? times->some : times->whole);
	finish_work(n);
	return sms;
}

static unsigned begin_knowing(uint32_t company, enum weir_profile_yields known)
{
	unsigned n = begin(WEIR_YIELD_AUTO);

	agent.status->yield_asks = agent.status->yield_found = 0; /* an earlier client's */
	atomic_store(&agent.control->yield_known, known);
	atomic_store(&agent.control->company, company);
	finish_work(n);
	return n;
}

static unsigned begin_beside(uint32_t company)
{
	return begin_knowing(company, WEIR_YIELDS_UNKNOWN);
}

static void end_beside(unsigned n)
{
	atomic_store(&agent.control->company, 0);
	end(n);
}

/* Until something was found. Returns in how many requests it asked for less than all. */
static unsigned find(unsigned n, unsigned blocks, const struct times *times)
{
	unsigned tried = 0;

	for (unsigned i = 0; !agent.status->yield_found; i++) {
		pay();
		tried += request(n, blocks, times) != 0;
		assert_true(i < TURNS);
	}
	return tried;
}

static void it_begins_with_the_whole_gpu_and_tries_little(void **state)
{
	unsigned n = begin_beside(COMPANY), tried = 0;

	(void)state;
	for (unsigned i = 0; i < 300; i++)
		tried += request(n, 1, &quick) != 0;
	assert_int_equal(tried, 0); /* a hundredth of 300 is less than a try */
	assert_int_equal(agent.status->yield_tried, 0);
	end_beside(n);
}

static void nothing_is_tried_while_nobody_is_below(void **state)
{
	unsigned n = begin_beside(0);

	(void)state;
	for (unsigned i = 0; i < 300; i++) {
		pay();
		assert_int_equal(request(n, 1, &quick), 0);
		assert_int_equal(agent.status->yield_asks, 0);
	}
	end_beside(n);
}

static void what_is_as_fast_with_less_asks_for_that(void **state)
{
	unsigned n = begin_beside(COMPANY);

	(void)state;
	assert_true(find(n, 1, &quick) >= NEED_TURNS * NEED_TURN_TIMES);
	assert_int_not_equal(agent.status->yield_found, WEIR_YIELDS_WHOLE);
	assert_true(agent.status->yield_tried);
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(request(n, 1, &quick), 1);
	assert_int_equal(agent.status->yield_asks, 1);
	/* It counts until the agent tells of others. */
	atomic_store(&agent.control->company, 0);
	assert_int_equal(request(n, 1, &quick), 1);
	end_beside(n);
}

static void what_is_slower_gets_all(void **state)
{
	unsigned n = begin_beside(COMPANY);

	(void)state;
	find(n, 1, &slow);
	assert_int_equal(agent.status->yield_found, WEIR_YIELDS_WHOLE);
	assert_true(agent.status->yield_lost);
	for (unsigned i = 0; i < 8; i++) {
		pay();
		assert_int_equal(request(n, 1, &slow), 0);
	}
	end_beside(n);
}

/* Its blocks wait for each other. */
static void a_cooperative_launch_is_never_compared(void **state)
{
	unsigned n = begin_beside(COMPANY);

	(void)state;
	for (unsigned i = 0; i < 300; i++) {
		pay();
		driver->streams_busy = 1;
		assert_int_equal(
			cuLaunchCooperativeKernel(KERNEL, 1, 1, 1, 32, 1, 1, 0, STREAM(n, 1), NULL),
			CUDA_SUCCESS);
		assert_true(is_whole());
		usleep(100);
		finish_work(n);
		assert_int_equal(agent.status->yield_asks, 0);
	}
	end_beside(n);
}

static void what_an_earlier_process_found_is_used_at_once(void **state)
{
	unsigned n = begin_knowing(COMPANY, WEIR_YIELDS_SMS);

	(void)state;
	for (unsigned i = 0; !agent.status->yield_asks; i++) {
		request(n, 1, &quick);
		assert_true(i < TURNS);
	}
	assert_int_equal(agent.status->yield_found, WEIR_YIELDS_SMS);
	assert_int_equal(request(n, 1, &quick), 1);
	assert_int_equal(agent.status->yield_tried, 0);
	end_beside(n);
}

static void what_was_found_is_taught(void **state)
{
	unsigned n = begin_beside(COMPANY);
	static const uint8_t program[32];

	(void)state;
	find(n, 1, &slow);
	const struct weir_learned learned = fake_agent_learned(&agent);
	assert_memory_equal(learned.kernel, program, sizeof(program));
	assert_int_equal(learned.profile.yields, WEIR_YIELDS_WHOLE);
	assert_true(weir_profile_is_sane(&learned.profile));
	end_beside(n);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_begins_with_the_whole_gpu_and_tries_little),
		cmocka_unit_test(nothing_is_tried_while_nobody_is_below),
		cmocka_unit_test(what_is_as_fast_with_less_asks_for_that),
		cmocka_unit_test(what_is_slower_gets_all),
		cmocka_unit_test(a_cooperative_launch_is_never_compared),
		cmocka_unit_test(what_an_earlier_process_found_is_used_at_once),
		cmocka_unit_test(what_was_found_is_taught),
	};

	driver_load();
	return cmocka_run_group_tests(tests, agent_begin, agent_finish);
}
