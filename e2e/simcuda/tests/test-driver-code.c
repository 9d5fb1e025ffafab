/* Code and names: modules, fatbinaries, libraries, functions, cuGetProcAddress. */
#include "driver-test.h"

#include <dlfcn.h>
#include <lz4.h>
#include <zstd.h>

struct image {
	_Alignas(8) char bytes[16384];
	size_t size;
};

static void put(struct image *i, size_t at, uint64_t value, size_t size)
{
	memcpy(i->bytes + at, &value, size);
}

static void image_init(struct image *i)
{
	memset(i, 0, sizeof(*i));
	put(i, 0, 0xba55ed50, 4);
	put(i, 4, 1, 2);
	put(i, 6, 16, 2);
	i->size = 16;
}

/* Adds an entry as the toolkit writes them. */
static void image_add(struct image *i, unsigned kind, unsigned sm, uint64_t flags,
		      const void *payload, size_t size, size_t full_size)
{
	size_t at = i->size, padded = (size + 7) & ~7ul;

	put(i, at, kind, 2);
	put(i, at + 2, 0x101, 2);
	put(i, at + 4, 64, 4);
	put(i, at + 8, padded, 8);
	put(i, at + 16, full_size ? size : 0, 4);
	put(i, at + 28, sm, 4);
	put(i, at + 40, flags, 8);
	put(i, at + 56, full_size, 8);
	memcpy(i->bytes + at + 64, payload, size);
	i->size = at + 64 + padded;
	put(i, 8, i->size - 16, 8);
}

/* A kernel of this name, alone in a module. */
static const char *ptx_of(const char *name)
{
	static char text[256];

	snprintf(text, sizeof(text),
		 ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry %s()\n{\n "
		 "ret;\n}\n",
		 name);
	return text;
}

static void expect_kernel(const struct image *i, const char *name)
{
	CUmodule module;
	CUfunction f;

	ok(cuModuleLoadFatBinary(&module, i->bytes));
	ok(cuModuleGetFunction(&f, module, name));
	ok(cuModuleUnload(module));
}

static void test_fatbin(void **state)
{
	struct image i;
	char packed[1024];
	const char *text;
	size_t n;
	struct {
		uint32_t magic, version;
		const void *data, *more;
	} wrapper = {0x466243b1, 1, i.bytes, NULL};
	CUmodule module;

	(void)state;
	image_init(&i);
	text = ptx_of("raw");
	image_add(&i, 2, 90, 0x11, "machine code", 12, 0);
	image_add(&i, 1, 70, 0x11, text, strlen(text) + 1, 0);
	expect_kernel(&i, "raw");
	ok(cuModuleLoadData(&module, &wrapper));

	text = ptx_of("zstd");
	n = ZSTD_compress(packed, sizeof(packed), text, strlen(text) + 1, 3);
	image_add(&i, 1, 80, 0x8011, packed, n, strlen(text) + 1);
	expect_kernel(&i, "zstd"); /* newer than the first */

	text = ptx_of("lz4");
	n = (size_t)LZ4_compress_default(text, packed, (int)strlen(text) + 1, sizeof(packed));
	image_add(&i, 1, 90, 0x102011, packed, n, strlen(text) + 1); /* sm_90a */
	image_add(&i, 1, 100, 0x11, ptx_of("future"), 20, 0);
	expect_kernel(&i, "lz4");
}

static void test_bad_images(void **state)
{
	struct image i;
	CUmodule module;

	(void)state;
	image_init(&i);
	fails(cuModuleLoadData(&module, i.bytes), CUDA_ERROR_NO_BINARY_FOR_GPU);
	image_add(&i, 2, 90, 0x11, "machine code", 12, 0);
	fails(cuModuleLoadData(&module, i.bytes), CUDA_ERROR_NO_BINARY_FOR_GPU);
	image_add(&i, 1, 90, 0x8011, "not compressed", 14, 100);
	fails(cuModuleLoadData(&module, i.bytes), CUDA_ERROR_INVALID_IMAGE);
	put(&i, 16 + 4, 8, 4); /* an entry whose header is too small */
	fails(cuModuleLoadData(&module, i.bytes), CUDA_ERROR_NO_BINARY_FOR_GPU);
	put(&i, 16 + 4, 64, 4);
	put(&i, 16 + 8, UINT64_MAX - 8, 8); /* whose payload goes past the end */
	fails(cuModuleLoadData(&module, i.bytes), CUDA_ERROR_NO_BINARY_FOR_GPU);
	fails(cuModuleLoadData(&module, "\177ELF and so on"), CUDA_ERROR_NO_BINARY_FOR_GPU);
	fails(cuModuleLoadData(&module, ""), CUDA_ERROR_INVALID_IMAGE);
	fails(cuModuleLoadData(&module, NULL), CUDA_ERROR_INVALID_VALUE);
	fails(cuModuleLoadData(&module, "this is no PTX"), CUDA_ERROR_INVALID_PTX);
	fails(cuModuleLoad(&module, "/nonexistent"), CUDA_ERROR_FILE_NOT_FOUND);
}

static void test_jit_log(void **state)
{
	char log[128] = "untouched";
	CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
	void *values[] = {log, (void *)sizeof(log)};
	CUmodule module;

	(void)state;
	fails(cuModuleLoadDataEx(&module, ".version 8.0\n.target sm_90\nnonsense\n", 2, options,
				 values),
	      CUDA_ERROR_INVALID_PTX);
	assert_non_null(strstr(log, "line 3"));
}

static void test_functions(void **state)
{
	CUfunction all[8];
	const char *name;
	unsigned n;
	int value;
	size_t offset, size;
	CUmodule module;

	(void)state;
	ok(cuModuleGetFunctionCount(&n, fx.module));
	assert_int_equal(n, 7);
	ok(cuModuleEnumerateFunctions(all, countof(all), fx.module));
	ok(cuFuncGetName(&name, all[0]));
	assert_string_equal(name, "add");
	assert_ptr_equal(all[0], fx.add);
	ok(cuFuncGetModule(&module, fx.add));
	assert_ptr_equal(module, fx.module);
	ok(cuFuncGetParamInfo(fx.add, 1, &offset, &size));
	assert_int_equal(offset, 8);
	assert_int_equal(size, 4);
	fails(cuFuncGetParamInfo(fx.add, 2, &offset, &size), CUDA_ERROR_INVALID_VALUE);
	ok(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, fx.add));
	assert_int_equal(value, 1024);
	ok(cuFuncSetAttribute(fx.add, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100000));
	ok(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, fx.add));
	assert_int_equal(value, 100000);
	fails(cuFuncSetAttribute(fx.add, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 300000),
	      CUDA_ERROR_INVALID_VALUE);
	ok(cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, fx.add, 128, 0));
	assert_int_equal(value, 1);
	ok(cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, fx.add, 128, 200000));
	assert_int_equal(value, 0);
}

static void test_library(void **state)
{
	CUlibrary library, same;
	CUkernel kernel, kernels[8];
	CUfunction f;
	CUdeviceptr p, elsewhere;
	CUcontext other;
	const char *name;
	unsigned n;
	uint32_t one = 1, value;
	void *params[] = {&fx.memory, &one};

	(void)state;
	ok(cuLibraryLoadData(&library, test_ptx, NULL, NULL, 0, NULL, NULL, 0));
	ok(cuLibraryGetKernel(&kernel, library, "add"));
	fails(cuLibraryGetKernel(&kernels[0], library, "none"), CUDA_ERROR_NOT_FOUND);
	ok(cuLibraryGetKernelCount(&n, library));
	assert_int_equal(n, 7);
	ok(cuLibraryEnumerateKernels(kernels, 8, library));
	assert_ptr_equal(kernels[0], kernel);
	ok(cuKernelGetName(&name, kernel));
	assert_string_equal(name, "add");
	ok(cuKernelGetLibrary(&same, kernel));
	assert_ptr_equal(same, library);
	ok(cuLaunchKernel((CUfunction)kernel, 3, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	ok(cuKernelGetFunction(&f, kernel));
	ok(cuLaunchKernel(f, 4, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	assert_int_equal(device_word(0), 7);

	/* each context has variables of its own */
	ok(cuLibraryGetGlobal(&p, NULL, library, "counter"));
	ok(cuMemsetD32(p, 50, 1));
	ok(cuCtxSynchronize());
	ok(cuCtxCreate(&other, NULL, 0, 0));
	ok(cuLibraryGetGlobal(&elsewhere, NULL, library, "counter"));
	assert_true(p != elsewhere);
	ok(cuMemcpyDtoH(&value, elsewhere, 4));
	assert_int_equal(value, 7);
	fails(cuLaunchKernel(f, 4, 1, 1, 1, 1, 1, 0, NULL, params, NULL),
	      CUDA_ERROR_INVALID_HANDLE);
	ok(cuCtxDestroy(other));
	ok(cuCtxSetCurrent(fx.ctx));
	ok(cuLibraryUnload(library));
	fails(cuKernelGetFunction(&f, kernel), CUDA_ERROR_INVALID_HANDLE);
	fails(cuLibraryUnload(library), CUDA_ERROR_INVALID_HANDLE);
}

/* Every spelling that cuda.h declares exists. Functions that the driver does not implement say so,
 * and cuGetProcAddress() does not find them. */
static void test_names(void **state)
{
	static const struct {
		const char *base;
		int version;
		cuuint64_t flags;
		const char *symbol; /* null: not found */
		CUdriverProcAddressQueryResult status;
	} cases[] = {
		{"cuMemAlloc", 12000, 0, "cuMemAlloc_v2", CU_GET_PROC_ADDRESS_SUCCESS},
		{"cuMemAlloc", 2000, 0, NULL, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT},
		{"cuLaunchKernel", 12000, 0, "cuLaunchKernel", CU_GET_PROC_ADDRESS_SUCCESS},
		{"cuLaunchKernel", 12000, CU_GET_PROC_ADDRESS_LEGACY_STREAM, "cuLaunchKernel",
		 CU_GET_PROC_ADDRESS_SUCCESS},
		{"cuLaunchKernel", 12000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM,
		 "cuLaunchKernel_ptsz", CU_GET_PROC_ADDRESS_SUCCESS},
		{"cuMemcpyHtoD", 12000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM,
		 "cuMemcpyHtoD_v2_ptds", CU_GET_PROC_ADDRESS_SUCCESS},
		{"cuMemAlloc", 12000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM,
		 "cuMemAlloc_v2", CU_GET_PROC_ADDRESS_SUCCESS},
		{"cuCtxCreate", 12000, 0, "cuCtxCreate_v3", CU_GET_PROC_ADDRESS_SUCCESS},
		{"cuCtxCreate", 13000, 0, "cuCtxCreate_v4", CU_GET_PROC_ADDRESS_SUCCESS},
		{"cuStreamWaitValue32", 11000, 0, "cuStreamWaitValue32",
		 CU_GET_PROC_ADDRESS_SUCCESS},
		{"cuStreamWaitValue32", 12000, 0, "cuStreamWaitValue32_v2",
		 CU_GET_PROC_ADDRESS_SUCCESS},
		{"cuLaunchKernelEx", 11000, 0, NULL, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT},
		{"cuTexRefCreate", 13000, 0, NULL, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND},
		{"cuNothing", 13000, 0, NULL, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND},
		{"cuMemAlloc_v2", 13000, 0, NULL, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND},
	};
	void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), *address;
	CUdriverProcAddressQueryResult status;
	const char *text;

	(void)state;
	assert_non_null(driver);
	for (size_t i = 0; i < countof(cases); i++) {
		address = (void *)1;
		fails(cuGetProcAddress(cases[i].base, &address, cases[i].version, cases[i].flags,
				       &status),
		      cases[i].symbol ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND);
		assert_int_equal(status, cases[i].status);
		assert_ptr_equal(address, cases[i].symbol ? dlsym(driver, cases[i].symbol) : NULL);
	}
	fails(cuGetProcAddress(NULL, &address, 12000, 0, NULL), CUDA_ERROR_INVALID_VALUE);
	fails(cuGetProcAddress("cuInit", &address, 12000, 64, NULL), CUDA_ERROR_INVALID_VALUE);
	assert_non_null(dlsym(driver, "cuTexRefGetAddressMode"));
	fails(cuTexObjectDestroy(1), CUDA_ERROR_NOT_SUPPORTED);
	dlclose(driver);

	ok(cuGetErrorName(CUDA_ERROR_ILLEGAL_ADDRESS, &text));
	assert_string_equal(text, "CUDA_ERROR_ILLEGAL_ADDRESS");
	ok(cuGetErrorString(CUDA_SUCCESS, &text));
	fails(cuGetErrorName((CUresult)12345, &text), CUDA_ERROR_INVALID_VALUE);
	assert_null(text);
}

/* Arguments that are no handle, a handle of another kind, or a handle of a destroyed object. */
static void test_hostile_handles(void **state)
{
	const uintptr_t wrong[] = {3,
				   0x1234,
				   (uintptr_t)&wrong,
				   UINTPTR_MAX,
				   (uintptr_t)fx.module,
				   (uintptr_t)fx.memory};
	uint32_t one = 1;
	void *params[] = {&fx.memory, &one}, *holes[] = {&fx.memory, NULL};
	CUstream s = new_stream(0);
	CUevent e;

	(void)state;
	for (size_t i = 0; i < countof(wrong); i++) {
		CUstream stream = (CUstream)wrong[i];
		CUevent event = (CUevent)wrong[i];
		CUfunction f = (CUfunction)wrong[i];
		int value;

		fails(cuStreamSynchronize(stream), CUDA_ERROR_INVALID_HANDLE);
		fails(cuStreamDestroy(stream), CUDA_ERROR_INVALID_HANDLE);
		fails(cuEventRecord(event, NULL), CUDA_ERROR_INVALID_HANDLE);
		fails(cuEventDestroy(event), CUDA_ERROR_INVALID_HANDLE);
		fails(cuStreamWaitEvent(s, event, 0), CUDA_ERROR_INVALID_HANDLE);
		fails(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, s, params, NULL),
		      CUDA_ERROR_INVALID_HANDLE);
		fails(cuFuncGetAttribute(&value, 0, f), CUDA_ERROR_INVALID_HANDLE);
		fails(cuCtxSetCurrent((CUcontext)wrong[i]), CUDA_ERROR_INVALID_CONTEXT);
		fails(cuMemPoolTrimTo((CUmemoryPool)wrong[i], 0), CUDA_ERROR_INVALID_VALUE);
	}
	fails(cuLaunchKernel(fx.add, 0, 1, 1, 1, 1, 1, 0, s, params, NULL),
	      CUDA_ERROR_INVALID_VALUE);
	fails(cuLaunchKernel(fx.add, 1, 65536, 1, 1, 1, 1, 0, s, params, NULL),
	      CUDA_ERROR_INVALID_VALUE);
	fails(cuLaunchKernel(fx.add, 1, 1, 1, 1024, 2, 1, 0, s, params, NULL),
	      CUDA_ERROR_INVALID_VALUE);
	fails(cuLaunchKernel(fx.add, 1, 1, 1, 1, 1, 1, 60000, s, params, NULL),
	      CUDA_ERROR_INVALID_VALUE);
	fails(cuLaunchKernel(fx.add, 1, 1, 1, 1, 1, 1, 0, s, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
	fails(cuLaunchKernel(fx.add, 1, 1, 1, 1, 1, 1, 0, s, holes, NULL),
	      CUDA_ERROR_INVALID_VALUE);
	fails(cuLaunchKernel(fx.add, 1, 1, 1, 1, 1, 1, 0, s, params, params),
	      CUDA_ERROR_INVALID_VALUE);
	fails(cuLaunchKernelEx(NULL, fx.add, params, NULL), CUDA_ERROR_INVALID_VALUE);
	fails(cuStreamCreate(NULL, 0), CUDA_ERROR_INVALID_VALUE);
	fails(cuStreamCreate(&s, 99), CUDA_ERROR_INVALID_VALUE);
	fails(cuEventCreate(&e, 0x80), CUDA_ERROR_INVALID_VALUE);
	fails(cuLaunchHostFunc(s, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
	fails(cuStreamWaitValue32(s, fx.memory + 2, 0, 0), CUDA_ERROR_INVALID_VALUE);
	fails(cuStreamWaitValue64(s, fx.memory + 4, 0, 0), CUDA_ERROR_INVALID_VALUE);
	fails(cuStreamWaitValue32(s, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
	fails(cuStreamBatchMemOp(s, 1, NULL, 0), CUDA_ERROR_INVALID_VALUE);
	fails(cuCtxGetCurrent(NULL), CUDA_ERROR_INVALID_VALUE);
	fails(cuDeviceGet(&(CUdevice){0}, 1), CUDA_ERROR_INVALID_DEVICE);
	fails(cuDeviceGet(&(CUdevice){0}, -1), CUDA_ERROR_INVALID_DEVICE);
	fails(cuDeviceGetAttribute(&(int){0}, 9999, 0), CUDA_ERROR_INVALID_VALUE);
	fails(cuInit(1), CUDA_ERROR_INVALID_VALUE);
}

static void test_contexts(void **state)
{
	CUcontext primary, again, popped, current, other;
	unsigned flags;
	int active;
	CUdevice dev;

	(void)state;
	ok(cuDevicePrimaryCtxGetState(0, &flags, &active));
	assert_int_equal(active, 0);
	ok(cuDevicePrimaryCtxRetain(&primary, 0));
	ok(cuDevicePrimaryCtxRetain(&again, 0));
	assert_ptr_equal(primary, again);
	fails(cuCtxDestroy(primary), CUDA_ERROR_INVALID_CONTEXT);
	ok(cuCtxPushCurrent(primary));
	ok(cuCtxGetCurrent(&current));
	assert_ptr_equal(current, primary);
	ok(cuDevicePrimaryCtxRelease(0));
	ok(cuCtxGetDevice(&dev));
	ok(cuDevicePrimaryCtxRelease(0));
	fails(cuDevicePrimaryCtxRelease(0), CUDA_ERROR_INVALID_CONTEXT);
	fails(cuCtxGetDevice(&dev), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	ok(cuCtxPopCurrent(&popped));
	assert_ptr_equal(popped, primary);
	ok(cuCtxGetCurrent(&current));
	assert_ptr_equal(current, fx.ctx);

	ok(cuCtxCreate(&other, NULL, 0, 0));
	ok(cuCtxSetCurrent(NULL)); /* off the stack */
	ok(cuCtxGetCurrent(&current));
	assert_ptr_equal(current, fx.ctx);
	ok(cuCtxDestroy(other));
	fails(cuCtxDestroy(other), CUDA_ERROR_INVALID_CONTEXT);
	ok(cuCtxPopCurrent(&popped));
	fails(cuCtxSynchronize(), CUDA_ERROR_INVALID_CONTEXT);
	fails(cuStreamSynchronize(NULL), CUDA_ERROR_INVALID_CONTEXT);
	ok(cuCtxPushCurrent(fx.ctx));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_fatbin),    TEST(test_bad_images),      TEST(test_jit_log),
		TEST(test_functions), TEST(test_library),         TEST(test_names),
		TEST(test_contexts),  TEST(test_hostile_handles),
	};
	int failed;

	own_machine("2", "64M");
	if (cuCtxSynchronize() != CUDA_ERROR_NOT_INITIALIZED) /* before cuInit() */
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	remove_machine();
	return failed;
}
