/* Memory: allocation, registration, copies, sets, pools, pointer attributes. */
#include "driver-test.h"

#include <sys/mman.h>

static size_t free_memory(void)
{
	size_t bytes, total;

	ok(cuMemGetInfo(&bytes, &total));
	return bytes;
}

static void test_allocation(void **state)
{
	CUdeviceptr p, base;
	size_t before = free_memory(), size, total, pitch;

	(void)state;
	ok(cuMemGetInfo(&size, &total));
	assert_int_equal(total, 64u << 20);
	ok(cuMemAlloc(&p, 1 << 20));
	assert_int_equal(before - free_memory(), 1 << 20);
	ok(cuMemGetAddressRange(&base, &size, p + 1000));
	assert_int_equal(base, p);
	assert_int_equal(size, 1 << 20);
	fails(cuMemFree(p + 1), CUDA_ERROR_INVALID_VALUE);
	ok(cuMemFree(p));
	fails(cuMemFree(p), CUDA_ERROR_INVALID_VALUE);
	ok(cuMemFree(0));
	assert_int_equal(free_memory(), before);
	fails(cuMemAlloc(&p, 0), CUDA_ERROR_INVALID_VALUE);
	fails(cuMemAlloc(&p, 65u << 20), CUDA_ERROR_OUT_OF_MEMORY);
	fails(cuMemAlloc(&p, SIZE_MAX), CUDA_ERROR_OUT_OF_MEMORY);
	ok(cuMemAllocPitch(&p, &pitch, 100, 10, 4));
	assert_int_equal(pitch, 512);
	ok(cuMemFree(p));
	fails(cuMemAllocPitch(&p, &pitch, SIZE_MAX - 5, 10, 4), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(free_memory(), before);
}

static void test_context_gives_back(void **state)
{
	size_t before = free_memory();
	CUcontext other;
	CUdeviceptr p;

	(void)state;
	ok(cuCtxCreate(&other, NULL, 0, 0));
	ok(cuMemAlloc(&p, 5 << 20));
	ok(cuMemAllocAsync(&p, 5 << 20, NULL));
	assert_int_equal(before - free_memory(), 10 << 20);
	ok(cuCtxDestroy(other));
	ok(cuCtxSetCurrent(fx.ctx));
	assert_int_equal(free_memory(), before);
}

/* Freeing waits for all work, as with the driver. */
static void test_free_waits(void **state)
{
	CUstream s = new_stream(CU_STREAM_NON_BLOCKING);
	CUdeviceptr p;

	(void)state;
	ok(cuMemAlloc(&p, 4096));
	for (int i = 0; i < 50; i++)
		append(s, 1);
	ok(cuMemFree(p));
	assert_int_equal(fx.host[512], 50);
}

static void test_linear_copies(void **state)
{
	uint32_t from[4] = {1, 2, 3, 4}, to[4] = {0};
	CUdeviceptr p = fx.memory;

	(void)state;
	ok(cuMemcpyHtoD(p, from, sizeof(from)));
	ok(cuMemcpyDtoD(p + 16, p, 8));
	ok(cuMemcpy(p + 24, p + 8, 8));
	ok(cuMemcpyDtoH(to, p + 16, 16));
	assert_memory_equal(from, to, 16);
	ok(cuMemcpyPeer(p + 32, fx.ctx, p, fx.ctx, 8));
	assert_int_equal(device_word(9), 2);
	memset(to, 0, sizeof(to));
	ok(cuMemcpy(pointer_to(to), p, 16)); /* either way */
	assert_memory_equal(from, to, 16);
	ok(cuMemcpyHtoD(p, from, 0));
	fails(cuMemcpyHtoD(p + 4090, from, 16), CUDA_ERROR_INVALID_VALUE);
	fails(cuMemcpyHtoD(pointer_to(from), from, 4), CUDA_ERROR_INVALID_VALUE);
	fails(cuMemcpyDtoH(to, 0x1000, 4), CUDA_ERROR_INVALID_VALUE);
	fails(cuMemcpyDtoH(NULL, p, 4), CUDA_ERROR_INVALID_VALUE);
}

/* A copy from pageable memory reads it during the call. One from pinned memory reads it when the
 * copy runs. */
static void test_asynchronous_copies(void **state)
{
	CUstream s = new_stream(CU_STREAM_NON_BLOCKING);
	uint32_t pageable = 5, back = 0;

	(void)state;
	fx.host[10] = 5;
	ok(cuStreamWaitValue32(s, pointer_to(fx.host), 1, CU_STREAM_WAIT_VALUE_EQ));
	ok(cuMemcpyHtoDAsync(fx.memory, &pageable, 4, s));
	ok(cuMemcpyHtoDAsync(fx.memory + 4, fx.host + 10, 4, s));
	ok(cuMemcpyDtoHAsync(fx.host + 11, fx.memory, 4, s));
	pageable = 6;
	set_word(fx.host + 10, 6);
	assert_int_equal(get_word(fx.host + 11), 0);
	set_word(fx.host, 1);
	ok(cuMemcpyDtoHAsync(&back, fx.memory + 4, 4, s)); /* to pageable memory: done at return */
	assert_int_equal(back, 6);
	assert_int_equal(fx.host[11], 5);
}

static void test_sets(void **state)
{
	CUstream s = new_stream(CU_STREAM_NON_BLOCKING);

	(void)state;
	ok(cuMemsetD8(fx.memory, 0xab, 4));
	ok(cuMemsetD16(fx.memory + 4, 0x1234, 2));
	ok(cuMemsetD32Async(fx.memory + 8, 0xdeadbeef, 2, s));
	ok(cuMemsetD2D32Async(fx.memory + 64, 16, 7, 2, 3, s));
	ok(cuStreamSynchronize(s));
	assert_int_equal(device_word(0), 0xabababab);
	assert_int_equal(device_word(1), 0x12341234);
	assert_int_equal(device_word(3), 0xdeadbeef);
	assert_int_equal(device_word(16 + 1), 7);
	assert_int_equal(device_word(16 + 2), 0);
	assert_int_equal(device_word(16 + 9), 7);
	assert_int_equal(device_word(16 + 12), 0);
	fails(cuMemsetD32(fx.memory + 2, 0, 1), CUDA_ERROR_INVALID_VALUE);
	fails(cuMemsetD8(fx.memory, 0, 4097), CUDA_ERROR_INVALID_VALUE);
	fails(cuMemsetD32(fx.memory, 0, SIZE_MAX / 2), CUDA_ERROR_INVALID_VALUE);
}

static void test_planar_copies(void **state)
{
	char from[6][8], to[6][8] = {{0}};
	CUDA_MEMCPY2D in = {.srcMemoryType = CU_MEMORYTYPE_HOST,
			    .srcHost = from,
			    .srcPitch = 8,
			    .srcXInBytes = 2,
			    .srcY = 1,
			    .dstMemoryType = CU_MEMORYTYPE_DEVICE,
			    .dstDevice = fx.memory,
			    .dstPitch = 512,
			    .WidthInBytes = 4,
			    .Height = 3};
	CUDA_MEMCPY3D out = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
			     .srcDevice = fx.memory,
			     .srcPitch = 512,
			     .srcHeight = 3,
			     .dstMemoryType = CU_MEMORYTYPE_HOST,
			     .dstHost = to,
			     .dstPitch = 8,
			     .dstHeight = 6,
			     .WidthInBytes = 4,
			     .Height = 3,
			     .Depth = 1};

	(void)state;
	for (int y = 0; y < 6; y++)
		for (int x = 0; x < 8; x++)
			from[y][x] = (char)(10 * y + x);
	ok(cuMemcpy2D(&in));
	ok(cuMemcpy3D(&out));
	for (int y = 0; y < 3; y++)
		for (int x = 0; x < 4; x++)
			assert_int_equal(to[y][x], 10 * (y + 1) + x + 2);
	assert_int_equal(to[0][4], 0);
	in.Height = 100; /* more than there is */
	fails(cuMemcpy2D(&in), CUDA_ERROR_INVALID_VALUE);
	in.Height = SIZE_MAX;
	fails(cuMemcpy2D(&in), CUDA_ERROR_INVALID_VALUE);
	in.dstMemoryType = CU_MEMORYTYPE_ARRAY;
	fails(cuMemcpy2D(&in), CUDA_ERROR_NOT_SUPPORTED);
	fails(cuMemcpy2D(NULL), CUDA_ERROR_INVALID_VALUE);
}

static void test_registered_memory(void **state)
{
	uint32_t *page =
		mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CUdeviceptr p;
	unsigned flags;

	(void)state;
	fails(cuMemHostGetDevicePointer(&p, page, 0), CUDA_ERROR_INVALID_VALUE);
	ok(cuMemHostRegister(page, 4096, CU_MEMHOSTREGISTER_DEVICEMAP));
	fails(cuMemHostRegister(page, 4096, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
	fails(cuMemHostRegister(page + 1, 8000, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
	ok(cuMemHostGetDevicePointer(&p, page, 0));
	ok(launch2(fx.add, 3, NULL, &p, &(uint32_t){2}));
	ok(cuCtxSynchronize());
	assert_int_equal(page[0], 6);
	fails(cuMemHostUnregister(page + 1), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
	ok(cuMemHostUnregister(page));
	fails(cuMemHostUnregister(page), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
	fails(cuStreamWaitValue32(NULL, pointer_to(page), 0, 0), CUDA_ERROR_INVALID_VALUE);
	ok(cuMemHostGetFlags(&flags, fx.host));
	assert_true(flags & CU_MEMHOSTALLOC_DEVICEMAP);
	fails(cuMemHostRegister(NULL, 4096, 0), CUDA_ERROR_INVALID_VALUE);
	fails(cuMemHostRegister(page, 0, 0), CUDA_ERROR_INVALID_VALUE);
	munmap(page, 8192);
	fails(cuMemHostRegister(page, 4096, 0), CUDA_ERROR_INVALID_VALUE);
}

/* A read-only page can be registered read-only; it can be waited on and not written. */
static void test_read_only_registration(void **state)
{
	uint32_t *page = mmap(NULL, 4096, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CUstream s = new_stream(CU_STREAM_NON_BLOCKING);

	(void)state;
	fails(cuMemHostRegister(page, 4096, 0), CUDA_ERROR_INVALID_VALUE);
	ok(cuMemHostRegister(page, 4096, CU_MEMHOSTREGISTER_READ_ONLY));
	ok(cuStreamWaitValue32(s, pointer_to(page), 0, CU_STREAM_WAIT_VALUE_EQ));
	ok(cuStreamSynchronize(s));
	fails(cuStreamWriteValue32(s, pointer_to(page), 1, 0), CUDA_ERROR_INVALID_VALUE);
	fails(cuMemsetD8(pointer_to(page), 1, 1), CUDA_ERROR_INVALID_VALUE);
	ok(cuMemHostUnregister(page));
	munmap(page, 4096);
}

static uint64_t pool_number(CUmemoryPool pool, CUmemPool_attribute attribute)
{
	cuuint64_t number = 0;

	ok(cuMemPoolGetAttribute(pool, attribute, &number));
	return number;
}

/* Released memory goes back to the pool in stream order, and the pool keeps it up to the threshold.
 */
static void test_pools(void **state)
{
	CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
				.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
	CUstream s = new_stream(CU_STREAM_NON_BLOCKING);
	size_t before = free_memory();
	cuuint64_t threshold = 8 << 20;
	CUmemoryPool pool, standard;
	CUdeviceptr p, q;

	(void)state;
	ok(cuDeviceGetDefaultMemPool(&standard, 0));
	ok(cuMemAllocAsync(&p, 1 << 20, s));
	ok(cuMemsetD32Async(p, 3, 100, s));
	ok(cuStreamWaitValue32(s, pointer_to(fx.host), 1, CU_STREAM_WAIT_VALUE_EQ));
	ok(cuMemFreeAsync(p, s));
	fails(cuMemFreeAsync(p, s), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(before - free_memory(), 1 << 20);
	assert_int_equal(pool_number(standard, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 1 << 20);
	set_word(fx.host, 1);
	ok(cuStreamSynchronize(s));
	assert_int_equal(free_memory(), before);

	ok(cuMemPoolCreate(&pool, &props));
	ok(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
	ok(cuMemAllocFromPoolAsync(&p, 1 << 20, pool, s));
	ok(cuMemFreeAsync(p, s));
	ok(cuStreamSynchronize(s));
	assert_int_equal(before - free_memory(), 1 << 20);
	assert_int_equal(pool_number(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 1 << 20);
	assert_int_equal(pool_number(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0);
	ok(cuMemAllocFromPoolAsync(&q, 1 << 20, pool, s));
	assert_int_equal(p, q);
	ok(cuMemFree(q));
	ok(cuMemPoolTrimTo(pool, 0));
	assert_int_equal(free_memory(), before);
	assert_int_equal(pool_number(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH), 1 << 20);

	ok(cuMemAllocFromPoolAsync(&p, 1 << 20, pool, s));
	ok(cuMemPoolDestroy(pool)); /* what is handed out stays good */
	ok(cuMemsetD8Async(p, 0, 16, s));
	ok(cuMemFreeAsync(p, s));
	ok(cuStreamSynchronize(s));
	assert_int_equal(free_memory(), before);
	fails(cuMemPoolDestroy(pool), CUDA_ERROR_INVALID_VALUE);
	fails(cuMemPoolDestroy(standard), CUDA_ERROR_INVALID_VALUE);
	fails(cuMemAllocAsync(&p, 65u << 20, s), CUDA_ERROR_OUT_OF_MEMORY);
}

/* Two pieces of memory side by side, with and without access. */
static void test_mapping(void **state)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
				    .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
				    .requestedHandleTypes =
					    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR};
	CUmemAccessDesc access = {.location = prop.location,
				  .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUmemGenericAllocationHandle a, b, imported;
	size_t before = free_memory(), step;
	CUdeviceptr base;
	uint32_t words[2] = {0};
	int fd;

	(void)state;
	ok(cuMemGetAllocationGranularity(&step, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
	ok(cuMemCreate(&a, step, &prop, 0));
	ok(cuMemCreate(&b, step, &prop, 0));
	assert_int_equal(before - free_memory(), 2 * step);
	fails(cuMemCreate(&b, 33 * step, &prop, 0), CUDA_ERROR_OUT_OF_MEMORY);
	fails(cuMemCreate(&b, 100, &prop, 0), CUDA_ERROR_INVALID_VALUE);
	ok(cuMemAddressReserve(&base, 3 * step, 0, 0, 0));
	fails(cuMemMap(base + 4 * step, step, 0, a, 0), CUDA_ERROR_INVALID_VALUE);
	ok(cuMemMap(base, step, 0, a, 0));
	ok(cuMemMap(base + step, step, 0, b, 0));
	fails(cuMemMap(base + step, step, 0, a, 0), CUDA_ERROR_INVALID_VALUE);
	fails(cuMemsetD32(base, 1, 1), CUDA_ERROR_INVALID_VALUE); /* no access yet */
	ok(cuMemSetAccess(base, 2 * step, &access, 1));
	ok(cuMemsetD32(base + step - 4, 0x55, 2)); /* over the seam */
	fails(cuMemsetD32(base + 2 * step - 4, 0x55, 2), CUDA_ERROR_INVALID_VALUE);
	ok(cuMemcpyDtoH(words, base + step - 4, 8));
	assert_int_equal(words[0] & words[1], 0x55);

	ok(cuMemExportToShareableHandle(&fd, b, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	ok(cuMemImportFromShareableHandle(&imported, (void *)(intptr_t)fd,
					  CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
	close(fd);
	ok(cuMemMap(base + 2 * step, step, 0, imported, 0));
	ok(cuMemSetAccess(base + 2 * step, step, &access, 1));
	ok(cuMemcpyDtoH(words, base + 2 * step, 4));
	assert_int_equal(words[0], 0x55); /* the same memory */

	ok(cuMemRelease(a));
	fails(cuMemRelease(a), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(before - free_memory(), 2 * step); /* still mapped */
	fails(cuMemAddressFree(base, 3 * step), CUDA_ERROR_INVALID_VALUE);
	ok(cuMemUnmap(base, 3 * step));
	ok(cuMemAddressFree(base, 3 * step));
	ok(cuMemRelease(b));
	ok(cuMemRelease(imported));
	assert_int_equal(free_memory(), before);
}

static void test_pointer_attributes(void **state)
{
	CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
				       CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
				       CU_POINTER_ATTRIBUTE_RANGE_SIZE};
	unsigned type = 99;
	CUdeviceptr device = 0;
	size_t size = 0;
	void *where[] = {&type, &device, &size};
	int on_stack;
	CUcontext ctx;

	(void)state;
	ok(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, fx.memory + 5));
	assert_int_equal(type, CU_MEMORYTYPE_DEVICE);
	ok(cuPointerGetAttribute(&ctx, CU_POINTER_ATTRIBUTE_CONTEXT, fx.memory));
	assert_ptr_equal(ctx, fx.ctx);
	ok(cuPointerGetAttributes(3, which, where, pointer_to(fx.host + 1)));
	assert_int_equal(type, CU_MEMORYTYPE_HOST);
	assert_int_equal(device, pointer_to(fx.host + 1));
	assert_int_equal(size, 4096);
	fails(cuPointerGetAttribute(&type, which[0], pointer_to(&on_stack)),
	      CUDA_ERROR_INVALID_VALUE);
	ok(cuPointerGetAttributes(3, which, where, pointer_to(&on_stack)));
	assert_int_equal(type, 0);
}

static void test_module_variables(void **state)
{
	CUdeviceptr p;
	size_t size;
	uint32_t value = 0;

	(void)state;
	ok(cuModuleGetGlobal(&p, &size, fx.module, "counter"));
	assert_int_equal(size, 4);
	ok(cuMemcpyDtoH(&value, p, 4));
	assert_int_equal(value, 7);
	ok(launch2(fx.add, 2, NULL, &p, &(uint32_t){4}));
	ok(cuMemcpyDtoH(&value, p, 4));
	assert_int_equal(value, 15);
	fails(cuModuleGetGlobal(&p, &size, fx.module, "nothing"), CUDA_ERROR_NOT_FOUND);
	ok(cuModuleUnload(fx.module));
	fails(cuMemcpyDtoH(&value, p, 4), CUDA_ERROR_INVALID_VALUE);
	fails(cuModuleGetFunction(&fx.add, fx.module, "add"), CUDA_ERROR_INVALID_HANDLE);
}

/* Variables, the buffers that limits size, and graphs take memory of the GPU. */
static void test_memory_without_allocation(void **state)
{
	static const char big[] = ".version 8.0\n.target sm_90\n.address_size 64\n"
				  ".visible .global .align 8 .b8 big[8388608];\n"
				  ".visible .entry k() { ret; }\n";
	CUDA_MEM_ALLOC_NODE_PARAMS node = {
		.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
			      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}},
		.bytesize = 8 << 20};
	size_t before = free_memory();
	cuuint64_t reserved;
	CUgraphExec exec;
	CUgraphNode made;
	CUmodule module;
	CUgraph graph;
	CUcontext other;

	(void)state;
	ok(cuModuleLoadData(&module, big));
	assert_int_equal(before - free_memory(), 8 << 20);
	ok(cuModuleUnload(module));
	assert_int_equal(free_memory(), before);

	ok(cuCtxCreate(&other, NULL, 0, 0));
	ok(cuModuleLoadData(&module, big));
	ok(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 12 << 20));
	ok(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 2048)); /* 2 SMs of 1024 threads */
	assert_int_equal(before - free_memory(), 14 << 20);
	fails(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, SIZE_MAX), CUDA_ERROR_OUT_OF_MEMORY);
	ok(cuCtxDestroy(other));
	ok(cuCtxSetCurrent(fx.ctx));
	assert_int_equal(free_memory(), before);

	ok(cuGraphCreate(&graph, 0));
	ok(cuGraphAddMemAllocNode(&made, graph, NULL, 0, &node));
	assert_int_equal(cuGraphMemAllocNodeGetParams(made, &node), CUDA_SUCCESS);
	ok(cuGraphInstantiate(&exec, graph, 0));
	assert_int_equal(free_memory(), before);
	ok(cuGraphLaunch(exec, NULL));
	ok(cuGraphLaunch(exec, NULL));
	ok(cuMemsetD8(node.dptr, 1, node.bytesize));
	ok(cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &reserved));
	assert_int_equal(reserved, 8 << 20);
	ok(cuDeviceGraphMemTrim(0));
	assert_int_equal(before - free_memory(), 8 << 20);
	ok(cuGraphExecDestroy(exec));
	assert_int_equal(before - free_memory(), 8 << 20);
	ok(cuDeviceGraphMemTrim(0));
	assert_int_equal(free_memory(), before);
	ok(cuGraphDestroy(graph));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_allocation),
		TEST(test_context_gives_back),
		TEST(test_free_waits),
		TEST(test_linear_copies),
		TEST(test_asynchronous_copies),
		TEST(test_sets),
		TEST(test_planar_copies),
		TEST(test_registered_memory),
		TEST(test_read_only_registration),
		TEST(test_pools),
		TEST(test_mapping),
		TEST(test_pointer_attributes),
		TEST(test_module_variables),
		TEST(test_memory_without_allocation),
	};
	int failed;

	own_machine("2", "64M");
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	remove_machine();
	return failed;
}
