/* The memory limit: what counts against it, until when, and that it is never exceeded. On the null
 * driver. */
#include "memory/memory-account.h"
#include "memory/memory.h"
#include "limited.h"

#include "weir/base.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Threads play processes. The sum never exceeds the limit. */
#define RACERS 4u

static _Atomic int racing;
static struct weir_account_page shared;
static struct weir_limit_page shared_limit;

static void *race(void *argument)
{
	const uint32_t slot = (uint32_t)(uintptr_t)argument;

	for (int i = 0; i < 20000; i++) {
		uint64_t more = (uint64_t)(1 + i % 3) * WEIR_MEMORY_CHUNK;
		if (account_reserve(&shared, &shared_limit, slot, more) == ACCOUNT_RESERVED &&
		    account_sum(&shared) > shared_limit.limit)
			atomic_store(&racing, -1);
		if (i % 2)
			account_set(&shared, slot, 0);
	}
	return NULL;
}

static void the_limit_is_never_exceeded(void **state)
{
	pthread_t threads[RACERS];

	(void)state;
	shared_limit.limit = 5 * WEIR_MEMORY_CHUNK;
	for (uintptr_t i = 0; i < RACERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, race, (void *)i), 0);
	for (size_t i = 0; i < RACERS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(racing, 0);
	assert_int_equal(shared.lock, 0);
}

static void sums_do_not_wrap(void **state)
{
	(void)state;
	memset(&shared, 0, sizeof(shared));
	shared.slots[7].reserved = UINT64_MAX - 1;
	assert_int_equal(account_reserve(&shared, &shared_limit, 1, WEIR_MEMORY_CHUNK),
			 ACCOUNT_FULL);
	assert_int_equal(account_reserve(&shared, &shared_limit, 1, UINT64_MAX), ACCOUNT_FULL);
	assert_true(account_sum(&shared) == UINT64_MAX - 1);
	assert_true(account_chunks(UINT64_MAX) == UINT64_MAX);
	assert_true(account_chunks(1) == WEIR_MEMORY_CHUNK);
	assert_true(account_chunks(WEIR_MEMORY_CHUNK) == WEIR_MEMORY_CHUNK);
}

/* Another process holds the lock for ever. */
static void a_lost_lock_does_not_hang(void **state)
{
	(void)state;
	memset(&shared, 0, sizeof(shared));
	shared.lock = 77;
	assert_int_equal(account_reserve(&shared, &shared_limit, 1, 1), ACCOUNT_BUSY);
	assert_int_equal(shared.lock, 77);
}

static void everything_counts(void **state)
{
	CUDA_ARRAY_DESCRIPTOR plane = {
		.Width = 1024, .Height = 512, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};
	CUmemAllocationProp device = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
				      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
	CUmemGenericAllocationHandle handle = 11;
	CUdeviceptr address = 0, more = 0;
	CUarray array = (CUarray)12;
	pthread_t helper;

	(void)state;
	limited.limit->limit = 8 * MIB;
	assert_int_equal(pthread_create(&helper, NULL, limited_answer, NULL), 0);
	assert_int_equal(cuMemAlloc_v2(&address, 4 * MIB), CUDA_SUCCESS);
	pthread_join(helper, NULL);
	assert_true(reserved() == 4 * MIB);
	assert_int_equal(cuArrayCreate_v2(&array, &plane), CUDA_SUCCESS);
	assert_true(reserved() == 6 * MIB);
	assert_int_equal(cuMemCreate(&handle, 2 * MIB, &device, 0), CUDA_SUCCESS);
	assert_true(reserved() == 8 * MIB);
	assert_int_equal(cuMemAlloc_v2(&more, 1), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(cuMemCreate(&handle, UINT64_MAX, &device, 0), CUDA_ERROR_OUT_OF_MEMORY);
	assert_true(reserved() == 8 * MIB);

	/* Physical memory exists until nothing maps it. */
	assert_int_equal(cuMemMap(0x1000000, 2 * MIB, 0, handle, 0), CUDA_SUCCESS);
	assert_int_equal(cuMemRelease(handle), CUDA_SUCCESS);
	assert_true(reserved() == 8 * MIB);
	assert_int_equal(cuMemUnmap(0x1000000, 2 * MIB), CUDA_SUCCESS);
	assert_true(reserved() == 6 * MIB);
	assert_int_equal(cuArrayDestroy(array), CUDA_SUCCESS);
	assert_int_equal(cuMemFree_v2(address), CUDA_SUCCESS);
	assert_true(reserved() == 0);
}

static void arrays_count_all_of_their_bits(void **state)
{
	CUDA_ARRAY_DESCRIPTOR plane = {.Width = 1024,
				       .Height = 512,
				       .Format = CU_AD_FORMAT_SNORM_INT16X4,
				       .NumChannels = 4};
	CUDA_ARRAY3D_DESCRIPTOR cube = {.Width = 2048,
					.Height = 2048,
					.Depth = 6,
					.Format = CU_AD_FORMAT_UNSIGNED_INT8,
					.NumChannels = 1,
					.Flags = CUDA_ARRAY3D_CUBEMAP};
	CUmipmappedArray levels = (CUmipmappedArray)14;
	CUarray array = (CUarray)13;

	(void)state;
	limited.limit->limit = 32 * MIB;
	assert_int_equal(cuArrayCreate_v2(&array, &plane), CUDA_SUCCESS);
	uint64_t counted = reserved();
	assert_int_equal(cuArrayDestroy(array), CUDA_SUCCESS);
	assert_true(counted == 4 * MIB);
	/* Six sides of two levels. */
	assert_int_equal(cuMipmappedArrayCreate(&levels, &cube, 2), CUDA_SUCCESS);
	counted = reserved();
	assert_int_equal(cuMipmappedArrayDestroy(levels), CUDA_SUCCESS);
	limited.limit->limit = 8 * MIB;
	assert_true(counted == 30 * MIB);
}

/* Host memory and imported memory. */
static void host_and_imported_memory_do_not_count(void **state)
{
	CUmemAllocationProp host = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
				    .location = {.type = CU_MEM_LOCATION_TYPE_HOST}};
	CUmemGenericAllocationHandle handle = 21;
	CUipcMemHandle other = {{0}};
	CUdeviceptr address = 22;
	static char page[4096];
	void *pinned = page;

	(void)state;
	assert_int_equal(cuMemHostRegister_v2(page, sizeof(page), 0), CUDA_SUCCESS);
	assert_int_equal(cuMemHostAlloc(&pinned, 64 * MIB, 0), CUDA_SUCCESS);
	assert_int_equal(cuMemCreate(&handle, 64 * MIB, &host, 0), CUDA_SUCCESS);
	assert_int_equal(cuIpcOpenMemHandle_v2(&address, other, 1), CUDA_SUCCESS);
	assert_int_equal(cuMemImportFromShareableHandle(&handle, NULL, 1), CUDA_SUCCESS);
	assert_int_equal(cuMemMap(0x2000000, 2 * MIB, 0, handle, 0), CUDA_SUCCESS);
	assert_int_equal(cuMemUnmap(0x2000000, 2 * MIB), CUDA_SUCCESS);
	assert_true(reserved() == 0);
}

static void small_allocations_share_a_chunk(void **state)
{
	CUdeviceptr addresses[3];

	(void)state;
	for (size_t i = 0; i < countof(addresses); i++)
		assert_int_equal(cuMemAlloc_v2(&addresses[i], 1000), CUDA_SUCCESS);
	assert_true(reserved() == 2 * MIB);
	for (size_t i = 0; i < countof(addresses); i++)
		assert_int_equal(cuMemFree_v2(addresses[i]), CUDA_SUCCESS);
	assert_true(reserved() == 0);
}

/* Memory above a lowered limit stays. */
static void limits_change_live(void **state)
{
	size_t free_bytes = 100 * MIB, total = 200 * MIB;
	CUdeviceptr address, more;

	(void)state;
	assert_int_equal(cuMemAlloc_v2(&address, 6 * MIB), CUDA_SUCCESS);
	limited.limit->limit = 4 * MIB;
	assert_int_equal(cuMemGetInfo_v2(&free_bytes, &total), CUDA_SUCCESS);
	assert_true(free_bytes == 0 && total == 4 * MIB);
	assert_int_equal(cuMemAlloc_v2(&more, 2 * MIB), CUDA_ERROR_OUT_OF_MEMORY);
	limited.limit->limit = 0;
	assert_int_equal(cuMemAlloc_v2(&more, 2 * MIB), CUDA_SUCCESS);
	free_bytes = 100 * MIB;
	total = 200 * MIB;
	assert_int_equal(cuMemGetInfo_v2(&free_bytes, &total), CUDA_SUCCESS);
	assert_true(free_bytes == 100 * MIB && total == 200 * MIB);
	limited.limit->limit = 10 * MIB;
	assert_int_equal(cuDeviceTotalMem_v2(&total, 0), CUDA_SUCCESS);
	assert_true(total == 10 * MIB);
	assert_int_equal(cuMemFree_v2(address), CUDA_SUCCESS);
	assert_int_equal(cuMemFree_v2(more), CUDA_SUCCESS);
	assert_true(reserved() == 0);
}

/* Pools hold what was allocated from them. The device's own pool is number 1. */
#define POOLS 128u

static uint64_t pooled[POOLS];
static uintptr_t last_pool;

static CUresult own_pool(CUmemoryPool *out, CUdevice device)
{
	(void)device;
	*out = (CUmemoryPool)1;
	return CUDA_SUCCESS;
}

static CUresult new_pool(CUmemoryPool *out, const CUmemPoolProps *properties)
{
	(void)properties;
	*out = (CUmemoryPool)++last_pool;
	return CUDA_SUCCESS;
}

static CUresult size_of_pool(CUmemoryPool pool, CUmemPool_attribute attribute, void *out)
{
	(void)attribute;
	*(uint64_t *)out = pooled[(uintptr_t)pool];
	return CUDA_SUCCESS;
}

static CUresult from_pool(CUdeviceptr *out, size_t size, CUmemoryPool pool, CUstream stream)
{
	static CUdeviceptr next = 0x40000000;

	(void)stream;
	pooled[(uintptr_t)pool] += size;
	*out = next += size;
	return CUDA_SUCCESS;
}

static CUresult from_own_pool(CUdeviceptr *out, size_t size, CUstream stream)
{
	return from_pool(out, size, (CUmemoryPool)1, stream);
}

/* Of a kind that only this function returns. */
static CUresult current_pool(CUmemoryPool *out, CUmemLocation *location, CUmemAllocationType type)
{
	(void)location, (void)type;
	return new_pool(out, NULL);
}

static struct {
	enum hook_id id;
	void *ours, *before;
} with_pools[] = {
	{HOOK_cuMemGetMemPool, current_pool, NULL},
	{HOOK_cuDeviceGetDefaultMemPool, own_pool, NULL},
	{HOOK_cuMemPoolCreate, new_pool, NULL},
	{HOOK_cuMemPoolGetAttribute, size_of_pool, NULL},
	{HOOK_cuMemAllocFromPoolAsync, from_pool, NULL},
	{HOOK_cuMemAllocAsync, from_own_pool, NULL},
};

static void pools_begin(void)
{
	for (size_t i = 0; i < countof(with_pools); i++) {
		struct hook *hook = &driver_hooks[with_pools[i].id];
		with_pools[i].before = hook->real;
		hook->real = with_pools[i].ours;
	}
	last_pool = 1;
	limited.limit->limit = 8 * MIB;
}

static void pools_finish(void)
{
	memset(pooled, 0, sizeof(pooled));
	for (uintptr_t pool = 1; pool <= last_pool; pool++)
		cuMemPoolDestroy((CUmemoryPool)pool);
	for (size_t i = 0; i < countof(with_pools); i++)
		driver_hooks[with_pools[i].id].real = with_pools[i].before;
	assert_true(reserved() == 0);
}

static void the_devices_own_pool_is_always_counted(void **state)
{
	CUmemPoolProps properties = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
	CUmemoryPool pool;
	CUdeviceptr address;

	(void)state;
	pools_begin();
	while (last_pool < POOLS - 1 && cuMemPoolCreate(&pool, &properties) == CUDA_SUCCESS)
		;
	assert_in_range(last_pool, 32, POOLS - 2);
	assert_int_equal(cuMemAllocAsync(&address, 6 * MIB, NULL), CUDA_SUCCESS);
	uint64_t counted = reserved();
	pools_finish();
	assert_true(counted == 6 * MIB);
}

/* No hook sees the driver create it. */
static void a_requested_pool_counts(void **state)
{
	CUmemLocation here = {.type = CU_MEM_LOCATION_TYPE_DEVICE};
	CUmemoryPool pool;
	CUdeviceptr address;

	(void)state;
	pools_begin();
	assert_int_equal(cuMemGetMemPool(&pool, &here, CU_MEM_ALLOCATION_TYPE_MANAGED),
			 CUDA_SUCCESS);
	CUresult result = cuMemAllocFromPoolAsync(&address, 6 * MIB, pool, NULL);
	uint64_t counted = reserved();
	cuMemFreeAsync(address, NULL);
	pools_finish();
	assert_int_equal(result, CUDA_SUCCESS);
	assert_true(counted == 6 * MIB);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_limit_is_never_exceeded),
		cmocka_unit_test(sums_do_not_wrap),
		cmocka_unit_test(a_lost_lock_does_not_hang),
		cmocka_unit_test(everything_counts),
		cmocka_unit_test(arrays_count_all_of_their_bits),
		cmocka_unit_test(host_and_imported_memory_do_not_count),
		cmocka_unit_test(small_allocations_share_a_chunk),
		cmocka_unit_test(limits_change_live),
		cmocka_unit_test(the_devices_own_pool_is_always_counted),
		cmocka_unit_test(a_requested_pool_counts),
	};

	setenv("WEIR_DRIVER", NULL_DRIVER, 1);
	return cmocka_run_group_tests(tests, limited_init, NULL);
}
