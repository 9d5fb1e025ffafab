#include "inside.h"

#include "client/worker.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

/* Bindings and pages are kept for the life of the process by intent; see client.c. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}

struct fake_agent agent;
struct null_driver *driver;
struct client *client;
static unsigned contexts;

#define LOOKS 8

void driver_load(void)
{
	setenv("WEIR_DRIVER", NULL_DRIVER, 1);
	setenv("WEIR_FIRST_LAUNCH_MS", "0", 1); /* test-first-launch.c */
	cuInit(0);
	driver = dlsym(dlopen(NULL_DRIVER, RTLD_NOW | RTLD_NOLOAD), "null_driver");
}

int agent_begin(void **state)
{
	(void)state;
	fake_agent_init(&agent);
	return 0;
}

int agent_finish(void **state)
{
	(void)state;
	fake_agent_deinit(&agent);
	return 0;
}

unsigned context_welcomed(uint8_t level)
{
	return context_welcomed_as(level, 1);
}

unsigned context_welcomed_as(uint8_t level, uint8_t bit)
{
	unsigned n = ++contexts;

	fake_agent_welcome_next(&agent, level, bit);
	cuLaunchKernel((CUfunction)0x8000, 1, 1, 1, 32, 1, 1, 0, STREAM(n, 1), NULL, NULL);
	fake_agent_join();
	cuCtxSetCurrent(CONTEXT(n));
	client = client_find(CONTEXT(n));
	assert_non_null(client);
	return n;
}

void context_gone(unsigned n)
{
	assert_int_equal(cuCtxDestroy_v2(CONTEXT(n)), CUDA_SUCCESS);
	if (agent.client >= 0)
		close(agent.client);
	agent.client = -1;
	cuCtxSetCurrent(NULL);
}

void measure_next(void)
{
	atomic_store(&sampler_of(client)->due, SAMPLE_DOUBTED);
}

void hold(uint32_t is)
{
	atomic_store(&agent.control->hold_until, client_now() + 3600 * NS_PER_S);
	atomic_store(&agent.control->hold, is);
}

/* Each look tells a time with work. */
void looks(void)
{
	for (int i = 0; i < LOOKS; i++) {
		uint64_t before = atomic_load(&agent.status->demand_time);
		assert_true(eventually((worker_wake(), atomic_load(&agent.status->demand_time)) !=
				       before));
	}
}
