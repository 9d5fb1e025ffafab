/* The memory limit and its agent: what holds without one, and what counts once one comes. On the
 * null driver. */
#include "memory/memory.h"
#include "limited.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

/* A binding is kept by intent when its context ends: a launch may still read it. */
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:binding_new";
}

/* Sleeps of this thread, which take no time. The agent comes back after @back of them. */
static _Thread_local struct sleeps {
	unsigned n, back;
	time_t seconds; /* virtual, by sleeps */
	pthread_t helper;
} * sleeps;

int __real_nanosleep(const struct timespec *time, struct timespec *left);
int __wrap_nanosleep(const struct timespec *time, struct timespec *left);
int __wrap_nanosleep(const struct timespec *time, struct timespec *left)
{
	if (!sleeps)
		return __real_nanosleep(time, left);
	assert_int_equal(time->tv_nsec, 100 * 1000000);
	sleeps->seconds = ++sleeps->n / 10;
	if (sleeps->n == sleeps->back) {
		fake_agent_start(&limited.agent);
		assert_int_equal(pthread_create(&sleeps->helper, NULL, limited_answer, NULL), 0);
	}
	return 0;
}

int __real_clock_gettime(clockid_t clock, struct timespec *out);
int __wrap_clock_gettime(clockid_t clock, struct timespec *out);
int __wrap_clock_gettime(clockid_t clock, struct timespec *out)
{
	int r = __real_clock_gettime(clock, out);

	out->tv_sec += sleeps ? sleeps->seconds : 0;
	return r;
}

/* On a GPU that the agent was not asked about. */
static CUresult start_on(int device, size_t bytes)
{
	CUmemAllocationProp there = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device}};
	CUmemGenericAllocationHandle handle = 31;
	CUresult result = cuMemCreate(&handle, bytes, &there, 0);

	if (result == CUDA_SUCCESS)
		assert_int_equal(cuMemRelease(handle), CUDA_SUCCESS);
	return result;
}

/* Memory that was allocated before the agent came counts. */
static void earlier_memory_counts_when_an_agent_comes(void **state)
{
	CUmemAllocationProp there = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
				     .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 4}};
	CUmemGenericAllocationHandle handle = 41;

	(void)state;
	fake_agent_stop(&limited.agent);
	assert_int_equal(cuMemCreate(&handle, 2 * MIB, &there, 0), CUDA_SUCCESS);
	fake_agent_start(&limited.agent);
	fake_agent_welcome_next(&limited.agent, 3, 0);
	cuCtxSetCurrent((CUcontext)6);
	assert_int_equal(cuLaunchKernel((CUfunction)7, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL),
			 CUDA_SUCCESS);
	fake_agent_join();
	limited_answer(NULL);
	assert_true(eventually(reserved() == 2 * MIB));
	assert_int_equal(cuMemRelease(handle), CUDA_SUCCESS);
	assert_true(reserved() == 0);
	assert_int_equal(cuCtxDestroy_v2((CUcontext)6), CUDA_SUCCESS);
}

/* The last limit holds. On a GPU without an answer yet, allocations are refused only on a node with
 * limits, and only if no agent comes within 30 s. */
static void without_an_agent(void **state)
{
	struct sleeps all = {0}, some = {.back = 250};
	char folder[] = "/tmp/weir-test-XXXXXX", mark[64];
	CUdeviceptr address;

	(void)state;
	fake_agent_stop(&limited.agent);
	assert_int_equal(cuMemAlloc_v2(&address, 12 * MIB), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(start_on(1, 1ull << 40), CUDA_SUCCESS);

	assert_non_null(mkdtemp(folder));
	snprintf(mark, sizeof(mark), "%s/" WEIR_LIMITED_NAME, folder);
	FILE *file = fopen(mark, "w");
	assert_non_null(file);
	fclose(file);
	snprintf(limited.agent.socket_path, sizeof(limited.agent.socket_path), "%s/agent.sock",
		 folder);
	setenv("WEIR_SOCKET", limited.agent.socket_path, 1);
	sleeps = &all;
	assert_int_equal(start_on(2, 2 * MIB), CUDA_ERROR_OUT_OF_MEMORY);
	assert_in_range(all.n, 250, 300); /* sleeps of 0.1 s */

	sleeps = &some;
	assert_int_equal(start_on(3, 2 * MIB), CUDA_SUCCESS);
	assert_int_equal(some.n, 250);
	pthread_join(some.helper, NULL);
	sleeps = NULL;
	fake_agent_stop(&limited.agent);
	unlink(mark);
	rmdir(folder);
}

/* An agent that hears of the pod after the first question. */
static void *refuse_and_answer(void *unused)
{
	struct weir_refused message = {.reason = WEIR_REFUSED_INTERNAL};
	union weir_message question;
	int fd = limited_hear(&question);

	assert_int_equal(question.header.type, WEIR_MEMORY);
	weir_header_init(&message.header, WEIR_REFUSED, sizeof(message));
	assert_int_equal(weir_message_send(fd, &message, sizeof(message), NULL, 0), 0);
	close(fd);
	return limited_answer(unused);
}

/* No container here has a limit, but the device plugin says that this one may have one. */
static void a_container_that_may_be_limited_waits(void **state)
{
	struct sleeps all = {0}, some = {0};
	pthread_t helper;

	(void)state;
	setenv(WEIR_LIMITED_VARIABLE, "1", 1);
	sleeps = &all;
	assert_int_equal(start_on(5, 2 * MIB), CUDA_ERROR_OUT_OF_MEMORY);
	assert_in_range(all.n, 250, 300);

	limited.agent.listener = -1;
	fake_agent_init(&limited.agent);
	assert_int_equal(pthread_create(&helper, NULL, refuse_and_answer, NULL), 0);
	sleeps = &some;
	assert_int_equal(start_on(6, 2 * MIB), CUDA_SUCCESS);
	assert_int_equal(some.n, 1);
	pthread_join(helper, NULL);
	sleeps = NULL;

	fake_agent_stop(&limited.agent);
	setenv(WEIR_LIMITED_VARIABLE, "0", 1);
	assert_int_equal(start_on(7, 1ull << 40), CUDA_SUCCESS);
	unsetenv(WEIR_LIMITED_VARIABLE);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(earlier_memory_counts_when_an_agent_comes),
		cmocka_unit_test(without_an_agent),
		cmocka_unit_test(a_container_that_may_be_limited_waits),
	};

	setenv("WEIR_DRIVER", NULL_DRIVER, 1);
	return cmocka_run_group_tests(tests, limited_begin, NULL);
}
