/* Streams to which the program gave a lower level than its own, on the null driver. */
#include "gates/demand.h"

#include "inside.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <unistd.h>

#include <cmocka.h>

#define WEIR_LIBRARY
#include "weir/weir.h"

#define KERNEL ((CUfunction)(uintptr_t)0x9000)
#define OWN    (1u << 1) /* the bit that context_welcomed() gives */
#define OTHER  (1u << 7)

enum { HIGH = 1, LOW = 2 }; /* streams */

static void launch(unsigned n, unsigned stream)
{
	assert_int_equal(
		cuLaunchKernel(KERNEL, 1, 1, 1, 32, 1, 1, 0, STREAM(n, stream), NULL, NULL),
		CUDA_SUCCESS);
}

static void finish(unsigned n, unsigned stream)
{
	assert_int_equal(cuStreamSynchronize(STREAM(n, stream)), CUDA_SUCCESS);
}

static const struct level_binding *binding(void)
{
	return atomic_load(&client->binding);
}

/* There is a binding for streams of that level. */
static bool has_lower(int level)
{
	return binding()->lower[level] != NULL;
}

static bool says(const struct weir_demand_page *page, uint64_t word)
{
	return page->word == word && (page->whole & OWN) == (word & OWN) && !page->sms;
}

/* The words of levels 0 and 1 become these. Work at several levels needs the whole GPU, whatever
 * the client yields. */
static void assert_words(uint64_t word0, uint64_t word1)
{
	assert_true(eventually(says(agent.demand[0], word0) && says(agent.demand[1], word1)));
}

/* A client at level 2 whose stream LOW has level @level. Work stays outstanding. */
static unsigned context(int level)
{
	driver->streams_busy = 1;
	unsigned n = context_welcomed(2);
	finish(n, HIGH);
	assert_words(0, 0);
	assert_int_equal(weir_set_priority(STREAM(n, LOW), level), 0);
	assert_true(eventually(has_lower(level)));
	atomic_store(&agent.control->yield, 1);
	return n;
}

static void gone(unsigned n)
{
	driver->streams_busy = 0;
	context_gone(n);
}

/* The word for which the last gate waits. */
static uint64_t last_gate(void)
{
	for (size_t i = driver->n_ops; i--;) {
		if (driver->ops[i].kind == NULL_GATE)
			return driver->ops[i].address;
	}
	return 0;
}

static void its_gates_wait_for_the_word_of_its_level(void **state)
{
	(void)state;
	unsigned n = context(0);
	driver->n_ops = 0;
	launch(n, LOW);
	assert_int_equal(last_gate(), (uintptr_t)binding()->below[0]->memory);
	launch(n, HIGH);
	gone(n);

	n = context(1);
	driver->n_ops = 0;
	launch(n, LOW);
	assert_int_equal(last_gate(), (uintptr_t)binding()->below[1]->memory);
	gone(n);
}

/* Else work that waits for the stream could close the gates that the stream waits at. */
static void no_own_bit_closes_its_gates(void **state)
{
	(void)state;
	unsigned n = context(1);
	launch(n, LOW);
	assert_words(OWN, 0); /* it preempts the levels below it */
	launch(n, HIGH);
	assert_words(OWN, 0);
	finish(n, LOW);
	assert_words(OWN, OWN); /* what is left is of the high level */
	launch(n, LOW);
	assert_words(OWN, 0);
	finish(n, HIGH);
	assert_words(OWN, 0);
	finish(n, LOW);
	assert_words(0, 0);

	/* The worker finds out, too. */
	launch(n, HIGH);
	launch(n, LOW);
	assert_words(OWN, 0);
	finish(n, HIGH);
	driver->streams_busy = 0;
	assert_words(0, 0);
	gone(n);
}

static void the_bits_of_others_stay(void **state)
{
	(void)state;
	unsigned n = context(0);
	agent.demand[0]->word = agent.demand[1]->word = OTHER;
	launch(n, HIGH);
	assert_words(OTHER | OWN, OTHER | OWN);
	launch(n, LOW);
	assert_words(OTHER, OTHER);
	assert_true(binding_closed(binding()->lower[0]));
	finish(n, LOW);
	assert_words(OTHER | OWN, OTHER | OWN);
	finish(n, HIGH);
	assert_words(OTHER, OTHER);
	agent.demand[0]->word = OWN; /* its own does not count for it */
	assert_false(binding_closed(binding()->lower[0]));
	agent.demand[0]->word = agent.demand[1]->word = 0;
	gone(n);
}

static void the_worker_acts_at_the_lowest_level(void **state)
{
	(void)state;
	unsigned n = context(0);
	agent.demand[0]->word = OTHER;
	launch(n, LOW);
	assert_true(eventually(agent.status->level == 0 && agent.status->waits > 0));
	finish(n, LOW);
	assert_true(eventually(agent.status->level == 2));
	agent.demand[0]->word = 0;
	gone(n);
}

static void a_stream_is_raised_when_it_is_idle(void **state)
{
	(void)state;
	unsigned n = context(0);
	launch(n, LOW);
	assert_int_equal(weir_set_priority(STREAM(n, LOW), 1), -EBUSY);
	assert_int_equal(weir_set_priority(STREAM(n, LOW), WEIR_LEVEL_OWN), -EBUSY);
	assert_int_equal(weir_set_priority(STREAM(n, LOW), 0), 0);
	finish(n, LOW);
	assert_int_equal(weir_set_priority(STREAM(n, LOW), WEIR_LEVEL_OWN), 0);
	driver->streams_busy = 1;
	launch(n, LOW);
	assert_words(OWN, OWN);
	gone(n);
}

static void no_stream_is_above_its_process(void **state)
{
	(void)state;
	unsigned n = context(1);
	assert_int_equal(weir_set_priority(STREAM(n, HIGH), 3), -EPERM);
	assert_int_equal(weir_set_priority(STREAM(n, HIGH), 2), 0);
	assert_int_equal(weir_set_priority(STREAM(n, HIGH), 4), -EINVAL);
	assert_int_equal(weir_set_priority(STREAM(n, HIGH), -2), -EINVAL);

	/* The agent lowers the process. */
	fake_agent_level(&agent, 0);
	assert_true(eventually(binding()->level == 0));
	launch(n, LOW);
	launch(n, HIGH);
	assert_words(0, 0);
	finish(n, LOW);
	finish(n, HIGH);

	/* And raises it: the stream keeps its level. */
	fake_agent_level(&agent, 2);
	assert_true(eventually(binding()->level == 2));
	assert_non_null(binding()->lower[1]);
	driver->n_ops = 0;
	launch(n, HIGH);
	assert_words(OWN, OWN);
	launch(n, LOW);
	assert_words(OWN, 0);
	gone(n);
}

static void a_level_may_come_before_the_first_launch(void **state)
{
	static unsigned contexts = 0x60; /* no other test uses them */
	unsigned n = contexts++;

	(void)state;
	fake_agent_welcome_next(&agent, 2, 1);
	cuCtxSetCurrent(CONTEXT(n));
	assert_int_equal(weir_set_priority(STREAM(n, LOW), 0), 0);
	fake_agent_join();
	client = client_find(CONTEXT(n));
	assert_non_null(client);
	assert_true(eventually(binding() && has_lower(0)));
	gone(n);
}

/* The driver finishes the work of a stream that is destroyed. */
static void streams_that_end_with_work_keep_their_level(void **state)
{
	(void)state;
	unsigned n = context(1);
	launch(n, LOW);
	cuStreamDestroy_v2(STREAM(n, LOW));
	launch(n, HIGH);
	assert_words(OWN, 0);
	finish(n, HIGH);
	launch(n, HIGH);
	assert_words(OWN, 0);
	assert_int_equal(cuCtxSynchronize(), CUDA_SUCCESS);
	launch(n, HIGH);
	assert_words(OWN, OWN);
	gone(n);
}

static unsigned ending;

static void end_low(void)
{
	assert_int_equal(weir_set_priority(STREAM(ending, LOW), 1), 0);
	launch(ending, LOW);
	cuStreamDestroy_v2(STREAM(ending, LOW));
}

/* The wait has not seen its work. */
static void a_stream_ends_during_a_wait(void **state)
{
	(void)state;
	ending = context(1);
	end_low();
	driver->while_synchronising = end_low;
	assert_int_equal(cuCtxSynchronize(), CUDA_SUCCESS);
	launch(ending, HIGH);
	assert_words(OWN, 0);
	assert_int_equal(cuCtxSynchronize(), CUDA_SUCCESS);
	launch(ending, HIGH);
	assert_words(OWN, OWN);
	gone(ending);
}

static void graphs_have_gates_of_the_process(void **state)
{
	(void)state;
	unsigned n = context(0);
	CUgraph graph;

	driver->n_ops = 0;
	assert_int_equal(cuStreamBeginCapture_v2(STREAM(n, LOW), CU_STREAM_CAPTURE_MODE_GLOBAL),
			 CUDA_SUCCESS);
	for (unsigned i = 0; i < 100; i++)
		launch(n, LOW);
	assert_int_equal(cuStreamEndCapture(STREAM(n, LOW), &graph), CUDA_SUCCESS);
	assert_int_equal(last_gate(), (uintptr_t)binding()->wait->memory);
	cuGraphLaunch((CUgraphExec)(uintptr_t)0x5000, STREAM(n, LOW));
	assert_int_equal(last_gate(), (uintptr_t)binding()->below[0]->memory);
	gone(n);
}

/* The agent sets the bit that clients share by the level at which they say that they act. */
static void a_shared_bit_goes_by_what_is_said(void **state)
{
	(void)state;
	driver->streams_busy = 1;
	unsigned n = context_welcomed_as(2, WEIR_BIT_SHARED);
	assert_int_equal(weir_set_priority(STREAM(n, LOW), 0), 0);
	assert_true(eventually(has_lower(0)));
	assert_true(eventually(agent.status->level == 2));
	launch(n, LOW);
	assert_true(eventually(agent.status->level == 0));
	assert_words(0, 0);
	finish(n, LOW);
	assert_true(eventually(agent.status->level == 2));
	gone(n);
}

/* A page that the driver refuses is asked for again later. */
static void without_its_page_a_stream_acts_as_its_process(void **state)
{
	(void)state;
	driver->streams_busy = 1;
	unsigned n = context_welcomed(2);
	driver->pages_refused = 0;
	driver->refuses_pages = 1;
	assert_int_equal(weir_set_priority(STREAM(n, LOW), 0), 0);
	assert_true(eventually(driver->pages_refused > 0));
	driver->n_ops = 0;
	launch(n, LOW);
	assert_true(last_gate() != (uintptr_t)binding()->below[0]->memory);
	driver->refuses_pages = 0;
	assert_true(eventually(has_lower(0)));
	gone(n);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(its_gates_wait_for_the_word_of_its_level),
		cmocka_unit_test(no_own_bit_closes_its_gates),
		cmocka_unit_test(the_bits_of_others_stay),
		cmocka_unit_test(the_worker_acts_at_the_lowest_level),
		cmocka_unit_test(a_stream_is_raised_when_it_is_idle),
		cmocka_unit_test(no_stream_is_above_its_process),
		cmocka_unit_test(a_level_may_come_before_the_first_launch),
		cmocka_unit_test(streams_that_end_with_work_keep_their_level),
		cmocka_unit_test(a_stream_ends_during_a_wait),
		cmocka_unit_test(graphs_have_gates_of_the_process),
		cmocka_unit_test(a_shared_bit_goes_by_what_is_said),
		cmocka_unit_test(without_its_page_a_stream_acts_as_its_process),
	};

	driver_load();
	return cmocka_run_group_tests(tests, agent_begin, agent_finish);
}
