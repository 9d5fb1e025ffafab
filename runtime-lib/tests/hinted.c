#include "hinted.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define WEIR_LIBRARY
#include "weir/weir.h"

struct expecting *expecting;
unsigned current;

void launch(unsigned n, unsigned stream)
{
	assert_int_equal(
		cuLaunchKernel(KERNEL, 1, 1, 1, 32, 1, 1, 0, STREAM(n, stream), NULL, NULL),
		CUDA_SUCCESS);
}

bool shown(void)
{
	return agent.demand[0]->word != 0;
}

void finish_work(unsigned n)
{
	assert_int_equal(cuStreamSynchronize(STREAM(n, 1)), CUDA_SUCCESS);
	assert_true(eventually(!shown()));
}

void use(const char *name)
{
	setenv("WEIR_EXPECT", name, 1);
	expect_settings();
}

unsigned context(uint8_t level, unsigned below)
{
	unsigned n = context_welcomed(level);

	agent.control->below = below;
	expecting = expecting_of(client);
	cuStreamSynchronize(STREAM(n, 1));
	return n;
}

void gone(unsigned n)
{
	driver->watched = NULL;
	agent.control->below = 0;
	context_gone(n);
}

unsigned context_ready(void)
{
	unsigned n = context(2, 1);

	finish_work(n);
	int destroyed = driver->streams_destroyed;
	assert_int_equal(weir_expect(STREAM(n, 1), 1), 0);
	assert_true(eventually(expecting->state == EXPECT_READY));
	assert_int_equal(expecting->held, 0);
	assert_int_equal(*expecting->released, 1);
	assert_int_equal(driver->streams_destroyed, destroyed + 1);
	assert_true(eventually(!shown()));
	driver->n_ops = 0;
	driver->watched = expecting->released;
	return n;
}

void hint(CUstream stream)
{
	for (int i = 0; i < 1000 && !expecting->held; i++) {
		expecting->not_before = 0; /* on a slow machine it was let go at once */
		driver->n_ops = 0;
		assert_int_equal(weir_expect(stream, 250), 0);
		expecting->until = UINT64_MAX;
	}
	assert_int_not_equal(expecting->held, 0);
	assert_int_equal(driver->n_ops, 1);
	assert_ptr_equal(driver->ops[0].stream, stream);
}

void synchronize_stream(void)
{
	cuStreamSynchronize(STREAM(current, 1));
}
static void synchronize_stream_from_elsewhere(void)
{
	cuCtxSetCurrent(NULL);
	cuStreamSynchronize(STREAM(current, 1));
	cuCtxSetCurrent(CONTEXT(current));
}
static void synchronize_other_stream(void)
{
	cuStreamSynchronize(STREAM(current, 9)); /* which nobody knows */
}
void synchronize_context(void)
{
	cuCtxSynchronize();
}
static void synchronize_named_context(void)
{
	cuCtxSynchronize_v2(CONTEXT(current));
}
static void synchronize_event(void)
{
	cuEventSynchronize(NULL);
}
static void copy(void)
{
	cuMemcpy(0, 0, 1);
}
static void copy_from_gpu(void)
{
	cuMemcpyDtoH_v2(NULL, 0, 1);
}
static void copy_to_gpu(void)
{
	cuMemcpyHtoD_v2(0, NULL, 1);
}
static void copy_in_stream(void)
{
	cuMemcpyHtoDAsync_v2(0, NULL, 1, STREAM(current, 1));
}
static void free_memory(void)
{
	cuMemFree_v2(0);
}
static void free_in_stream(void)
{
	cuMemFreeAsync(0, STREAM(current, 1));
}
static void load_code(void)
{
	CUmodule module;

	cuModuleLoadData(&module, "");
}
static void unload_code(void)
{
	cuModuleUnload(NULL);
}

void (*const calls_that_wait[])(void) = {
	synchronize_stream,
	synchronize_stream_from_elsewhere,
	synchronize_other_stream,
	synchronize_context,
	synchronize_named_context,
	synchronize_event,
	copy,
	copy_from_gpu,
	copy_to_gpu,
	copy_in_stream,
	free_memory,
	free_in_stream,
	load_code,
	unload_code,
};
const size_t n_calls_that_wait = countof(calls_that_wait);
