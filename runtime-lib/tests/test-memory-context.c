/* The memory limit and contexts: what is charged goes with its context, if the driver destroys
 * that, and a context's own buffers count. On the null driver. */
#include "memory/memory.h"
#include "preempt/code.h"
#include "limited.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static CUresult refuse(CUcontext context)
{
	(void)context;
	return CUDA_ERROR_INVALID_CONTEXT;
}

static bool destroy_refused(CUcontext context)
{
	struct hook *hook = &driver_hooks[HOOK_cuCtxDestroy_v2];
	void *before = hook->real;

	hook->real = refuse;
	CUresult result = cuCtxDestroy_v2(context);
	hook->real = before;
	return result == CUDA_ERROR_INVALID_CONTEXT;
}

static void memory_goes_with_its_context(void **state)
{
	CUdeviceptr address;

	(void)state;
	cuCtxSetCurrent((CUcontext)5);
	assert_int_equal(cuMemAlloc_v2(&address, 2 * MIB), CUDA_SUCCESS);
	assert_true(reserved() == 2 * MIB);
	assert_int_equal(cuCtxDestroy_v2((CUcontext)5), CUDA_SUCCESS);
	assert_true(reserved() == 0);
}

/* The driver destroys no primary context: its memory stays charged, and can be released. */
static void memory_stays_if_its_context_stays(void **state)
{
	CUdeviceptr address;

	(void)state;
	cuCtxSetCurrent((CUcontext)5);
	assert_int_equal(cuMemAlloc_v2(&address, 6 * MIB), CUDA_SUCCESS);
	assert_true(destroy_refused((CUcontext)5));
	assert_true(reserved() == 6 * MIB);
	assert_int_equal(cuMemFree_v2(address), CUDA_SUCCESS);
	assert_true(reserved() == 0);

	assert_int_equal(cuMemAlloc_v2(&address, 2 * MIB), CUDA_SUCCESS);
	assert_true(destroy_refused((CUcontext)5));
	assert_int_equal(cuCtxDestroy_v2((CUcontext)5), CUDA_SUCCESS);
	assert_true(reserved() == 0);
}

static void code_stays_if_its_context_stays(void **state)
{
	static const char ptx[] = ".version 8.0\n.target sm_90\n";
	const char *reason;
	CUmodule module;

	(void)state;
	cuCtxSetCurrent((CUcontext)5);
	assert_int_equal(cuModuleLoadData(&module, ptx), CUDA_SUCCESS);
	assert_true(destroy_refused((CUcontext)5));
	struct image *image = code_image(module, &reason);
	assert_non_null(image);
	image_unref(image);
	assert_int_equal(cuCtxDestroy_v2((CUcontext)5), CUDA_SUCCESS);
	assert_null(code_image(module, &reason));
	assert_int_equal(image_total(), 0);
}

static CUresult refuse_limit(CUlimit which, size_t value)
{
	(void)which, (void)value;
	return CUDA_ERROR_INVALID_VALUE;
}

/* Another thread sets a size while this one's call is in the driver. */
static void *shrink(void *unused)
{
	(void)unused;
	cuCtxSetCurrent((CUcontext)8);
	assert_int_equal(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 8 * MIB), CUDA_SUCCESS);
	return NULL;
}

static CUresult accept_limit(CUlimit which, size_t value)
{
	pthread_t other;

	(void)which;
	if (value != 12 * MIB)
		return CUDA_SUCCESS;
	assert_int_equal(pthread_create(&other, NULL, shrink, NULL), 0);
	pthread_join(other, NULL);
	return CUDA_SUCCESS;
}

/* The heap of malloc() in kernels, beyond the 8 MiB that each context has, and printf()'s buffer,
 * beyond 1 MiB. */
static void buffers_of_a_context_count(void **state)
{
	struct hook *hook = &driver_hooks[HOOK_cuCtxSetLimit];
	void *before = hook->real;

	(void)state;
	limited.limit->limit = 8 * MIB;
	hook->real = accept_limit;
	cuCtxSetCurrent((CUcontext)8);
	assert_int_equal(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 8 * MIB), CUDA_SUCCESS);
	assert_true(reserved() == 0);
	assert_int_equal(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 14 * MIB), CUDA_SUCCESS);
	assert_true(reserved() == 6 * MIB);
	assert_int_equal(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 17 * MIB),
			 CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, SIZE_MAX),
			 CUDA_ERROR_OUT_OF_MEMORY);
	assert_true(reserved() == 6 * MIB);
	assert_int_equal(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 16 * MIB), CUDA_SUCCESS);
	assert_true(reserved() == 8 * MIB);
	assert_int_equal(cuCtxSetLimit(CU_LIMIT_PRINTF_FIFO_SIZE, 3 * MIB),
			 CUDA_ERROR_OUT_OF_MEMORY);

	hook->real = refuse_limit;
	assert_int_equal(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 10 * MIB),
			 CUDA_ERROR_INVALID_VALUE);
	assert_true(reserved() == 8 * MIB);
	hook->real = accept_limit;
	assert_int_equal(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 10 * MIB), CUDA_SUCCESS);
	assert_true(reserved() == 2 * MIB);
	hook->real = refuse_limit;
	assert_int_equal(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 14 * MIB),
			 CUDA_ERROR_INVALID_VALUE);
	assert_true(reserved() == 2 * MIB);
	hook->real = accept_limit;
	assert_int_equal(cuCtxSetLimit(CU_LIMIT_PRINTF_FIFO_SIZE, 3 * MIB), CUDA_SUCCESS);
	assert_true(reserved() == 4 * MIB);

	/* Of two sizes at the same time the larger one counts. */
	assert_int_equal(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 12 * MIB), CUDA_SUCCESS);
	assert_true(reserved() == 6 * MIB);
	assert_int_equal(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 8 * MIB), CUDA_SUCCESS);
	assert_true(reserved() == 2 * MIB);

	assert_true(destroy_refused((CUcontext)8));
	assert_true(reserved() == 2 * MIB);
	assert_int_equal(cuCtxDestroy_v2((CUcontext)8), CUDA_SUCCESS);
	hook->real = before;
	assert_true(reserved() == 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_goes_with_its_context),
		cmocka_unit_test(memory_stays_if_its_context_stays),
		cmocka_unit_test(code_stays_if_its_context_stays),
		cmocka_unit_test(buffers_of_a_context_count),
	};

	setenv("WEIR_DRIVER", NULL_DRIVER, 1);
	return cmocka_run_group_tests(tests, limited_begin, NULL);
}
