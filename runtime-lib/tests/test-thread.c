/* Processes that may have no more threads, as at the pids limit of their pod; and threads that come
 * at the same time. On the null driver. */
#include "inside.h"
#include "shim/thread.h"
#include "shim/weak-libc.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

static struct {
	int (*create)(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *),
		      void *argument);
	unsigned allowed, refused;
} threads;

static int create(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *),
		  void *argument)
{
	if (threads.allowed == 0) {
		threads.refused++;
		return EAGAIN;
	}
	threads.allowed--;
	return threads.create(thread, attributes, body, argument);
}

/* Whether the agent hears of a launch that is none of ours. */
static bool launch_is_governed(void)
{
	struct pollfd listener = {.fd = agent.listener, .events = POLLIN};

	assert_int_equal(
		cuLaunchKernel((CUfunction)0x8000, 1, 1, 1, 32, 1, 1, 0, STREAM(1, 1), NULL, NULL),
		CUDA_SUCCESS);
	return client_find(CONTEXT(1)) || poll(&listener, 1, 0) > 0;
}

/* Nobody would ever take its demand back. */
static void without_threads_nothing_is_governed(void **state)
{
	(void)state;
	threads.create = weak_libc.pthread_create;
	weak_libc.pthread_create = create;
	for (unsigned i = 0; i < 100; i++)
		assert_false(launch_is_governed());
	assert_int_equal(driver->gates, 0);
	assert_in_range(threads.refused, 1, 99); /* not with each launch */

	/* One alone is of no use. */
	unsigned before = threads.refused;
	threads.allowed = 1;
	assert_true(eventually(launch_is_governed() || threads.refused > before));
	assert_int_equal(threads.allowed, 0);
	assert_false(launch_is_governed());

	threads.allowed = 1;
	fake_agent_welcome_next(&agent, 1, 1);
	assert_true(eventually(launch_is_governed()));
	fake_agent_join();
	client = client_find(CONTEXT(1));
	assert_non_null(client);
	assert_int_equal(threads.allowed, 0);
	assert_int_equal(cuStreamSynchronize(STREAM(1, 1)), CUDA_SUCCESS);
	assert_true(eventually(agent.demand[0]->word == 0)); /* there is a worker */
	context_gone(1);
}

#define TOGETHER 8   /* threads */
#define ROUNDS   300 /* each in a context of its own */

static pthread_barrier_t together;

static void *launch_first(void *context)
{
	unsigned n = *(unsigned *)context;

	pthread_barrier_wait(&together);
	cuLaunchKernel((CUfunction)0x8000, 1, 1, 1, 32, 1, 1, 0, STREAM(n, 1), NULL, NULL);
	return NULL;
}

static unsigned clients_of(CUcontext context)
{
	unsigned n = 0;

	client_for_each (c)
		n += atomic_load(&c->state) == CLIENT_LIVE && c->context == context;
	return n;
}

/* Each client more would take a demand bit. */
static void threads_share_one_client(void **state)
{
	pthread_t threads_of[TOGETHER];

	(void)state;
	fake_agent_stop(&agent); /* nobody has to be welcomed */
	assert_int_equal(pthread_barrier_init(&together, NULL, TOGETHER), 0);
	for (unsigned n = 100; n < 100 + ROUNDS; n++) {
		for (unsigned i = 0; i < TOGETHER; i++)
			assert_int_equal(pthread_create(&threads_of[i], NULL, launch_first, &n), 0);
		for (unsigned i = 0; i < TOGETHER; i++)
			pthread_join(threads_of[i], NULL);
		assert_int_equal(clients_of(CONTEXT(n)), 1);
		context_gone(n);
	}
	pthread_barrier_destroy(&together);
	fake_agent_start(&agent);
}

static void *launch(void *context)
{
	unsigned n = *(unsigned *)context;

	cuLaunchKernel((CUfunction)0x8000, 1, 1, 1, 32, 1, 1, 0, STREAM(n, 1), NULL, NULL);
	return NULL;
}

/* Else a kernel of seconds could begin without a gate, while another thread registers. */
static void a_launch_waits_while_another_registers(void **state)
{
	unsigned n = 99;
	struct pollfd listener = {.fd = agent.listener, .events = POLLIN};
	pthread_t first, second;

	(void)state;
	assert_int_equal(pthread_create(&first, NULL, launch, &n), 0);
	assert_int_equal(poll(&listener, 1, EVENTUALLY_MS), 1);
	assert_int_equal(pthread_create(&second, NULL, launch, &n), 0);
	usleep(20000); /* for the second to come this far */
	fake_agent_accept(&agent);
	fake_agent_welcome(&agent, 1, 1);
	pthread_join(first, NULL);
	pthread_join(second, NULL);
	assert_true(eventually(agent.status->launches == 2));
	context_gone(n);
}

static struct {
	sigset_t mask;
	_Atomic int known;
} shown;

static void *show_own_mask(void *unused)
{
	(void)unused;
	pthread_sigmask(SIG_SETMASK, NULL, &shown.mask);
	shown.known = 1;
	return NULL;
}

/* Signals go to the application's threads. Only a system call that its sandbox emulates is the
 * calling thread's own affair: if that one blocked SIGSYS, Linux would kill the process. */
static void threads_take_no_signals(void **state)
{
	(void)state;
	assert_int_equal(thread_start(show_own_mask, "shows its mask"), 0);
	assert_true(eventually(shown.known == 1));
	assert_true(sigismember(&shown.mask, SIGTERM));
	assert_true(sigismember(&shown.mask, SIGCHLD));
	assert_true(sigismember(&shown.mask, SIGRTMAX));
	assert_false(sigismember(&shown.mask, SIGSYS));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_take_no_signals),
		cmocka_unit_test(without_threads_nothing_is_governed),
		cmocka_unit_test(a_launch_waits_while_another_registers),
		cmocka_unit_test(threads_share_one_client),
	};

	driver_load();
	return cmocka_run_group_tests(tests, agent_begin, agent_finish);
}
