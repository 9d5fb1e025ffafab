/* Allocations that wait while the GPU is full: for how long, who ends it, and what goes on
 * meanwhile. On the null driver. */
#include "memory/memory-account.h"
#include "memory/memory.h"
#include "limited.h"
#include "null-driver.h"

#include "weir/base.h"

#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define LONG 3600000u /* ms */

static struct null_driver *driver;

static int begin(void **state)
{
	limited_begin(state);
	driver = dlsym(dlopen(NULL_DRIVER, RTLD_NOLOAD | RTLD_LAZY), "null_driver");
	assert_non_null(driver);
	return 0;
}

/* An allocation of 4 MiB on a thread of its own, and the agent's end of its connection. */
struct waiter {
	pthread_t thread;
	CUdeviceptr address;
	CUresult result;
	int fd;
};

static void *allocate(void *argument)
{
	struct waiter *waiter = argument;

	waiter->result = cuMemAlloc_v2(&waiter->address, 4 * MIB);
	return NULL;
}

static void waiter_start(struct waiter *waiter, uint32_t ms)
{
	union weir_message message;

	limited.limit->wait_ms = ms;
	assert_int_equal(pthread_create(&waiter->thread, NULL, allocate, waiter), 0);
	waiter->fd = limited_hear(&message);
	assert_int_equal(message.header.type, WEIR_MEMORY_WAITS);
	assert_true(message.memory_waits.bytes == 4 * MIB);
}

/* The connection ends with the wait. */
static CUresult waiter_end(struct waiter *waiter)
{
	struct pollfd wait = {.fd = waiter->fd, .events = POLLIN};

	if (waiter->fd >= 0) {
		assert_int_equal(poll(&wait, 1, EVENTUALLY_MS), 1);
		assert_true(wait.revents & POLLHUP);
		close(waiter->fd);
	}
	pthread_join(waiter->thread, NULL);
	return waiter->result;
}

static void it_fails_at_once_by_default(void **state)
{
	struct pollfd quiet = {.fd = limited.agent.listener, .events = POLLIN};
	CUdeviceptr address;

	(void)state;
	limited.limit->wait_ms = 0;
	driver->full = 1;
	assert_int_equal(cuMemAlloc_v2(&address, MIB), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(driver->full, 0);
	assert_int_equal(poll(&quiet, 1, 0), 0);
	assert_true(reserved() == 0);
}

/* Its own limit is nothing that others free. */
static void it_does_not_wait_at_its_limit(void **state)
{
	struct pollfd quiet = {.fd = limited.agent.listener, .events = POLLIN};
	CUdeviceptr address;

	(void)state;
	limited.limit->wait_ms = LONG;
	assert_int_equal(cuMemAlloc_v2(&address, 10 * MIB), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(poll(&quiet, 1, 0), 0);
}

static void it_waits_until_others_free(void **state)
{
	struct waiter waiter = {0};
	CUdeviceptr other;

	(void)state;
	driver->full = INT32_MAX;
	waiter_start(&waiter, LONG);
	/* Other threads go on: nothing is locked. */
	assert_true(reserved() == 4 * MIB);
	limited.limit->wait_ms = 0;
	assert_int_equal(cuMemAlloc_v2(&other, 2 * MIB), CUDA_ERROR_OUT_OF_MEMORY);
	driver->full = 0;
	assert_int_equal(waiter_end(&waiter), CUDA_SUCCESS);
	assert_int_equal(cuMemFree_v2(waiter.address), CUDA_SUCCESS);
	assert_true(reserved() == 0);
}

static void it_waits_no_longer_than_allowed(void **state)
{
	struct waiter waiter = {0};

	(void)state;
	driver->full = INT32_MAX;
	waiter_start(&waiter, 1);
	assert_int_equal(waiter_end(&waiter), CUDA_ERROR_OUT_OF_MEMORY);
	driver->full = 0;
	assert_true(reserved() == 0);
}

static void it_ends_when_the_agent_goes(void **state)
{
	struct waiter waiter = {0};
	CUdeviceptr address;

	(void)state;
	driver->full = INT32_MAX;
	waiter_start(&waiter, LONG);
	close(waiter.fd);
	waiter.fd = -1;
	assert_int_equal(waiter_end(&waiter), CUDA_ERROR_OUT_OF_MEMORY);
	/* Without one it does not begin. */
	fake_agent_stop(&limited.agent);
	assert_int_equal(cuMemAlloc_v2(&address, MIB), CUDA_ERROR_OUT_OF_MEMORY);
	driver->full = 0;
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_fails_at_once_by_default),
		cmocka_unit_test(it_does_not_wait_at_its_limit),
		cmocka_unit_test(it_waits_until_others_free),
		cmocka_unit_test(it_waits_no_longer_than_allowed),
		cmocka_unit_test(it_ends_when_the_agent_goes),
	};

	setenv("WEIR_DRIVER", NULL_DRIVER, 1);
	return cmocka_run_group_tests(tests, begin, NULL);
}
