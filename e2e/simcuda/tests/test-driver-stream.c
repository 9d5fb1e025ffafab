/* Order: within a stream, between streams, events, the default streams; and how work ends. */
#include "driver-test.h"

#include <pthread.h>

/* In a stream, an op does not start before the one before it is done. */
static void test_in_order(void **state)
{
	CUstream s = new_stream(CU_STREAM_NON_BLOCKING);

	(void)state;
	for (uint32_t i = 0; i < 100; i++)
		append(s, i);
	ok(cuStreamSynchronize(s));
	assert_int_equal(fx.host[512], 100);
	for (uint32_t i = 0; i < 100; i++)
		assert_int_equal(list_at(i), i);
	ok(cuStreamDestroy(s));
}

static void test_all_blocks_run_once(void **state)
{
	(void)state;
	add(NULL, 1000, 3);
	add(NULL, 1, 1);
	assert_int_equal(device_word(0), 3001);
}

static void test_streams_are_independent(void **state)
{
	CUstream a = new_stream(CU_STREAM_NON_BLOCKING), b = new_stream(CU_STREAM_NON_BLOCKING);

	(void)state;
	ok(cuStreamWaitValue32(a, pointer_to(fx.host), 1, CU_STREAM_WAIT_VALUE_EQ));
	append(a, 1);
	append(b, 2);
	ok(cuStreamSynchronize(b));
	fails(cuStreamQuery(a), CUDA_ERROR_NOT_READY);
	assert_int_equal(fx.host[512], 1);
	set_word(fx.host, 1);
	ok(cuStreamSynchronize(a));
	assert_int_equal(list_at(0), 2);
	assert_int_equal(list_at(1), 1);
}

static void test_event_orders_streams(void **state)
{
	CUstream a = new_stream(CU_STREAM_NON_BLOCKING), b = new_stream(CU_STREAM_NON_BLOCKING);
	CUevent e;

	(void)state;
	ok(cuEventCreate(&e, 0));
	ok(cuEventQuery(e)); /* never recorded */
	ok(cuStreamWaitValue32(a, pointer_to(fx.host), 1, CU_STREAM_WAIT_VALUE_EQ));
	append(a, 1);
	ok(cuEventRecord(e, a));
	append(a, 2);
	ok(cuStreamWaitEvent(b, e, 0));
	append(b, 3);
	fails(cuEventQuery(e), CUDA_ERROR_NOT_READY);
	fails(cuStreamQuery(b), CUDA_ERROR_NOT_READY);
	set_word(fx.host, 1);
	ok(cuEventSynchronize(e));
	ok(cuCtxSynchronize());
	assert_int_equal(list_at(0), 1);
	assert_int_equal(list_at(1) + list_at(2), 5);
}

/* A wait is for the record at the time of the call, not for later records. A destroyed event still
 * orders. */
static void test_event_is_a_moment(void **state)
{
	CUstream a = new_stream(CU_STREAM_NON_BLOCKING), b = new_stream(CU_STREAM_NON_BLOCKING);
	CUevent e;

	(void)state;
	ok(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
	append(a, 1);
	ok(cuEventRecord(e, a));
	ok(cuStreamWaitEvent(b, e, 0));
	ok(cuStreamWaitValue32(a, pointer_to(fx.host), 1, CU_STREAM_WAIT_VALUE_EQ));
	ok(cuEventRecord(e, a));
	append(b, 2);
	ok(cuStreamSynchronize(b));
	ok(cuStreamWaitEvent(b, e, 0));
	ok(cuEventDestroy(e));
	append(b, 3);
	fails(cuStreamQuery(b), CUDA_ERROR_NOT_READY);
	set_word(fx.host, 1);
	ok(cuStreamSynchronize(b));
	assert_int_equal(list_at(2), 3);
}

static void test_elapsed_time(void **state)
{
	CUstream s = new_stream(CU_STREAM_NON_BLOCKING);
	CUevent a, b, untimed;
	float ms = -1;

	(void)state;
	ok(cuEventCreate(&a, 0));
	ok(cuEventCreate(&b, 0));
	ok(cuEventCreate(&untimed, CU_EVENT_DISABLE_TIMING));
	fails(cuEventElapsedTime(&ms, a, b), CUDA_ERROR_INVALID_HANDLE);
	ok(cuEventRecord(a, s));
	ok(cuEventRecord(untimed, s));
	ok(cuStreamWaitValue32(s, pointer_to(fx.host), 1, CU_STREAM_WAIT_VALUE_EQ));
	ok(cuEventRecord(b, s));
	fails(cuEventElapsedTime(&ms, a, b), CUDA_ERROR_NOT_READY);
	ok(cuEventSynchronize(a));
	usleep(20000);
	set_word(fx.host, 1);
	ok(cuEventSynchronize(b));
	ok(cuEventElapsedTime(&ms, a, b));
	assert_true(ms >= 20);
	fails(cuEventElapsedTime(&ms, a, untimed), CUDA_ERROR_INVALID_HANDLE);
}

/* The legacy stream and blocking streams wait for each other; non-blocking streams do not. */
static void test_legacy_stream(void **state)
{
	CUstream blocking = new_stream(CU_STREAM_DEFAULT);
	CUstream apart = new_stream(CU_STREAM_NON_BLOCKING);

	(void)state;
	ok(cuStreamWaitValue32(blocking, pointer_to(fx.host), 1, CU_STREAM_WAIT_VALUE_EQ));
	append(blocking, 1);
	append(NULL, 2); /* after it */
	append(apart, 9);
	ok(cuStreamSynchronize(apart));
	fails(cuStreamQuery(NULL), CUDA_ERROR_NOT_READY);
	assert_int_equal(fx.host[512], 1);

	CUstream later = new_stream(CU_STREAM_DEFAULT);

	append(later, 3); /* after the legacy stream */
	fails(cuStreamQuery(later), CUDA_ERROR_NOT_READY);
	set_word(fx.host, 1);
	ok(cuStreamSynchronize(later));
	for (uint32_t i = 1; i <= 3; i++)
		assert_int_equal(list_at(i), i);
}

static void test_destroyed_stream_still_orders(void **state)
{
	CUstream s = new_stream(CU_STREAM_DEFAULT);

	(void)state;
	ok(cuStreamWaitValue32(s, pointer_to(fx.host), 1, CU_STREAM_WAIT_VALUE_EQ));
	append(s, 1);
	ok(cuStreamDestroy(s));
	fails(cuStreamQuery(s), CUDA_ERROR_INVALID_HANDLE);
	append(NULL, 2);
	fails(cuStreamQuery(NULL), CUDA_ERROR_NOT_READY);
	set_word(fx.host, 1);
	ok(cuCtxSynchronize());
	assert_int_equal(list_at(0), 1);
	assert_int_equal(list_at(1), 2);
}

static void *append_in_own_stream(void *value)
{
	ok(cuCtxSetCurrent(fx.ctx));
	append(CU_STREAM_PER_THREAD, *(uint32_t *)value);
	ok(cuStreamSynchronize(CU_STREAM_PER_THREAD));
	return NULL;
}

/* Each thread has its own per-thread default stream, a blocking stream. */
static void test_per_thread_stream(void **state)
{
	uint32_t value = 2;
	unsigned long long own, legacy;
	pthread_t thread;

	(void)state;
	ok(cuStreamWaitValue32(CU_STREAM_PER_THREAD, pointer_to(fx.host), 1,
			       CU_STREAM_WAIT_VALUE_EQ));
	append(CU_STREAM_PER_THREAD, 1);
	assert_int_equal(pthread_create(&thread, NULL, append_in_own_stream, &value), 0);
	pthread_join(thread, NULL); /* not held up by ours */
	assert_int_equal(list_at(0), 2);

	append(NULL, 3);
	fails(cuStreamQuery(CU_STREAM_LEGACY), CUDA_ERROR_NOT_READY);
	set_word(fx.host, 1);
	ok(cuStreamSynchronize(CU_STREAM_LEGACY));
	assert_int_equal(list_at(1), 1);
	assert_int_equal(list_at(2), 3);
	ok(cuStreamGetId(CU_STREAM_PER_THREAD, &own));
	ok(cuStreamGetId(NULL, &legacy));
	assert_int_not_equal(own, legacy);
}

static void count_up(void *data)
{
	_Atomic int *n = data;

	usleep(1000);
	(*n)++;
}

static void CUDA_CB callback(CUstream stream, CUresult status, void *data)
{
	(void)stream;
	if (status == CUDA_SUCCESS)
		count_up(data);
}

static void test_host_functions(void **state)
{
	CUstream s = new_stream(CU_STREAM_NON_BLOCKING);
	_Atomic int n = 0;

	(void)state;
	ok(cuStreamWaitValue32(s, pointer_to(fx.host), 1, CU_STREAM_WAIT_VALUE_EQ));
	ok(cuLaunchHostFunc(s, count_up, &n));
	ok(cuStreamAddCallback(s, callback, &n, 0));
	append(s, 5);
	usleep(5000);
	assert_int_equal(n, 0);
	set_word(fx.host, 1);
	ok(cuStreamSynchronize(s));
	assert_int_equal(n, 2);
	assert_int_equal(list_at(0), 5);
}

/* Blocks of the older kernel run first: a later kernel that would fit has to wait. */
static void test_fifo(void **state)
{
	CUstream a = new_stream(CU_STREAM_NON_BLOCKING), b = new_stream(CU_STREAM_NON_BLOCKING);
	CUstream c = new_stream(CU_STREAM_NON_BLOCKING);

	(void)state;
	hold(a, 3); /* on two slots: one block does not start */
	usleep(20000);
	append(b, 1);
	append(c, 2);
	usleep(20000);
	fails(cuStreamQuery(b), CUDA_ERROR_NOT_READY);
	set_word(fx.host, 1);
	ok(cuCtxSynchronize());
	assert_int_equal(fx.host[1], 3);
	assert_int_equal(list_at(0) + list_at(1), 3);
}

static void test_cooperative(void **state)
{
	CUstream s = new_stream(CU_STREAM_NON_BLOCKING);
	uint32_t n = 2;
	void *params[] = {&fx.memory, &n};

	(void)state;
	for (int i = 0; i < 5; i++) {
		ok(cuMemsetD32Async(fx.memory, 0, 1, s));
		ok(cuLaunchCooperativeKernel(fx.meet, 2, 1, 1, 1, 1, 1, 0, s, params));
	}
	ok(cuStreamSynchronize(s));
	assert_int_equal(device_word(0), 2);
	fails(cuLaunchCooperativeKernel(fx.meet, 3, 1, 1, 1, 1, 1, 0, s, params),
	      CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
}

static void test_launch_config(void **state)
{
	uint32_t n = 2, list[2] = {9, 9};
	void *params[] = {&fx.memory, &n};
	CUlaunchAttribute attributes[2] = {
		{.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value.cooperative = 1},
		{.id = CU_LAUNCH_ATTRIBUTE_PRIORITY, .value.priority = -1}};
	CUlaunchConfig config = {.gridDimX = 2,
				 .gridDimY = 1,
				 .gridDimZ = 1,
				 .blockDimX = 1,
				 .blockDimY = 1,
				 .blockDimZ = 1,
				 .attrs = attributes,
				 .numAttrs = 2};
	size_t size = 8;
	void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &fx.memory, CU_LAUNCH_PARAM_BUFFER_SIZE,
			 &size, CU_LAUNCH_PARAM_END};

	(void)state;
	ok(cuLaunchKernelEx(&config, fx.meet, params, NULL));
	ok(cuCtxSynchronize());
	config.gridDimX = 3;
	fails(cuLaunchKernelEx(&config, fx.meet, params, NULL),
	      CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
	attributes[0].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
	attributes[0].value.clusterDim.x = 2;
	attributes[0].value.clusterDim.y = attributes[0].value.clusterDim.z = 1;
	fails(cuLaunchKernelEx(&config, fx.meet, params, NULL), CUDA_ERROR_NOT_SUPPORTED);

	ok(cuLaunchKernel(fx.whoami, 2, 1, 1, 1, 1, 1, 0, NULL, NULL, extra));
	ok(cuMemcpyDtoH(list, fx.memory, 8));
	assert_true(list[0] < 2 && list[1] < 2);
}

/* A faulting kernel ends its own context only. */
static void test_fault_is_sticky(void **state)
{
	CUdeviceptr nowhere = 0x10, p;
	CUcontext other;
	CUmodule module;
	CUfunction wild;
	CUevent e;
	void *params[] = {&nowhere};

	(void)state;
	ok(cuCtxCreate(&other, NULL, 0, 0));
	ok(cuModuleLoadData(&module, test_ptx));
	ok(cuModuleGetFunction(&wild, module, "wild"));
	ok(cuEventCreate(&e, 0));
	ok(cuLaunchKernel(wild, 5, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	fails(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
	fails(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
	fails(cuMemAlloc(&p, 16), CUDA_ERROR_ILLEGAL_ADDRESS);
	fails(cuEventQuery(e), CUDA_ERROR_ILLEGAL_ADDRESS);
	fails(cuStreamQuery(NULL), CUDA_ERROR_ILLEGAL_ADDRESS);
	ok(cuCtxDestroy(other));

	ok(cuCtxSetCurrent(fx.ctx));
	add(NULL, 1, 5);
	assert_int_equal(device_word(0), 5);
}

/* Destroying a context ends its queued and running work. */
static void test_destroy_ends_work(void **state)
{
	CUcontext other;
	CUmodule module;
	CUfunction function;
	CUdeviceptr p, flag;
	CUstream s;
	void *params[] = {&flag, &p};

	(void)state;
	ok(cuCtxCreate(&other, NULL, 0, 0));
	ok(cuModuleLoadData(&module, test_ptx));
	ok(cuModuleGetFunction(&function, module, "hold"));
	ok(cuMemAlloc(&flag, 8));
	ok(cuMemsetD32(flag, 0, 2));
	p = flag + 4;
	ok(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	ok(cuStreamWaitValue32(s, flag, 1, CU_STREAM_WAIT_VALUE_EQ));
	ok(cuLaunchKernel(function, 5, 1, 1, 1, 1, 1, 0, s, params, NULL));
	ok(cuLaunchKernel(function, 5, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	usleep(10000);
	ok(cuCtxDestroy(other));
	fails(cuStreamQuery(s), CUDA_ERROR_INVALID_HANDLE);
	ok(cuCtxSetCurrent(fx.ctx));
	add(NULL, 2, 5);
	assert_int_equal(device_word(0), 10);
}

static void *churn(void *data)
{
	CUstream a, b;
	CUevent e;

	(void)data;
	ok(cuCtxSetCurrent(fx.ctx));
	for (int i = 0; i < 20; i++) {
		a = new_stream(i % 2 ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT);
		b = new_stream(CU_STREAM_NON_BLOCKING);
		ok(cuEventCreate(&e, 0));
		add(a, 3, 1);
		ok(cuEventRecord(e, a));
		ok(cuStreamWaitEvent(b, e, 0));
		add(b, 1, 1);
		ok(cuEventDestroy(e));
		ok(cuStreamDestroy(a));
		ok(cuStreamSynchronize(b));
		ok(cuStreamDestroy(b));
	}
	return NULL;
}

static void test_threads(void **state)
{
	pthread_t threads[4];

	(void)state;
	for (size_t i = 0; i < countof(threads); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, churn, NULL), 0);
	for (size_t i = 0; i < countof(threads); i++)
		pthread_join(threads[i], NULL);
	ok(cuCtxSynchronize());
	assert_int_equal(device_word(0), 4 * 20 * 4);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_in_order),
		TEST(test_all_blocks_run_once),
		TEST(test_streams_are_independent),
		TEST(test_event_orders_streams),
		TEST(test_event_is_a_moment),
		TEST(test_elapsed_time),
		TEST(test_legacy_stream),
		TEST(test_destroyed_stream_still_orders),
		TEST(test_per_thread_stream),
		TEST(test_host_functions),
		TEST(test_fifo),
		TEST(test_cooperative),
		TEST(test_launch_config),
		TEST(test_fault_is_sticky),
		TEST(test_destroy_ends_work),
		TEST(test_threads),
	};
	int failed;

	own_machine("2", "64M");
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	remove_machine();
	return failed;
}
