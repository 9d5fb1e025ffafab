/* A process with libweir, from before its first call of CUDA to its end. */
#include "guest.h"

#include <dirent.h>
#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static int entries(const char *folder)
{
	DIR *dir = opendir(folder);
	int n = 0;

	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static void nothing_before_cuda(void **state)
{
	(void)state;
	int fds = entries("/proc/self/fd");
	int threads = getenv("EMULATOR") ? 2 : 1; /* qemu has one of its own */

	assert_int_equal(entries("/proc/self/task"), 2 + threads);
	assert_null(dlsym(RTLD_DEFAULT, "null_driver")); /* the driver is not even loaded */
	assert_int_equal(entries("/proc/self/fd"), fds);

	assert_int_equal(cuInit(0), CUDA_SUCCESS);
	assert_int_equal(entries("/proc/self/task"),
			 2 + threads); /* no thread before the first launch */
	assert_int_equal(entries("/proc/self/fd"), fds);
	guest_driver();
}

static void demand_follows_work(void **state)
{
	(void)state;
	driver->streams_busy = 1;
	unsigned n = welcomed(2, 5);
	assert_int_equal(agent.hello.claimed_bit, WEIR_BIT_NONE);
	assert_int_equal(agent.demand[0]->word, 1u << 5);
	assert_int_equal(agent.demand[1]->word, 1u << 5);
	assert_int_equal(agent.demand[2]->word,
			 0); /* it may not hold its own level or higher ones */

	assert_int_equal(cuStreamSynchronize(STREAM(n, 1)), CUDA_SUCCESS);
	assert_int_equal(agent.demand[0]->word, 0);

	/* Two streams: one finished is not all finished. */
	launch_on(STREAM(n, 1), n);
	launch_on(STREAM(n, 2), n);
	assert_int_equal(cuStreamSynchronize(STREAM(n, 1)), CUDA_SUCCESS);
	assert_int_equal(agent.demand[0]->word, 1u << 5);

	/* Nobody synchronises: the worker sees it. */
	driver->streams_busy = 0;
	assert_true(eventually(agent.demand[0]->word == 0));
	assert_true(eventually(agent.status->launches == 3));
	assert_int_equal(agent.status->level, 2);
	gone(n);
}

static void *change_identity(void *done)
{
	atomic_store((_Atomic int *)done, setuid(getuid()) == 0);
	return NULL;
}

/* libc has each thread of the process do it, by a signal, and waits for all of them. */
static void identity_can_be_changed(void **state)
{
	static _Atomic int done;
	pthread_t thread;

	(void)state;
	unsigned n = welcomed(1, 5);
	assert_int_equal(pthread_create(&thread, NULL, change_identity, &done), 0);
	assert_true(eventually(done == 1));
	pthread_join(thread, NULL);
	gone(n);
}

static CUresult destroy_green(CUcontext context)
{
	return cuGreenCtxDestroy((CUgreenCtx)context);
}

static void leaves_no_demand(CUresult (*destroy)(CUcontext))
{
	struct pollfd end = {.events = POLLIN};
	char byte;

	driver->streams_busy = 1;
	unsigned n = welcomed(3, 0);
	assert_int_equal(agent.demand[2]->word, 1);
	assert_int_equal(destroy(CONTEXT(n)), CUDA_SUCCESS);
	assert_int_equal(agent.demand[0]->word | agent.demand[1]->word | agent.demand[2]->word, 0);
	end.fd = agent.client;
	assert_int_equal(poll(&end, 1, 5000), 1);
	assert_int_equal(recv(agent.client, &byte, 1, 0), 0);
	close(agent.client);
	agent.client = -1;
}

static void dead_context_leaves_no_demand(void **state)
{
	(void)state;
	leaves_no_demand(cuCtxDestroy_v2);
	leaves_no_demand(destroy_green);
}

/* The driver destroys no primary context. The next launch is governed again. */
static void refused_end_is_no_end(void **state)
{
	(void)state;
	driver->streams_busy = 1;
	unsigned n = welcomed(2, 5);
	driver->destroy_fails = CUDA_ERROR_INVALID_CONTEXT;
	assert_int_equal(cuCtxDestroy_v2(CONTEXT(n)), CUDA_ERROR_INVALID_CONTEXT);
	driver->destroy_fails = 0;
	close(agent.client);
	fake_agent_welcome_next(&agent, 2, 6);
	launch_on(STREAM(n, 1), n);
	fake_agent_join();
	assert_true(eventually(agent.demand[0]->word & 1u << 6));
	driver->streams_busy = 0;
	gone(n);
}

/* A program may live on for long with a context in which a kernel failed (a notebook does), and all
 * that is asked about it is answered with that error. */
static void broken_context_has_no_demand(void **state)
{
	(void)state;
	driver->streams_busy = driver->events_busy = 1;
	unsigned n = welcomed(2, 5);
	cuCtxSetCurrent(CONTEXT(n));
	launch_on(CU_STREAM_PER_THREAD, n);
	usleep(20000);
	assert_int_equal(agent.demand[0]->word, 1u << 5);
	driver->broken = CUDA_ERROR_ILLEGAL_ADDRESS;
	bool cleared = eventually(agent.demand[0]->word == 0 && !agent.status->outstanding);
	launch_on(CU_STREAM_PER_THREAD, n);
	launch_on(STREAM(n, 1), n);
	bool again = eventually(agent.demand[0]->word == 0 && !agent.status->outstanding);
	driver->broken = driver->events_busy = 0;
	cuCtxSetCurrent(NULL);
	gone(n);
	assert_true(cleared);
	assert_true(again);
}

static void top_level_has_no_gates(void **state)
{
	(void)state;
	unsigned n = welcomed(3, 1);
	int before = driver->gates;

	for (unsigned i = 0; i < 100; i++)
		launch_on(STREAM(n, 1), 400 + i);
	assert_int_equal(driver->gates, before);
	gone(n);
}

static void streams_come_and_go(void **state)
{
	(void)state;
	driver->streams_busy = 1;
	unsigned n = welcomed(2, 4);
	cuStreamSynchronize(STREAM(n, 1));
	for (int i = 0; i < 20000; i++) {
		launch_on(STREAM(n, 2 + i % 8), n);
		assert_int_equal(cuStreamDestroy_v2(STREAM(n, 2 + i % 8)), CUDA_SUCCESS);
	}
	assert_true(
		eventually(agent.demand[0]->word == 0)); /* a destroyed stream counts as finished */
	assert_true(eventually(agent.status->launches == 20001));
	gone(n);
}

static void *per_thread_launch(void *context)
{
	cuCtxSetCurrent(context);
	launch_on(CU_STREAM_PER_THREAD, 1);
	return NULL;
}

static void default_streams(void **state)
{
	pthread_t thread;

	(void)state;
	driver->streams_busy = 1;
	unsigned n = welcomed(1, 6);
	cuStreamSynchronize(STREAM(n, 1));
	assert_int_equal(agent.demand[0]->word, 0);

	cuCtxSetCurrent(CONTEXT(n));
	launch_on(NULL, n); /* the legacy stream, whichever of its names is used */
	assert_int_equal(agent.demand[0]->word, 1u << 6);
	cuStreamSynchronize(CU_STREAM_LEGACY);
	assert_true(
		eventually(agent.demand[0]->word == 0)); /* it lingered: the launches were close */

	/* A per-thread stream, which only its thread can name: the worker sees it run dry all the
	 * same. */
	launch_on(CU_STREAM_PER_THREAD, n);
	assert_int_equal(agent.demand[0]->word, 1u << 6);
	assert_true(eventually(agent.demand[0]->word == 0));

	/* Threads end: their streams end with them, and their demand. */
	for (int i = 0; i < 3000; i++) {
		pthread_create(&thread, NULL, per_thread_launch, CONTEXT(n));
		pthread_join(thread, NULL);
	}
	assert_true(eventually(agent.demand[0]->word == 0));
	cuCtxSetCurrent(NULL);
	gone(n);
}

static void forked_child_is_nobody(void **state)
{
	struct pollfd end = {.events = POLLIN};
	int status;

	(void)state;
	if (getenv("EMULATOR")) /* cannot execute programs */
		skip();
	/* The parent of this story is itself a child, so that it can be killed. */
	pid_t parent = fork();
	if (parent == 0) {
		/* CUDA was used before the fork, so here nothing is governed; a new process starts
		 * afresh. */
		execl("/proc/self/exe", "test-guest", "--fork-story", NULL);
		_exit(1);
	}
	fake_agent_accept(&agent);
	fake_agent_welcome(&agent, 2, 2);
	assert_true(eventually(agent.demand[0]->word == 1u << 2));
	end.fd = agent.client;
	assert_int_equal(poll(&end, 1, 5000), 1); /* end of file, though a child of it lives on */
	assert_int_equal(waitpid(parent, &status, 0), parent);
	agent.demand[0]->word = agent.demand[1]->word = 0;
	close(agent.client);
	agent.client = -1;
}

/* Launches, forks a child that outlives it, and dies. */
static int fork_story(void)
{
	cuInit(0);
	launch_on(STREAM(1, 1), 1);
	if (fork() == 0) {
		cuLaunchKernel(KERNEL(1), 1, 1, 1, 32, 1, 1, 0, STREAM(1, 1), NULL, NULL);
		sleep(2);
		_exit(0);
	}
	kill(getpid(), SIGKILL);
	return 1;
}

static void every_hook_is_handed_out(void **state)
{
	static const char *const names[] = {"cuInit", "cuLaunchKernel", "cuGraphLaunch",
					    "cuStreamDestroy_v2", "cuCtxDestroy_v2"};
	void *function;

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		assert_int_equal(cuGetProcAddress_v2(names[i], &function, 13000, 0, NULL),
				 CUDA_SUCCESS);
		assert_ptr_equal(function, dlsym(RTLD_DEFAULT, names[i]));
	}
	/* Others are the driver's own. */
	assert_int_equal(cuGetProcAddress_v2("cuStreamQuery", &function, 13000, 0, NULL),
			 CUDA_SUCCESS);
	assert_ptr_equal(function, dlsym(RTLD_DEFAULT, "cuStreamQuery"));
	assert_int_equal(cuGetProcAddress_v2("cuMemHostAlloc", &function, 13000, 0, NULL),
			 CUDA_SUCCESS);
	assert_ptr_not_equal(function, dlsym(RTLD_DEFAULT, "cuMemHostAlloc"));
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_before_cuda),
		cmocka_unit_test(demand_follows_work),
		cmocka_unit_test(identity_can_be_changed),
		cmocka_unit_test(dead_context_leaves_no_demand),
		cmocka_unit_test(refused_end_is_no_end),
		cmocka_unit_test(broken_context_has_no_demand),
		cmocka_unit_test(top_level_has_no_gates),
		cmocka_unit_test(streams_come_and_go),
		cmocka_unit_test(default_streams),
		cmocka_unit_test(forked_child_is_nobody),
		cmocka_unit_test(every_hook_is_handed_out),
	};

	if (argc > 1 && strcmp(argv[1], "--fork-story") == 0)
		return fork_story();
	return cmocka_run_group_tests(tests, guest_begin, guest_finish);
}
