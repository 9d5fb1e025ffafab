/* Processes that may have no more threads, as at the pids limit of their pod; threads that come at
 * the same time, that signals interrupt, or that end the process while the worker is in the driver.
 * On the null driver. */
#include "inside.h"
#include "shim/thread.h"
#include "shim/weak-libc.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
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

#define SIGNALS_EVERY 1000000L /* ns */
#define ANSWERS_AFTER 100000u  /* us */

static _Atomic unsigned signals;

static void count_signal(int number)
{
	(void)number;
	atomic_fetch_add(&signals, 1);
}

static void *answer_late(void *unused)
{
	(void)unused;
	fake_agent_accept(&agent);
	usleep(ANSWERS_AFTER);
	fake_agent_welcome(&agent, 1, 1);
	return NULL;
}

/* Profilers send such signals. */
static void signals_do_not_end_the_wait_for_the_agent(void **state)
{
	const struct sigaction action = {.sa_handler = count_signal};
	const struct itimerspec period = {.it_value.tv_nsec = SIGNALS_EVERY,
					  .it_interval.tv_nsec = SIGNALS_EVERY};
	struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1};
	pthread_t answering;
	timer_t timer;

	(void)state;
	event._sigev_un._tid = gettid();
	assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
	assert_int_equal(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
	assert_int_equal(pthread_create(&answering, NULL, answer_late, NULL), 0);
	assert_int_equal(timer_settime(timer, 0, &period, NULL), 0);
	assert_int_equal(
		cuLaunchKernel((CUfunction)0x8000, 1, 1, 1, 32, 1, 1, 0, STREAM(98, 1), NULL, NULL),
		CUDA_SUCCESS);
	timer_delete(timer);
	pthread_join(answering, NULL);
	assert_true(atomic_load(&signals) > 1);
	client = client_find(CONTEXT(98));
	assert_non_null(client);
	assert_non_null(atomic_load(&client->binding));
	context_gone(98);
}

/* Ends while a call of the worker does not return. */
static int stuck_story(void)
{
	driver_load();
	driver->streams_busy = driver->streams_stuck = 1;
	cuLaunchKernel((CUfunction)0x8000, 1, 1, 1, 32, 1, 1, 0, STREAM(1, 1), NULL, NULL);
	return eventually(driver->queries_stuck > 0) ? 0 : 1;
}

static bool has_ended(pid_t child)
{
	siginfo_t info = {0};

	return waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid;
}

static void a_process_ends_while_the_driver_keeps_the_worker(void **state)
{
	int status;

	(void)state;
	pid_t child = fork();
	if (child == 0) {
		execl("/proc/self/exe", "test-thread", "--stuck-story", NULL);
		_exit(3);
	}
	fake_agent_accept(&agent);
	fake_agent_welcome(&agent, 1, 1);
	if (!eventually(has_ended(child)))
		kill(child, SIGKILL);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	close(agent.client);
	agent.client = -1;
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_take_no_signals),
		cmocka_unit_test(without_threads_nothing_is_governed),
		cmocka_unit_test(a_launch_waits_while_another_registers),
		cmocka_unit_test(threads_share_one_client),
		cmocka_unit_test(signals_do_not_end_the_wait_for_the_agent),
		cmocka_unit_test(a_process_ends_while_the_driver_keeps_the_worker),
	};

	if (argc > 1 && strcmp(argv[1], "--stuck-story") == 0)
		return stuck_story();
	driver_load();
	return cmocka_run_group_tests(tests, agent_begin, agent_finish);
}
