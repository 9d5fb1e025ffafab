#include "guest.h"

#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Bindings and pages are kept for the life of the process by intent; see client.c. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}

struct fake_agent agent;
struct null_driver *driver;
static unsigned contexts;

/* How often the thread has slept. False: it is another one, or gone. */
static bool worker_slept(const char *task, unsigned long *times)
{
	char path[128], line[128], *name = NULL;
	bool found = false;

	snprintf(path, sizeof(path), "/proc/self/task/%s/status", task);
	FILE *file = fopen(path, "re");
	if (!file)
		return false;
	while (fgets(line, sizeof(line), file)) {
		name = name ? name : strstr(line, "weir-worker");
		found |= name && sscanf(line, "voluntary_ctxt_switches: %lu", times) == 1;
	}
	fclose(file);
	return found;
}

static unsigned long worker_sleeps(void)
{
	DIR *tasks = opendir("/proc/self/task");
	unsigned long times = 0;

	assert_non_null(tasks);
	for (struct dirent *task; (task = readdir(tasks));)
		if (worker_slept(task->d_name, &times))
			break;
	closedir(tasks);
	return times;
}

void settle(unsigned us)
{
	unsigned long before = worker_sleeps();

	usleep(us);
	assert_true(eventually(worker_sleeps() >= before + 3));
}

void launch_on(CUstream stream, unsigned kernel)
{
	assert_int_equal(cuLaunchKernel(KERNEL(kernel), 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL),
			 CUDA_SUCCESS);
}

unsigned context_new(void)
{
	return ++contexts;
}

unsigned welcomed(uint8_t level, uint8_t bit)
{
	unsigned n = context_new();

	fake_agent_welcome_next(&agent, level, bit);
	launch_on(STREAM(n, 1), n);
	fake_agent_join();
	return n;
}

void gone(unsigned n)
{
	driver->streams_busy = 0;
	assert_int_equal(cuCtxDestroy_v2(CONTEXT(n)), CUDA_SUCCESS);
	if (agent.client >= 0)
		close(agent.client);
	agent.client = -1;
}

void learn(unsigned n, unsigned kernel, uint64_t ns)
{
	driver->elapsed_ns = ns;
	for (int i = 0; i < 8; i++) {
		int before = driver->events_recorded;
		launch_on(STREAM(n, 1), kernel);
		if (driver->events_recorded == before)
			break;
		settle(30000); /* the worker reads the sample */
	}
}

void guest_driver(void)
{
	void *handle = dlopen(NULL_DRIVER, RTLD_NOW | RTLD_NOLOAD);

	assert_non_null(handle);
	driver = dlsym(handle, "null_driver");
	assert_non_null(driver);
}

int guest_begin(void **state)
{
	(void)state;
	setenv("WEIR_DRIVER", NULL_DRIVER, 1);
	setenv("WEIR_FIRST_LAUNCH_MS", "0", 1); /* test-first-launch.c */
	fake_agent_init(&agent);
	return 0;
}

int guest_begin_called(void **state)
{
	guest_begin(state);
	assert_int_equal(cuInit(0), CUDA_SUCCESS);
	guest_driver();
	return 0;
}

int guest_finish(void **state)
{
	(void)state;
	fake_agent_deinit(&agent);
	return 0;
}
