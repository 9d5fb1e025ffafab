/* What demand writes into the pages of lower levels: bits, and the SMs that the work needs. On the
 * null driver, whose GPU has 4 SMs. */
#include "gates/demand-pages.h"
#include "gates/priority.h"

#include "inside.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#define KERNEL   ((CUfunction)(uintptr_t)0x9000)
#define MEASURED ((CUfunction)(uintptr_t)0xa000)
#define OWN      (1ull << 1) /* context_welcomed()'s bit */
#define NEEDED   1u          /* yield: no more than the launch needs */
#define THREADS  4

static_assert(NULL_SMS == 4, "the numbers below");

static void launch_of(CUfunction kernel, unsigned n, unsigned stream, unsigned blocks)
{
	assert_int_equal(
		cuLaunchKernel(kernel, blocks, 1, 1, 32, 1, 1, 0, STREAM(n, stream), NULL, NULL),
		CUDA_SUCCESS);
}

static void launch(unsigned n, unsigned stream, unsigned blocks)
{
	launch_of(KERNEL, n, stream, blocks);
}

static bool is_clear(const struct weir_demand_page *page)
{
	return !page->word && !page->whole && !page->sms;
}

static bool all_clear(void)
{
	return is_clear(agent.demand[0]) && is_clear(agent.demand[1]) && !agent.status->demand_sms;
}

static void finish_work(unsigned n)
{
	driver->streams_busy = 0;
	for (unsigned stream = 1; stream <= THREADS; stream++)
		assert_int_equal(cuStreamSynchronize(STREAM(n, stream)), CUDA_SUCCESS);
	assert_true(eventually(all_clear()));
	atomic_store(&sms_of(client)->gap,
		     0); /* so that the next launch does not count as one of many */
}

/* A context at level 2 whose work does not end; what it yields. */
static unsigned begin(uint32_t yield)
{
	unsigned n = context_welcomed(2);

	finish_work(n);
	atomic_store(&agent.control->yield, yield);
	driver->streams_busy = 1;
	return n;
}

static void end(unsigned n)
{
	finish_work(n);
	atomic_store(&agent.control->yield, 0);
	context_gone(n);
	assert_true(all_clear());
}

/* In both pages. */
static void assert_shown(uint64_t whole, uint32_t sms)
{
	for (unsigned q = 0; q < 2; q++) {
		assert_int_equal(agent.demand[q]->word, OWN);
		assert_int_equal(agent.demand[q]->whole, whole);
		assert_int_equal(agent.demand[q]->sms, sms);
	}
	assert_int_equal(agent.status->demand_sms, sms);
}

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
		{NEEDED, 1, 1},          {NEEDED, 2, 2},
		{NEEDED, 3, 3},          {NEEDED, 4, 0},      /* above 3/4 */
		{NEEDED, 0x7fffffff, 0}, {NEEDED + 25, 1, 2}, /* rounded up */
		{NEEDED + 50, 2, 3},     {NEEDED + 100, 1, 2},
		{NEEDED + 100, 2, 0},    {NEEDED + 101, 1, 0}, /* no such value */
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
		assert_int_equal(sms_count(stream, &geometry, cases[i].ahead, NEEDED),
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
	} rounds[] = {{2, true, 2}, {2 | SMS_APART, false, 2}, {1, true, 1}, {SMS_WHOLE, false, 0}};
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
	assert_true(sms_grows(client, 4));
	assert_true(sms_grows(client, SMS_WHOLE));
	pages_withdraw(client, binding, 0);
	end(n);
}

/* The agent's other side of a new page: all demand is for the whole GPU. */
static void new_pages(void)
{
	fake_agent_new_demand(&agent);
	for (unsigned q = 0; q < 2; q++)
		atomic_store(&agent.demand[q]->whole, agent.demand[q]->word);
}

static void sms_move_to_new_pages(void **state)
{
	unsigned n = begin(NEEDED);

	(void)state;
	launch(n, 1, 2);
	assert_shown(0, 2);
	new_pages();
	fake_agent_level(&agent, 2);
	assert_true(eventually(agent.demand[0]->sms == 2 && agent.demand[1]->sms == 2 &&
			       !agent.demand[0]->whole && !agent.demand[1]->whole));
	assert_shown(0, 2);
	assert_true(eventually(!agent.former[0]->sms && !agent.former[1]->sms));

	/* At the lower level it is above one page less. */
	fake_agent_level(&agent, 1);
	assert_true(eventually(is_clear(agent.demand[1])));
	assert_int_equal(agent.demand[0]->sms, 2);
	assert_int_equal(agent.status->demand_sms, 2);
	fake_agent_level(&agent, 2);
	finish_work(n);
	assert_true(eventually(atomic_load(&client->binding)->level == 2));
	driver->streams_busy = 1;
	launch(n, 1, 1);
	assert_shown(0, 1);
	end(n);
}

static void another_agent_is_told(void **state)
{
	unsigned n = begin(NEEDED);

	(void)state;
	launch(n, 1, 2);
	assert_shown(0, 2);
	fake_agent_stop(&agent);
	fake_agent_renew(&agent);
	atomic_store(&agent.control->yield, NEEDED);
	fake_agent_start(&agent);
	fake_agent_accept(&agent);
	fake_agent_welcome(&agent, 2, 1);
	assert_true(eventually(agent.status->demand_sms == 2));
	assert_shown(0, 2);
	end(n);
}

static void a_shared_bit_tells_nothing(void **state)
{
	unsigned n = context_welcomed_as(2, WEIR_BIT_SHARED);

	(void)state;
	atomic_store(&agent.control->yield, NEEDED);
	driver->streams_busy = 1;
	launch(n, 1, 1);
	assert_true(all_clear()); /* the agent sets the bit */
	end(n);
}

static void a_context_ends_at_work(void **state)
{
	unsigned n = begin(NEEDED);

	(void)state;
	launch(n, 1, 2);
	assert_shown(0, 2);
	context_gone(n);
	assert_true(all_clear());
	driver->streams_busy = 0;
	atomic_store(&agent.control->yield, 0);
}

static unsigned racing;
static _Atomic bool stop;

static void *race(void *argument)
{
	unsigned stream = (unsigned)(uintptr_t)argument, seed = stream;

	cuCtxSetCurrent(CONTEXT(racing));
	while (!atomic_load(&stop)) {
		unsigned blocks = 1 + (unsigned)rand_r(&seed) % 5;
		cuLaunchKernel(KERNEL, blocks, 1, 1, 32, 1, 1, 0, STREAM(racing, stream), NULL,
			       NULL);
		if (rand_r(&seed) % 4 == 0)
			cuStreamSynchronize(STREAM(racing, stream));
		if (rand_r(&seed) % 16 == 0)
			demand_set_speculatively(client, atomic_load(&client->binding));
		if (rand_r(&seed) % 64 == 0)
			usleep(200);
	}
	return NULL;
}

/* Launches, ends of work, and changes of pages and levels, all at once. */
static void races_leave_nothing(void **state)
{
	pthread_t threads[THREADS];

	(void)state;
	racing = begin(NEEDED);
	driver->streams_busy = 0;
	for (unsigned round = 0; round < 8; round++) {
		atomic_store(&stop, false);
		/* In one stream in every second round, so that the need is a number mostly. */
		for (unsigned i = 0; i < THREADS; i++)
			assert_int_equal(pthread_create(&threads[i], NULL, race,
							(void *)(uintptr_t)(round % 2 ? 1 + i : 1)),
					 0);
		for (unsigned i = 0; i < 8; i++) {
			usleep(3000);
			if (round % 4 == 1)
				new_pages();
			fake_agent_level(&agent, round % 4 == 2 ? (uint8_t)(1 + i % 2) : 2);
		}
		atomic_store(&stop, true);
		for (unsigned i = 0; i < THREADS; i++)
			pthread_join(threads[i], NULL);
		finish_work(racing);
		/* A late launch may leave bits there, which the agent clears. */
		assert_true(eventually(!agent.former[0] || !agent.former[0]->sms));
	}
	fake_agent_level(&agent, 2);
	assert_true(eventually(atomic_load(&client->binding)->level == 2));
	end(racing);
}

static void *change_need(void *argument)
{
	const struct level_binding *binding = atomic_load(&client->binding);
	unsigned seed = (unsigned)(uintptr_t)argument;

	for (unsigned i = 0; i < 1000000; i++) {
		unsigned what = (unsigned)rand_r(&seed) % 8;
		if (what < 4) {
			pages_withdraw(client, binding, 0);
		} else {
			sms_raise(client, what == 7 ? SMS_WHOLE : what);
			pages_set(client, binding);
		}
	}
	return NULL;
}

/* The same without the work around it: each sum is that of the last need. */
static void sums_follow_the_last_need(void **state)
{
	unsigned n = begin(NEEDED);
	pthread_t threads[THREADS];

	(void)state;
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, change_need, (void *)(uintptr_t)(i + 1)),
			0);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	uint32_t sms = sms_are_whole(client) ? 0 : sms_needed(client);
	assert_int_equal(agent.demand[0]->sms, sms);
	assert_int_equal(agent.demand[1]->sms, sms);
	assert_int_equal(agent.status->demand_sms, sms);
	pages_withdraw(client, atomic_load(&client->binding), 0);
	assert_true(all_clear());
	end(n);
}

/* What another thread does between the pages of two levels. That of level 0 is in a mapping that
 * cannot be written yet. */
static struct {
	const struct level_binding *before;
	struct level_binding binding, next;
	struct page page;
	void (*meanwhile)(void);
} caught;

static void on_fault(int signal)
{
	(void)signal;
	mprotect(caught.page.memory, WEIR_PAGE_SIZE, PROT_READ | PROT_WRITE);
	caught.meanwhile();
	caught.meanwhile = NULL;
}

/* The client needs 1 SM; returns when all pages say so, and what happens @meanwhile. */
static void publish_and(void (*meanwhile)(void))
{
	struct sigaction action = {.sa_handler = on_fault, .sa_flags = SA_NODEFER}, before;

	caught.before = atomic_load(&client->binding);
	caught.binding = *caught.before;
	caught.page = *caught.before->below[0];
	caught.page.memory =
		mmap(NULL, WEIR_PAGE_SIZE, PROT_NONE, MAP_SHARED, agent.demand_fds[0], 0);
	assert_true(caught.page.memory != MAP_FAILED);
	caught.binding.below[0] = &caught.page;
	caught.meanwhile = meanwhile;
	sigaction(SIGSEGV, &action, &before);
	atomic_store(&client->binding, &caught.binding);
	sms_raise(client, 1);
	pages_set(client, &caught.binding);
	sigaction(SIGSEGV, &before, NULL);
	assert_null(caught.meanwhile);
}

static void withdraw(void)
{
	pages_clear(&caught.binding, NULL);
	pages_withdraw(client, atomic_load(&client->binding), 0);
	atomic_store(&client->binding, caught.before);
	assert_true(all_clear());
}

static void need_more(void)
{
	sms_raise(client, 3);
	pages_set(client, &caught.binding);
}

static void the_need_grows_while_it_is_shown(void **state)
{
	unsigned n = begin(NEEDED);

	(void)state;
	publish_and(need_more);
	assert_shown(0, 3);
	withdraw();
	end(n);
}

static void go_to_level_1(void)
{
	caught.next = caught.binding;
	caught.next.level = 1;
	demand_move(client, &caught.next);
}

static void the_level_falls_while_the_need_is_shown(void **state)
{
	unsigned n = begin(NEEDED);

	(void)state;
	publish_and(go_to_level_1);
	assert_int_equal(agent.demand[0]->sms, 1);
	assert_int_equal(agent.demand[1]->sms, 0);
	assert_int_equal(agent.status->demand_sms, 1);
	withdraw();
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

/* All clients of this test have one status page. */
static bool is_fresh(void)
{
	return !agent.status->yield_samples[WEIR_YIELD_SOME] &&
	       !agent.status->yield_samples[WEIR_YIELD_ALL];
}

/* Launches @blocks until a measured one of known time counts for @kind, at most @tries times. */
static bool is_told(unsigned n, unsigned blocks, enum weir_yield_kind kind, unsigned tries)
{
	uint64_t samples = agent.status->yield_samples[kind];

	for (unsigned i = 0; i < tries && agent.status->yield_samples[kind] == samples; i++) {
		driver->streams_busy = 1;
		measure_next();
		launch_of(MEASURED, n, 1, blocks);
		finish_work(n);
	}
	return agent.status->yield_samples[kind] != samples;
}

static void assert_told(enum weir_yield_kind kind)
{
	uint64_t samples = agent.status->yield_samples[kind];

	/* The driver tells milliseconds, not exactly. */
	assert_in_range(agent.status->yield_measured[kind], 69999 * samples, 70001 * samples);
	assert_in_range(agent.status->yield_predicted[kind], 69999 * samples, 70001 * samples);
}

static void launches_tell_what_they_needed(void **state)
{
	unsigned n = begin(NEEDED);
	const struct weir_status_page *status = agent.status;

	(void)state;
	driver->elapsed_ns = 70000;
	assert_true(eventually(is_fresh()));
	assert_true(is_told(n, 1, WEIR_YIELD_SOME, 400));
	assert_int_equal(status->yield_samples[WEIR_YIELD_ALL], 0);
	assert_told(WEIR_YIELD_SOME);
	assert_false(is_told(n, 4, WEIR_YIELD_ALL, 20)); /* it always needs the whole GPU */
	atomic_store(&agent.control->yield, 0);
	uint64_t some = status->yield_samples[WEIR_YIELD_SOME];
	assert_true(is_told(n, 1, WEIR_YIELD_ALL, 400));
	assert_int_equal(status->yield_samples[WEIR_YIELD_SOME], some);
	assert_told(WEIR_YIELD_ALL);
	end(n);
}

/* At the top level nothing is measured without need: after its first launches one in hundreds. */
static void the_top_level_measures_while_the_agent_compares(void **state)
{
	unsigned n = context_welcomed(3);
	const uint64_t *told = (const uint64_t *)&agent.status->yield_samples[WEIR_YIELD_ALL];

	(void)state;
	driver->elapsed_ns = 500000; /* long enough not to be passed over */
	finish_work(n);
	assert_true(eventually(is_fresh()));
	for (unsigned i = 0; i < 20; i++)
		launch_of(MEASURED, n, 1, 2);
	finish_work(n);
	assert_true(eventually(!atomic_load(&sampler_of(client)->armed)));
	uint64_t before = *told;
	for (unsigned i = 0; i < 80; i++)
		launch_of(MEASURED, n, 1, 2);
	finish_work(n);
	assert_int_equal(*told, before);
	agent.control->flags = WEIR_CONTROL_COMPARES;
	for (unsigned i = 0; i < 4000 && *told == before; i++) {
		usleep(1000);
		launch_of(MEASURED, n, 1, 2);
		finish_work(n);
	}
	assert_true(*told > before);
	agent.control->flags = 0;
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
		cmocka_unit_test(short_work_needs_no_sms_of_its_own),
		cmocka_unit_test(launches_say_so),
		cmocka_unit_test(places_are_shown),
		cmocka_unit_test(sms_move_to_new_pages),
		cmocka_unit_test(another_agent_is_told),
		cmocka_unit_test(a_shared_bit_tells_nothing),
		cmocka_unit_test(a_context_ends_at_work),
		cmocka_unit_test(races_leave_nothing),
		cmocka_unit_test(sums_follow_the_last_need),
		cmocka_unit_test(the_need_grows_while_it_is_shown),
		cmocka_unit_test(the_level_falls_while_the_need_is_shown),
		cmocka_unit_test(one_that_leaves_shows_nothing),
		cmocka_unit_test(launches_tell_what_they_needed),
		cmocka_unit_test(the_top_level_measures_while_the_agent_compares),
	};

	driver_load();
	return cmocka_run_group_tests(tests, agent_begin, agent_finish);
}
