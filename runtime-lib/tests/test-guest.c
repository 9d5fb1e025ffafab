/* libweir as an application meets it, on a driver that does nothing but be observable, with an
 * agent that says what the test wants. Linked against libweir.so by its SONAME, as every CUDA
 * program is. */
#include "fake-agent.h"
#include "null-driver.h"

#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

#include <dirent.h>
#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define CONTEXT(n)   ((CUcontext)(uintptr_t)(0x10000 + 0x100 * (n)))
#define STREAM(n, s) ((CUstream)(uintptr_t)(0x10000 + 0x100 * (n) + 8 * (s)))
#define KERNEL(n)    ((CUfunction)(uintptr_t)(0x9000 + 0x10 * (n)))

/* Standings and pages are kept for the life of the process by intent; see client.c. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}

static struct fake_agent agent;
static struct null_driver *driver;
static unsigned contexts; /* each test uses one of its own */

static int entries(const char *folder)
{
	DIR *dir = opendir(folder);
	int n = 0;

	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static void launch_on(CUstream stream, unsigned kernel)
{
	assert_int_equal(cuLaunchKernel(KERNEL(kernel), 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL),
			 CUDA_SUCCESS);
}

/* A context whose first launch has been welcomed at @level. */
static unsigned welcomed(uint8_t level, uint8_t bit)
{
	unsigned n = ++contexts;

	fake_agent_welcome_next(&agent, level, bit);
	launch_on(STREAM(n, 1), n);
	fake_agent_join();
	return n;
}

static void gone(unsigned n)
{
	driver->streams_busy = 0;
	assert_int_equal(cuCtxDestroy_v2(CONTEXT(n)), CUDA_SUCCESS);
	if (agent.client >= 0)
		close(agent.client);
	agent.client = -1;
}

/* Teaches the kernel a time: its first launches are sampled. */
static void learn(unsigned n, unsigned kernel, uint64_t ns)
{
	driver->elapsed_ns = ns;
	for (int i = 0; i < 8; i++) {
		int before = driver->events_recorded;
		launch_on(STREAM(n, 1), kernel);
		if (driver->events_recorded == before)
			break;
		usleep(30000); /* the worker reads the sample */
	}
}

static void nothing_before_cuda(void **state)
{
	(void)state;
	int fds = entries("/proc/self/fd");
	assert_int_equal(entries("/proc/self/task"), 2 + 1);
	assert_null(dlsym(RTLD_DEFAULT, "null_driver")); /* the driver is not even loaded */
	assert_int_equal(entries("/proc/self/fd"), fds);

	assert_int_equal(cuInit(0), CUDA_SUCCESS);
	assert_int_equal(entries("/proc/self/task"), 2 + 1); /* no thread before the first launch */
	assert_int_equal(entries("/proc/self/fd"), fds);

	void *handle = dlopen(NULL_DRIVER, RTLD_NOW | RTLD_NOLOAD);
	assert_non_null(handle);
	driver = dlsym(handle, "null_driver");
	assert_non_null(driver);
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
			 0); /* its own level and those above are not its to hold */

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

static void dead_context_leaves_no_demand(void **state)
{
	struct pollfd end = {.events = POLLIN};
	char byte;

	(void)state;
	driver->streams_busy = 1;
	unsigned n = welcomed(3, 0);
	assert_int_equal(agent.demand[2]->word, 1);
	assert_int_equal(cuCtxDestroy_v2(CONTEXT(n)), CUDA_SUCCESS);
	assert_int_equal(agent.demand[0]->word | agent.demand[1]->word | agent.demand[2]->word, 0);
	end.fd = agent.client;
	assert_int_equal(poll(&end, 1, 5000), 1);
	assert_int_equal(recv(agent.client, &byte, 1, 0), 0);
	close(agent.client);
	agent.client = -1;
}

static void gates_by_predicted_work(void **state)
{
	(void)state;
	unsigned n = welcomed(0, 1);
	int none;

	assert_int_equal(driver->waits_in_gates, driver->gates); /* one wait a gate */
	/* 50 us each. With nobody above a gate after each 1000 us: each twentieth launch. */
	learn(n, 100, 50000);
	usleep(100000);
	none = driver->gates;
	for (int i = 0; i < 100; i++)
		launch_on(STREAM(n, 1), 100);
	assert_in_range(driver->gates - none, 4, 6);

	/* Somebody is above: after each 400 us, each eighth launch. */
	agent.control->above = 1;
	usleep(100000);
	none = driver->gates;
	for (int i = 0; i < 51; i++)
		launch_on(STREAM(n, 1), 100);
	assert_in_range(driver->gates - none, 6, 7);

	/* Dense, each second launch, after demand was seen. */
	agent.demand[0]->word = 1;
	launch_on(STREAM(n, 1), 100);
	usleep(50000);
	agent.demand[0]->word = 0;
	none = driver->gates;
	for (int i = 0; i < 50; i++)
		launch_on(STREAM(n, 1), 100);
	assert_in_range(driver->gates - none, 24, 26);

	/* Denser, each launch, beside three that run at the same time. */
	agent.control->beside = 4;
	usleep(50000);
	none = driver->gates;
	for (int i = 0; i < 50; i++)
		launch_on(STREAM(n, 1), 100);
	assert_in_range(driver->gates - none, 49, 50);
	agent.control->beside = 0;
	usleep(50000);

	/* A kernel of unknown time may be long: a gate before the next. */
	int before = driver->gates;
	for (unsigned i = 0; i < 10; i++)
		launch_on(STREAM(n, 1), 200 + i);
	assert_in_range(driver->gates - before, 9, 10);

	/* The policy may hold: the gate waits for that as well. */
	agent.control->flags = WEIR_CONTROL_HOLDABLE;
	int gates = driver->gates, waits = driver->waits_in_gates;
	launch_on(STREAM(n, 1), 300);
	launch_on(STREAM(n, 1), 301);
	assert_true(driver->gates > gates);
	assert_int_equal(driver->waits_in_gates - waits, 2 * (driver->gates - gates));

	/* With nobody above gates are dense as long as equals have work; equals that have none cost
	 * nothing. What came before is forgotten after a second. */
	agent.control->above = 0;
	usleep(1300000);
	gates = driver->gates;
	for (int i = 0; i < 100; i++)
		launch_on(STREAM(n, 1), 100);
	assert_in_range(driver->gates - gates, 4, 7);
	agent.control->flags = WEIR_CONTROL_HOLDABLE | WEIR_CONTROL_CONTENDED;
	usleep(100000);
	gates = driver->gates;
	for (int i = 0; i < 50; i++)
		launch_on(STREAM(n, 1), 100);
	assert_in_range(driver->gates - gates, 24, 26);
	agent.control->flags = 0;
	gone(n);
}

/* Which the gate would lengthen. */
static void short_kernels_go_before_a_gate(void **state)
{
	(void)state;
	unsigned n = welcomed(0, 1);

	learn(n, 160, 2000000);
	learn(n, 161, 20000);
	usleep(100000);
	for (int round = 0; round < 3; round++) {
		int gates = driver->gates;
		launch_on(STREAM(n, 1), 160);
		assert_int_equal(driver->gates - gates, round > 0); /* since the last round */
		gates = driver->gates;
		for (int i = 0; i < 5; i++)
			launch_on(STREAM(n, 1), 161);
		assert_int_equal(driver->gates, gates);
	}
	/* But not many of them. */
	int gates = driver->gates;
	launch_on(STREAM(n, 1), 161);
	assert_int_equal(driver->gates, gates + 1);
	/* And none while those above come and go. */
	agent.control->above = 1;
	agent.demand[0]->word = 1;
	launch_on(STREAM(n, 1), 160);
	usleep(50000);
	agent.demand[0]->word = 0;
	gates = driver->gates;
	launch_on(STREAM(n, 1), 161);
	assert_int_equal(driver->gates, gates + 1);
	gone(n);
	agent.control->above = 0;
}

static void progress_is_told(void **state)
{
	(void)state;
	unsigned n = welcomed(0, 1);

	learn(n, 100, 50000);
	assert_true(eventually(agent.status->outstanding == 0));
	usleep(50000); /* all of the page is of this client, and of now */
	uint64_t before = agent.status->executed;
	driver->streams_busy = driver->events_busy = 1;
	for (int i = 0; i < 4; i++)
		launch_on(STREAM(n, 1), 100);
	/* Less what the kernels may have run meanwhile. */
	assert_true(eventually(atomic_load(&agent.status->remaining) != 0));
	assert_in_range(agent.status->remaining, 1, 4 * 50000);
	assert_int_equal(agent.status->executed, before);

	/* Equals contend: what is finished is seen though the stream never runs dry. */
	agent.control->flags = WEIR_CONTROL_HOLDABLE | WEIR_CONTROL_CONTENDED;
	usleep(50000);
	launch_on(STREAM(n, 1), 100); /* with a marker behind it */
	launch_on(STREAM(n, 1), 100);
	usleep(50000);
	assert_int_equal(agent.status->executed, before);
	driver->events_busy = 0;
	assert_true(eventually(agent.status->executed == before + 5 * 50000));
	assert_true(eventually(agent.status->remaining <= 50000));
	assert_true(agent.status->remaining > 0);
	assert_int_equal(cuStreamSynchronize(STREAM(n, 1)), CUDA_SUCCESS);
	assert_true(eventually(agent.status->executed == before + 6 * 50000));
	assert_true(eventually(agent.status->remaining == 0));
	agent.control->flags = 0;
	gone(n);
}

/* What ran before a gate is known, though it is closed and the stream never runs dry. */
static void progress_at_gates_is_told(void **state)
{
	(void)state;
	unsigned n = welcomed(0, 1);

	learn(n, 110, 50000);
	assert_true(eventually(agent.status->outstanding == 0));
	agent.control->flags = WEIR_CONTROL_HOLDABLE | WEIR_CONTROL_CONTENDED;
	driver->streams_busy = driver->events_busy = 1;
	launch_on(STREAM(n, 1), 110);
	usleep(100000); /* markers are wanted */
	uint64_t before = agent.status->executed;
	for (int i = 0; i < 20; i++)
		launch_on(STREAM(n, 1), 110);
	assert_int_equal(agent.status->executed, before);
	driver->events_busy = 0;
	assert_true(eventually(agent.status->executed >= before + 18 * 50000));
	assert_true(agent.status->executed < before + 21 * 50000);
	assert_int_equal(cuStreamSynchronize(STREAM(n, 1)), CUDA_SUCCESS);
	agent.control->flags = 0;
	gone(n);
}

static void late_starts_are_counted(void **state)
{
	(void)state;
	agent.control->latency_slo = 10000000;
	unsigned n = welcomed(0, 1);

	assert_true(
		eventually(agent.status->starts == 1)); /* the first launch, behind an open gate */
	driver->streams_busy = 1;
	for (int i = 0; i < 3; i++) /* the first of them finds nothing outstanding */
		launch_on(STREAM(n, 2), 700);
	assert_true(eventually(agent.status->starts == 2));
	assert_int_equal(agent.status->starts_late, 0);

	agent.demand[0]->word = 1;
	launch_on(STREAM(n, 3), 701);
	launch_on(STREAM(n, 4), 702); /* waits with it */
	usleep(50000);
	assert_int_equal(agent.status->starts, 2); /* not yet */
	agent.demand[0]->word = 0;
	assert_true(eventually(agent.status->starts == 3));
	assert_int_equal(agent.status->starts_late, 1);

	agent.control->latency_slo = UINT64_MAX; /* who waits that long is not late */
	agent.demand[0]->word = 1;
	launch_on(STREAM(n, 5), 703);
	usleep(50000);
	agent.demand[0]->word = 0;
	assert_true(eventually(agent.status->starts == 4));
	assert_int_equal(agent.status->starts_late, 1);
	agent.control->latency_slo = 0;
	gone(n);
}

/* No gate is closed, but others' kernels have the GPU. */
static void starts_behind_others_are_late(void **state)
{
	(void)state;
	unsigned n = welcomed(0, 1);

	learn(n, 710, 50000);
	assert_int_equal(cuStreamSynchronize(STREAM(n, 1)), CUDA_SUCCESS);
	agent.control->latency_slo = 10000000;
	usleep(50000); /* all of the page is of now */
	uint64_t starts = agent.status->starts, late = agent.status->starts_late;
	launch_on(STREAM(n, 2), 710);
	assert_true(eventually(agent.status->starts == starts + 1));
	driver->streams_busy = 1;
	driver->last_busy = 1;
	launch_on(STREAM(n, 3), 710);
	usleep(60000);
	assert_int_equal(agent.status->starts, starts + 1); /* not yet */
	driver->last_busy = 0;
	assert_true(eventually(agent.status->starts == starts + 2));
	assert_int_equal(agent.status->starts_late, late + 1);
	agent.control->latency_slo = 0;
	gone(n);
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

static void level_changes_live(void **state)
{
	(void)state;
	driver->streams_busy = 1;
	unsigned n = welcomed(2, 7);
	assert_int_equal(agent.demand[1]->word, 1u << 7);

	fake_agent_level(&agent,
			 1); /* lowered: at once, and out of the word it may no longer hold */
	assert_true(eventually(agent.demand[1]->word == 0));
	assert_int_equal(agent.demand[0]->word, 1u << 7);
	assert_true(eventually(agent.status->level == 1));

	/* Raised: not while a gate of the lower level may be ahead of it, or it would wait for
	 * itself. */
	fake_agent_level(&agent, 3);
	usleep(100000);
	assert_int_equal(agent.demand[2]->word, 0);
	driver->streams_busy = 0;
	assert_int_equal(cuStreamSynchronize(STREAM(n, 1)), CUDA_SUCCESS);
	assert_true(eventually(agent.status->level == 3));
	driver->streams_busy = 1;
	launch_on(STREAM(n, 1), n);
	assert_int_equal(agent.demand[2]->word, 1u << 7);
	gone(n);
}

/* The priority with which the next launch reaches the driver; 1: none. */
static int priority_of_launch(CUstream stream)
{
	driver->n_ops = 0;
	launch_on(stream, 600);
	assert_true(driver->n_ops >= 1);
	return driver->ops[driver->n_ops - 1].priority;
}

static int priority_of_config(CUstream stream, CUlaunchAttribute *attributes, unsigned n)
{
	CUlaunchConfig config = {
		.gridDimX = 1,
		.gridDimY = 1,
		.gridDimZ = 1,
		.blockDimX = 32,
		.blockDimY = 1,
		.blockDimZ = 1,
		.hStream = stream,
		.attrs = attributes,
		.numAttrs = n,
	};

	driver->n_ops = 0;
	assert_int_equal(cuLaunchKernelEx(&config, KERNEL(601), NULL, NULL), CUDA_SUCCESS);
	assert_true(driver->n_ops >= 1);
	return driver->ops[driver->n_ops - 1].priority;
}

/* Of the driver's 0..-5 each level has a part; the program's own order within it stays. */
static void launches_have_their_levels_priority(void **state)
{
	static const int plain[] = {1, -1, -3, -5}, ahead[] = {0, -2, -4, -5};
	CUlaunchAttribute attributes[2] = {{.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE},
					   {.id = CU_LAUNCH_ATTRIBUTE_PRIORITY}};

	(void)state;
	driver->mps = 1;
	for (uint8_t level = 0; level < WEIR_LEVELS; level++) {
		driver->priority = 0;
		unsigned n = welcomed(level, 9);
		agent.control->beside = 0;
		assert_int_equal(priority_of_launch(STREAM(n, 1)), 1); /* nobody is beside */
		agent.control->beside = 1;
		assert_int_equal(priority_of_launch(STREAM(n, 1)), plain[level]);
		driver->priority = -3;
		assert_int_equal(priority_of_launch(STREAM(n, 2)), ahead[level]);
		assert_int_equal(priority_of_config(STREAM(n, 2), attributes, 1), ahead[level]);
		assert_int_equal(driver->ops[driver->n_ops - 1].attributes, 2);
		attributes[1].value.priority = -2; /* the program's own */
		assert_int_equal(priority_of_config(STREAM(n, 2), attributes, 2), -2);
		agent.control->beside = 0;
		gone(n);
	}
	driver->priority = 0;
	driver->mps = 0;
}

static void priorities_may_be_unknown(void **state)
{
	(void)state;
	unsigned n = welcomed(2, 9); /* not below MPS */
	agent.control->beside = 1;
	assert_int_equal(priority_of_launch(STREAM(n, 1)), 1);
	gone(n);

	driver->mps = 1;
	n = welcomed(2, 9);
	driver->priorities_fail = CUDA_ERROR_INVALID_VALUE;
	assert_int_equal(priority_of_launch(STREAM(n, 1)), 1); /* launched as it is */
	driver->priorities_fail = CUDA_ERROR_NOT_SUPPORTED;
	assert_int_equal(priority_of_launch(STREAM(n, 1)), 1);
	driver->priorities_fail = 0;
	assert_int_equal(priority_of_launch(STREAM(n, 1)), 1); /* not tried again */
	agent.control->beside = 0;
	driver->mps = 0;
	gone(n);
}

static void *launch_beside(void *stream)
{
	launch_on(stream, 500);
	return NULL;
}

/* Its gate is of the level that it began with. */
static void who_is_raised_waits_for_launches_under_way(void **state)
{
	unsigned n = welcomed(0, 9);
	pthread_t beside;

	(void)state;
	driver->launches_stuck = 1;
	assert_int_equal(pthread_create(&beside, NULL, launch_beside, STREAM(n, 1)), 0);
	bool under_way = eventually(driver->launches_waiting == 1);
	fake_agent_level(&agent, 2);
	usleep(100000);
	int level = (int)agent.status->level;
	driver->launches_stuck = 0;
	pthread_join(beside, NULL);
	assert_true(under_way);
	assert_int_equal(level, 0);
	assert_true(eventually(agent.status->level == 2));
	gone(n);
}

static void graphs_keep_their_level(void **state)
{
	(void)state;
	unsigned n = welcomed(0, 9);
	CUgraph graph;

	int before = driver->gates, events = driver->events_recorded;
	cuStreamBeginCapture_v2(STREAM(n, 1), CU_STREAM_CAPTURE_MODE_GLOBAL);
	driver->capturing = 1;
	for (unsigned i = 0; i < 100; i++)
		launch_on(STREAM(n, 1), 600);
	driver->capturing = 0;
	cuStreamEndCapture(STREAM(n, 1), &graph);
	assert_true(driver->gates > before); /* nodes of the graph, though nobody is above now */
	assert_int_equal(driver->events_recorded, events); /* but no samples */

	/* Its replays wait for the word of level 0: raised, it would wait for its own demand. */
	fake_agent_level(&agent, 2);
	usleep(100000);
	assert_int_equal(agent.status->level, 0);
	gone(n);
}

static void agent_dies_and_returns(void **state)
{
	(void)state;
	/* Its markers, too: the worker leaves some as soon as it sees the hold. */
	driver->streams_busy = driver->events_busy = 1;
	unsigned n = welcomed(1, 11);
	agent.control->hold = 1;
	fake_agent_stop(&agent);
	assert_true(eventually(agent.control->hold == 0)); /* nobody is left to open it */
	assert_int_equal(agent.demand[0]->word, 1u << 11); /* the level stays */
	launch_on(STREAM(n, 1), n);

	fake_agent_start(&agent);
	fake_agent_accept(&agent);
	assert_int_equal(agent.hello.claimed_bit, 11);
	int registered = driver->registered;
	fake_agent_welcome(&agent, 1, 12); /* the old bit was given away */
	assert_true(eventually(agent.demand[0]->word == 1u << 12));
	assert_int_equal(driver->registered, registered); /* the same pages again */
	driver->events_busy = 0;
	gone(n);
}

/* The driver takes the next agent's pages late, and that agent has spoken of a level by then. */
static void next_agent_is_obeyed(void **state)
{
	(void)state;
	driver->streams_busy = 1;
	unsigned n = welcomed(2, 11);
	fake_agent_stop(&agent);
	fake_agent_renew(&agent);

	driver->pages_refused = 0;
	driver->refuses_pages = 1;
	fake_agent_start(&agent);
	fake_agent_accept(&agent);
	fake_agent_welcome(&agent, 2, 11);
	assert_true(eventually(driver->pages_refused));
	assert_int_equal(agent.demand[0]->word, 1u << 11); /* as the last one said, until then */
	assert_int_equal(agent.demand[1]->word, 1u << 11);
	fake_agent_level(&agent, 1);
	driver->refuses_pages = 0;
	assert_true(eventually(agent.demand[1]->word == 0));
	assert_int_equal(agent.demand[0]->word, 1u << 11);
	assert_true(eventually(agent.status->level == 1 && agent.status->outstanding));
	gone(n);
}

/* A context is new, and the driver has no memory for a page of its agent. */
static void first_pages_are_taken_later(void **state)
{
	(void)state;
	driver->streams_busy = 1;
	driver->refuses_pages = 1;
	unsigned n = welcomed(2, 11);
	assert_int_equal(agent.demand[0]->word, 0);
	driver->refuses_pages = 0;
	assert_true(eventually(agent.status->level == 2));
	launch_on(STREAM(n, 1), n);
	assert_int_equal(agent.demand[0]->word, 1u << 11);
	gone(n);
}

/* An agent that is stopped does not renew its holds. */
static void forgotten_holds_end(void **state)
{
	(void)state;
	driver->streams_busy = 1;
	unsigned n = welcomed(1, 11);
	agent.control->hold_until = 0; /* an agent that says no time */
	agent.control->hold = 1;
	usleep(600000);
	assert_int_equal(agent.control->hold, 1);
	agent.control->hold_until = UINT64_MAX;
	usleep(600000);
	assert_int_equal(agent.control->hold, 1);
	agent.control->hold_until = 1;
	assert_true(eventually(agent.control->hold == 0));

	/* The worker is in a driver call that waits behind a closed gate. */
	driver->streams_stuck = 1;
	usleep(50000);
	agent.control->hold_until = 1;
	agent.control->hold = 1;
	bool opened = eventually(agent.control->hold == 0);
	driver->streams_stuck = 0;
	assert_true(opened);
	agent.control->hold_until = 0;
	gone(n);
}

static void shared_bit_is_the_agents(void **state)
{
	(void)state;
	driver->streams_busy = 1;
	unsigned n = welcomed(2, WEIR_BIT_SHARED);
	assert_int_equal(agent.demand[0]->word, 0);
	assert_true(eventually(agent.status->outstanding == 1));

	agent.demand[0]->word = agent.demand[1]->word = 1ull << WEIR_BIT_SHARED | 1;
	fake_agent_stop(&agent); /* nobody is left to clear it */
	assert_true(eventually(agent.demand[0]->word == 1 && agent.demand[1]->word == 1));
	agent.demand[0]->word = agent.demand[1]->word = 0;
	fake_agent_start(&agent);
	gone(n);
}

static void hostile_agent(void **state)
{
	(void)state;
	/* A page shorter than a page would be a SIGBUS. */
	assert_int_equal(ftruncate(agent.control_fd, 100), 0);
	unsigned n = welcomed(2, 3);
	assert_int_equal(agent.demand[0]->word, 0); /* not governed, and alive */
	assert_int_equal(ftruncate(agent.control_fd, WEIR_PAGE_SIZE), 0);
	gone(n);

	n = welcomed(2, 3);
	for (int i = 0; i < 1000; i++) {
		uint8_t junk[WEIR_MESSAGE_MAX];
		for (size_t k = 0; k < sizeof(junk); k++)
			junk[k] = (uint8_t)rand();
		if (i % 2)
			weir_header_init((struct weir_header *)junk,
					 (enum weir_message_type)(rand() % 6),
					 (size_t)rand() % 400);
		send(agent.client, junk, (size_t)rand() % sizeof(junk) + 1, MSG_NOSIGNAL);
	}
	fake_agent_level(&agent, 1);
	assert_true(eventually(agent.status->level == 1)); /* still listening to sense */
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
		eventually(agent.demand[0]->word == 0)); /* what was destroyed is not waited for */
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

static int begin(void **state)
{
	(void)state;
	fake_agent_init(&agent);
	return 0;
}

static int finish(void **state)
{
	(void)state;
	fake_agent_deinit(&agent);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_before_cuda),
		cmocka_unit_test(demand_follows_work),
		cmocka_unit_test(dead_context_leaves_no_demand),
		cmocka_unit_test(gates_by_predicted_work),
		cmocka_unit_test(short_kernels_go_before_a_gate),
		cmocka_unit_test(progress_is_told),
		cmocka_unit_test(progress_at_gates_is_told),
		cmocka_unit_test(late_starts_are_counted),
		cmocka_unit_test(starts_behind_others_are_late),
		cmocka_unit_test(top_level_has_no_gates),
		cmocka_unit_test(level_changes_live),
		cmocka_unit_test(who_is_raised_waits_for_launches_under_way),
		cmocka_unit_test(launches_have_their_levels_priority),
		cmocka_unit_test(priorities_may_be_unknown),
		cmocka_unit_test(graphs_keep_their_level),
		cmocka_unit_test(agent_dies_and_returns),
		cmocka_unit_test(next_agent_is_obeyed),
		cmocka_unit_test(first_pages_are_taken_later),
		cmocka_unit_test(forgotten_holds_end),
		cmocka_unit_test(shared_bit_is_the_agents),
		cmocka_unit_test(hostile_agent),
		cmocka_unit_test(streams_come_and_go),
		cmocka_unit_test(default_streams),
		cmocka_unit_test(forked_child_is_nobody),
		cmocka_unit_test(every_hook_is_handed_out),
	};

	setenv("WEIR_DRIVER", NULL_DRIVER, 1);
	if (argc > 1 && strcmp(argv[1], "--fork-story") == 0)
		return fork_story();
	return cmocka_run_group_tests(tests, begin, finish);
}
