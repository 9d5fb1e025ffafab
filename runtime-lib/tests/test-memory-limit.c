/* The memory limit: what counts against it, until when, and what holds without an agent. On the
 * null driver. */
#include "memory/memory-account.h"
#include "memory/memory.h"
#include "preempt/code.h"
#include "fake-agent.h"

#include "weir/base.h"

#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

/* A binding is kept by intent when its context ends: a launch may still read it. */
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:binding_new";
}

#define MIB  (1ull << 20)
#define SLOT 3u

static struct fake_agent agent;
static struct weir_limit_page *limit;
static struct weir_account_page *account;
static int fds[2];

static void *page_new(int *fd)
{
	*fd = memfd_create("page", MFD_CLOEXEC);
	assert_true(*fd >= 0 && ftruncate(*fd, WEIR_PAGE_SIZE) == 0);
	void *page = mmap(NULL, WEIR_PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
	assert_true(page != MAP_FAILED);
	return page;
}

static uint64_t reserved(void)
{
	return account->slots[SLOT].reserved;
}

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

/* A connection on which the library has asked. */
static int asked(void)
{
	struct pollfd wait = {.fd = agent.listener, .events = POLLIN};
	union weir_message question;
	int received[WEIR_FDS_MAX];
	size_t n;

	assert_int_equal(poll(&wait, 1, 5000), 1);
	int fd = accept4(agent.listener, NULL, NULL, SOCK_CLOEXEC);
	wait.fd = fd;
	assert_int_equal(poll(&wait, 1, 5000), 1);
	assert_int_equal(weir_message_receive(fd, &question, received, &n), 0);
	assert_int_equal(question.header.type, WEIR_MEMORY);
	return fd;
}

static void *answer(void *unused)
{
	struct weir_account message = {.slot = SLOT};
	int fd = asked();

	(void)unused;
	weir_header_init(&message.header, WEIR_ACCOUNT, sizeof(message));
	assert_int_equal(weir_message_send(fd, &message, sizeof(message), fds, 2), 0);
	close(fd);
	return NULL;
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
	limit->limit = 8 * MIB;
	assert_int_equal(pthread_create(&helper, NULL, answer, NULL), 0);
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
	limit->limit = 32 * MIB;
	assert_int_equal(cuArrayCreate_v2(&array, &plane), CUDA_SUCCESS);
	uint64_t counted = reserved();
	assert_int_equal(cuArrayDestroy(array), CUDA_SUCCESS);
	assert_true(counted == 4 * MIB);
	/* Six sides of two levels. */
	assert_int_equal(cuMipmappedArrayCreate(&levels, &cube, 2), CUDA_SUCCESS);
	counted = reserved();
	assert_int_equal(cuMipmappedArrayDestroy(levels), CUDA_SUCCESS);
	limit->limit = 8 * MIB;
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
	limit->limit = 4 * MIB;
	assert_int_equal(cuMemGetInfo_v2(&free_bytes, &total), CUDA_SUCCESS);
	assert_true(free_bytes == 0 && total == 4 * MIB);
	assert_int_equal(cuMemAlloc_v2(&more, 2 * MIB), CUDA_ERROR_OUT_OF_MEMORY);
	limit->limit = 0;
	assert_int_equal(cuMemAlloc_v2(&more, 2 * MIB), CUDA_SUCCESS);
	free_bytes = 100 * MIB;
	total = 200 * MIB;
	assert_int_equal(cuMemGetInfo_v2(&free_bytes, &total), CUDA_SUCCESS);
	assert_true(free_bytes == 100 * MIB && total == 200 * MIB);
	limit->limit = 10 * MIB;
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
	limit->limit = 8 * MIB;
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
	limit->limit = 8 * MIB;
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
		fake_agent_start(&agent);
		assert_int_equal(pthread_create(&sleeps->helper, NULL, answer, NULL), 0);
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
	fake_agent_stop(&agent);
	assert_int_equal(cuMemCreate(&handle, 2 * MIB, &there, 0), CUDA_SUCCESS);
	fake_agent_start(&agent);
	fake_agent_welcome_next(&agent, 3, 0);
	cuCtxSetCurrent((CUcontext)6);
	assert_int_equal(cuLaunchKernel((CUfunction)7, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL),
			 CUDA_SUCCESS);
	fake_agent_join();
	answer(NULL);
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
	fake_agent_stop(&agent);
	assert_int_equal(cuMemAlloc_v2(&address, 12 * MIB), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(start_on(1, 1ull << 40), CUDA_SUCCESS);

	assert_non_null(mkdtemp(folder));
	snprintf(mark, sizeof(mark), "%s/" WEIR_LIMITED_NAME, folder);
	FILE *file = fopen(mark, "w");
	assert_non_null(file);
	fclose(file);
	snprintf(agent.socket_path, sizeof(agent.socket_path), "%s/agent.sock", folder);
	setenv("WEIR_SOCKET", agent.socket_path, 1);
	sleeps = &all;
	assert_int_equal(start_on(2, 2 * MIB), CUDA_ERROR_OUT_OF_MEMORY);
	assert_in_range(all.n, 250, 300); /* sleeps of 0.1 s */

	sleeps = &some;
	assert_int_equal(start_on(3, 2 * MIB), CUDA_SUCCESS);
	assert_int_equal(some.n, 250);
	pthread_join(some.helper, NULL);
	sleeps = NULL;
	fake_agent_stop(&agent);
	unlink(mark);
	rmdir(folder);
}

/* An agent that hears of the pod after the first question. */
static void *refuse_and_answer(void *unused)
{
	struct weir_refused message = {.reason = WEIR_REFUSED_INTERNAL};
	int fd = asked();

	weir_header_init(&message.header, WEIR_REFUSED, sizeof(message));
	assert_int_equal(weir_message_send(fd, &message, sizeof(message), NULL, 0), 0);
	close(fd);
	return answer(unused);
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

	agent.listener = -1;
	fake_agent_init(&agent);
	assert_int_equal(pthread_create(&helper, NULL, refuse_and_answer, NULL), 0);
	sleeps = &some;
	assert_int_equal(start_on(6, 2 * MIB), CUDA_SUCCESS);
	assert_int_equal(some.n, 1);
	pthread_join(helper, NULL);
	sleeps = NULL;

	fake_agent_stop(&agent);
	setenv(WEIR_LIMITED_VARIABLE, "0", 1);
	assert_int_equal(start_on(7, 1ull << 40), CUDA_SUCCESS);
	unsetenv(WEIR_LIMITED_VARIABLE);
}

static int begin(void **state)
{
	(void)state;
	fake_agent_init(&agent);
	limit = page_new(&fds[0]);
	account = page_new(&fds[1]);
	return 0;
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
		cmocka_unit_test(memory_goes_with_its_context),
		cmocka_unit_test(memory_stays_if_its_context_stays),
		cmocka_unit_test(code_stays_if_its_context_stays),
		cmocka_unit_test(buffers_of_a_context_count),
		cmocka_unit_test(earlier_memory_counts_when_an_agent_comes),
		cmocka_unit_test(without_an_agent),
		cmocka_unit_test(a_container_that_may_be_limited_waits),
	};

	setenv("WEIR_DRIVER", NULL_DRIVER, 1);
	return cmocka_run_group_tests(tests, begin, NULL);
}
