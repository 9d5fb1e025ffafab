#include "guest.h"

#include <dlfcn.h>
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
		usleep(30000); /* the worker reads the sample */
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
