/* Memory that no allocation asks for: variables of code, graphs that allocate, stacks. It counts
 * against the limit before the driver takes it. On the null driver. */
#include "memory/memory-account.h"
#include "memory/memory.h"
#include "limited.h"
#include "null-driver.h"

#include "weir/base.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define HEAD      ".version 8.0\n.target sm_90\n.address_size 64\n"
#define SIX_MIB   HEAD ".visible .global .align 8 .b8 big[6291456];\n"
#define THREE_MIB HEAD ".visible .global .align 8 .b8 big[3145728];\n"

/* Makes @ours what the hook calls. Returns what it called. */
static void *replace(enum hook_id id, void *ours)
{
	void *before = driver_hooks[id].real;

	driver_hooks[id].real = ours;
	return before;
}

static CUresult refuse(void)
{
	return CUDA_ERROR_INVALID_IMAGE;
}

static void variables_of_modules_count(void **state)
{
	struct null_driver *driver =
		dlsym(dlopen(NULL_DRIVER, RTLD_NOLOAD | RTLD_LAZY), "null_driver");
	CUmodule module, more;

	(void)state;
	cuCtxSetCurrent((CUcontext)5);
	assert_int_equal(cuModuleLoadData(&module, SIX_MIB), CUDA_SUCCESS);
	assert_true(reserved() == 6 * MIB);
	int loaded = driver->modules_loaded;
	assert_int_equal(cuModuleLoadData(&more, THREE_MIB), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(cuModuleLoadDataEx(&more, THREE_MIB, 0, NULL, NULL),
			 CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(cuModuleLoadFatBinary(&more, THREE_MIB), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(cuModuleLoadData(&more, HEAD ".global .b8 big[3*1048576];"),
			 CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(driver->modules_loaded, loaded); /* the driver was not asked */
	assert_int_equal(cuModuleUnload(module), CUDA_SUCCESS);
	assert_true(reserved() == 0);

	void *before = replace(HOOK_cuModuleLoadData, refuse);
	assert_int_equal(cuModuleLoadData(&more, THREE_MIB), CUDA_ERROR_INVALID_IMAGE);
	replace(HOOK_cuModuleLoadData, before);
	assert_true(reserved() == 0);

	/* They go with the context. */
	assert_int_equal(cuModuleLoadData(&module, SIX_MIB), CUDA_SUCCESS);
	assert_int_equal(cuCtxDestroy_v2((CUcontext)5), CUDA_SUCCESS);
	assert_true(reserved() == 0);
}

static void variables_of_files_count(void **state)
{
	char path[] = "/tmp/weir-test-XXXXXX";
	int fd = mkstemp(path);
	CUlibrary library = (CUlibrary)1;
	CUmodule module;

	(void)state;
	assert_true(write(fd, SIX_MIB, strlen(SIX_MIB)) == (ssize_t)strlen(SIX_MIB));
	close(fd);
	cuCtxSetCurrent((CUcontext)5);
	assert_int_equal(cuModuleLoad(&module, path), CUDA_SUCCESS);
	assert_true(reserved() == 6 * MIB);
	assert_int_equal(cuModuleUnload(module), CUDA_SUCCESS);
	limited.limit->limit = 2 * MIB;
	assert_int_equal(cuModuleLoad(&module, path), CUDA_ERROR_OUT_OF_MEMORY);
	limited.limit->limit = 8 * MIB;
	assert_int_equal(cuLibraryLoadFromFile(&library, path, NULL, NULL, 0, NULL, NULL, 0),
			 CUDA_SUCCESS);
	assert_int_equal(cuLibraryUnload(library), CUDA_SUCCESS);
	unlink(path);
	assert_int_equal(cuModuleLoad(&module, path), CUDA_ERROR_FILE_NOT_FOUND);
	assert_int_equal(cuModuleLoad(&module, "/dev/zero"), CUDA_ERROR_FILE_NOT_FOUND);
	assert_true(reserved() == 0);
}

static uintptr_t last_context = 0x60;

static CUresult new_context(CUcontext *out, unsigned flags, CUdevice device)
{
	(void)flags, (void)device;
	*out = (CUcontext)++last_context;
	return CUDA_SUCCESS;
}

/* It is active while it is retained. */
static int retained;

static CUresult retain(CUcontext *out, CUdevice device)
{
	(void)device;
	retained++;
	*out = (CUcontext)0x50;
	return CUDA_SUCCESS;
}

static CUresult release(CUdevice device)
{
	(void)device;
	retained--;
	return CUDA_SUCCESS;
}

static CUresult get_state(CUdevice device, unsigned *flags, int *active)
{
	(void)device;
	*flags = 0;
	*active = retained > 0;
	return CUDA_SUCCESS;
}

static void libraries_count_in_each_context(void **state)
{
	CUlibrary library = (CUlibrary)1, more = (CUlibrary)2;
	CUcontext first, second, primary;
	struct {
		enum hook_id id;
		void *function;
	} ours[] = {
		{HOOK_cuCtxCreate_v2, new_context},
		{HOOK_cuDevicePrimaryCtxRetain, retain},
		{HOOK_cuDevicePrimaryCtxRelease_v2, release},
		{HOOK_cuDevicePrimaryCtxGetState, get_state},
	};

	(void)state;
	for (size_t i = 0; i < countof(ours); i++)
		ours[i].function = replace(ours[i].id, ours[i].function);
	assert_int_equal(cuLibraryLoadData(&library, THREE_MIB, NULL, NULL, 0, NULL, NULL, 0),
			 CUDA_SUCCESS);
	assert_true(reserved() == 0); /* there is no context */
	assert_int_equal(cuCtxCreate_v2(&first, 0, 0), CUDA_SUCCESS);
	assert_true(reserved() == 4 * MIB);
	assert_int_equal(cuDevicePrimaryCtxRetain(&primary, 0), CUDA_SUCCESS);
	assert_int_equal(cuDevicePrimaryCtxRetain(&primary, 0), CUDA_SUCCESS);
	assert_true(reserved() == 6 * MIB);
	assert_int_equal(cuCtxCreate_v2(&second, 0, 0), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(cuLibraryLoadData(&more, THREE_MIB, NULL, NULL, 0, NULL, NULL, 0),
			 CUDA_ERROR_OUT_OF_MEMORY);
	assert_true(reserved() == 6 * MIB);
	assert_int_equal(cuDevicePrimaryCtxRelease_v2(0), CUDA_SUCCESS);
	assert_true(reserved() == 6 * MIB);
	assert_int_equal(cuDevicePrimaryCtxRelease_v2(0), CUDA_SUCCESS);
	assert_true(reserved() == 4 * MIB);
	assert_int_equal(cuLibraryUnload(library), CUDA_SUCCESS);
	assert_true(reserved() == 0);
	assert_int_equal(cuCtxCreate_v2(&second, 0, 0), CUDA_SUCCESS);
	assert_int_equal(cuLibraryLoadData(&library, THREE_MIB, NULL, NULL, 0, NULL, NULL, 0),
			 CUDA_SUCCESS);
	assert_true(reserved() == 6 * MIB);
	assert_int_equal(cuCtxDestroy_v2(first), CUDA_SUCCESS);
	assert_int_equal(cuCtxDestroy_v2(second), CUDA_SUCCESS);
	assert_true(reserved() == 0);
	assert_int_equal(cuLibraryUnload(library), CUDA_SUCCESS);
	for (size_t i = 0; i < countof(ours); i++)
		replace(ours[i].id, ours[i].function);
}

/* Graph 1 has an allocation of 20 MiB, graph 2 graph 1 twice; node N + 0x10 is graph N. */
static uint64_t in_graphs;

static CUresult nodes_of(CUgraph graph, CUgraphNode *nodes, size_t *n)
{
	*n = (uintptr_t)graph;
	for (size_t i = 0; nodes && i < *n; i++)
		nodes[i] = (CUgraphNode)(uintptr_t)(graph == (CUgraph)1 ? 1 : 0x11);
	return CUDA_SUCCESS;
}

static CUresult type_of(CUgraphNode node, CUgraphNodeType *type)
{
	*type = node == (CUgraphNode)1 ? CU_GRAPH_NODE_TYPE_MEM_ALLOC : CU_GRAPH_NODE_TYPE_GRAPH;
	return CUDA_SUCCESS;
}

static CUresult child_of(CUgraphNode node, CUgraph *child)
{
	*child = (CUgraph)((uintptr_t)node - 0x10);
	return CUDA_SUCCESS;
}

static CUresult allocation_of(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS *parameters)
{
	(void)node;
	*parameters = (CUDA_MEM_ALLOC_NODE_PARAMS){.bytesize = 20 * MIB};
	return CUDA_SUCCESS;
}

static CUresult size_of_graphs(CUdevice device, CUgraphMem_attribute attribute, void *out)
{
	(void)device, (void)attribute;
	*(uint64_t *)out = in_graphs;
	return CUDA_SUCCESS;
}

static CUresult trim_graphs(CUdevice device)
{
	(void)device;
	in_graphs = 0;
	return CUDA_SUCCESS;
}

static CUresult instantiated(CUgraphExec *out, CUgraph graph, unsigned long long flags)
{
	static uintptr_t last = 0x100;

	(void)graph, (void)flags;
	*out = (CUgraphExec)++last;
	return CUDA_SUCCESS;
}

static void graphs_that_allocate_count(void **state)
{
	CUgraphExec first, second;
	struct {
		enum hook_id id;
		void *function;
	} ours[] = {
		{HOOK_cuGraphGetNodes, nodes_of},
		{HOOK_cuGraphNodeGetType, type_of},
		{HOOK_cuGraphChildGraphNodeGetGraph, child_of},
		{HOOK_cuGraphMemAllocNodeGetParams, allocation_of},
		{HOOK_cuDeviceGetGraphMemAttribute, size_of_graphs},
		{HOOK_cuDeviceGraphMemTrim, trim_graphs},
		{HOOK_cuGraphInstantiateWithFlags, instantiated},
	};

	(void)state;
	for (size_t i = 0; i < countof(ours); i++)
		ours[i].function = replace(ours[i].id, ours[i].function);
	limited.limit->limit = 96 * MIB;
	assert_int_equal(cuGraphInstantiateWithFlags(&first, (CUgraph)1, 0), CUDA_SUCCESS);
	assert_true(reserved() == 32 * MIB); /* the driver's step */
	assert_int_equal(cuGraphInstantiateWithFlags(&second, (CUgraph)2, 0), CUDA_SUCCESS);
	assert_true(reserved() == 96 * MIB);
	assert_int_equal(cuGraphInstantiateWithFlags(&second, (CUgraph)1, 0),
			 CUDA_ERROR_OUT_OF_MEMORY);
	void *before = replace(HOOK_cuGraphExecDestroy, refuse);
	assert_int_equal(cuGraphExecDestroy(first), CUDA_ERROR_INVALID_IMAGE);
	replace(HOOK_cuGraphExecDestroy, before);
	assert_true(reserved() == 96 * MIB);

	/* The device keeps what they had until it is trimmed. */
	in_graphs = 96 * MIB;
	assert_int_equal(cuCtxSynchronize(), CUDA_SUCCESS);
	assert_int_equal(cuGraphExecDestroy(first), CUDA_SUCCESS);
	assert_true(reserved() == 96 * MIB);
	assert_int_equal(cuGraphExecDestroy(second), CUDA_SUCCESS);
	assert_int_equal(cuCtxSynchronize(), CUDA_SUCCESS);
	assert_true(reserved() == 96 * MIB);
	assert_int_equal(cuGraphInstantiateWithFlags(&first, (CUgraph)1, 0), CUDA_SUCCESS);
	assert_true(reserved() == 32 * MIB);
	assert_int_equal(cuGraphExecDestroy(first), CUDA_SUCCESS);
	assert_int_equal(cuDeviceGraphMemTrim(0), CUDA_SUCCESS);
	assert_true(reserved() == 0);
	limited.limit->limit = 8 * MIB;
	for (size_t i = 0; i < countof(ours); i++)
		replace(ours[i].id, ours[i].function);
}

static CUresult attribute_of(int *value, CUdevice_attribute attribute, CUdevice device)
{
	(void)device;
	*value = attribute == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT             ? 4
		 : attribute == CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR ? 1024
										   : 0;
	return CUDA_SUCCESS;
}

/* Each thread that can run has one, beyond the 1 KiB that it always has. */
static void stacks_count(void **state)
{
	void *before = replace(HOOK_cuDeviceGetAttribute, attribute_of);

	(void)state;
	cuCtxSetCurrent((CUcontext)8);
	assert_int_equal(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 1024), CUDA_SUCCESS);
	assert_true(reserved() == 0);
	assert_int_equal(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 2048), CUDA_SUCCESS);
	assert_true(reserved() == 4 * MIB);
	assert_int_equal(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 4096), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, SIZE_MAX), CUDA_ERROR_OUT_OF_MEMORY);
	assert_true(reserved() == 4 * MIB);
	assert_int_equal(cuCtxDestroy_v2((CUcontext)8), CUDA_SUCCESS);
	assert_true(reserved() == 0);
	replace(HOOK_cuDeviceGetAttribute, before);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(variables_of_modules_count),
		cmocka_unit_test(variables_of_files_count),
		cmocka_unit_test(libraries_count_in_each_context),
		cmocka_unit_test(graphs_that_allocate_count),
		cmocka_unit_test(stacks_count),
	};

	setenv("WEIR_DRIVER", NULL_DRIVER, 1);
	return cmocka_run_group_tests(tests, limited_begin, NULL);
}
