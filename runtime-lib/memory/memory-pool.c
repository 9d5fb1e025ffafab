/* Stream-ordered memory, and memory that graphs own. Pools count as what they hold of the GPU: the
 * driver grows them in its own steps, and shrinks them late. */
#include "memory/memory-account.h"
#include "memory/memory.h"

#include "weir/log.h"

/* Counts the device's own pool. False: too many pools. */
static bool keep_own_pool(struct ledger *ledger, CUdevice device)
{
	CUmemoryPool pool;

	return real(cuDeviceGetDefaultMemPool)(&pool, device) != CUDA_SUCCESS ||
	       ledger_add_pool(ledger, pool);
}

/* @out: ledger of the current device; NULL: not counted. False: nothing may be allocated. */
static bool pools_here(struct ledger **out)
{
	struct ledger *ledger = ledger_here();
	CUdevice device;

	*out = NULL;
	if (!ledger || !ledger_counts(ledger))
		return !ledger || ledger_take(ledger, 0);
	*out = ledger;
	return real(cuCtxGetDevice)(&device) != CUDA_SUCCESS || keep_own_pool(ledger, device);
}

struct stream_claim {
	struct ledger *ledger; /* NULL: not counted */
	size_t size;
	CUmemoryPool pool;
};

/* What a capture allocates is a graph's, which counts when it is instantiated. */
static bool claim(struct stream_claim *claim, size_t size, CUmemoryPool pool)
{
	*claim = (struct stream_claim){.size = size, .pool = pool};
	if (!pools_here(&claim->ledger))
		return false;
	/* Whole chunks, which ledger_settle() gives back. */
	return !claim->ledger || ledger_take(claim->ledger, account_chunks(size));
}

/* If the pool grew beyond the limit, the allocation is undone. */
static CUresult made(const struct stream_claim *claim, CUresult result, CUdeviceptr *out,
		     CUstream stream, CUresult (*give_back)(CUdeviceptr, CUstream))
{
	if (!claim->ledger)
		return result;
	bool fits = ledger_settle(claim->ledger, claim->size);
	if (result != CUDA_SUCCESS)
		return result;
	if (!fits) {
		give_back(*out, stream);
		ledger_settle(claim->ledger, 0);
		log_limited(LOG_WARNING, 10, "a pool grew beyond the container's memory limit");
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	struct record record = {.kind = RECORD_POINTER,
				.key = *out,
				.ledger = claim->ledger,
				.pool = claim->pool,
				.asked = claim->size};
	table_put(&record);
	return result;
}

#define ALLOCATE(function, from, parameters, arguments, give_back)     \
	EXPORT CUresult function parameters                            \
	{                                                              \
		struct memory_wait wait = {0};                         \
		struct stream_claim c;                                 \
		CUresult result;                                       \
                                                                       \
		if (!claim(&c, size, from))                            \
			return CUDA_ERROR_OUT_OF_MEMORY;               \
		do                                                     \
			result = real(function) arguments;             \
		while (memory_wait(&wait, c.ledger, size, result));    \
		return made(&c, result, out, stream, real(give_back)); \
	}
ALLOCATE(cuMemAllocAsync, NULL, (CUdeviceptr * out, size_t size, CUstream stream),
	 (out, size, stream), cuMemFreeAsync)
ALLOCATE(cuMemAllocAsync_ptsz, NULL, (CUdeviceptr * out, size_t size, CUstream stream),
	 (out, size, stream), cuMemFreeAsync_ptsz)
ALLOCATE(cuMemAllocFromPoolAsync, pool,
	 (CUdeviceptr * out, size_t size, CUmemoryPool pool, CUstream stream),
	 (out, size, pool, stream), cuMemFreeAsync)
ALLOCATE(cuMemAllocFromPoolAsync_ptsz, pool,
	 (CUdeviceptr * out, size_t size, CUmemoryPool pool, CUstream stream),
	 (out, size, pool, stream), cuMemFreeAsync_ptsz)

MEMORY_RELEASES(cuMemFreeAsync, RECORD_POINTER, address, (CUdeviceptr address, CUstream stream),
		(address, stream), )
MEMORY_RELEASES(cuMemFreeAsync_ptsz, RECORD_POINTER, address,
		(CUdeviceptr address, CUstream stream), (address, stream), )

/* NULL: host memory. */
static struct ledger *ledger_at(const CUmemLocation *location)
{
	return location->type == CU_MEM_LOCATION_TYPE_DEVICE ? ledger_of(location->id) : NULL;
}

/* The device's own pool is counted first, before others take the last place. */
static CUresult keep_pool(const CUmemLocation *location, CUmemoryPool pool, bool ours)
{
	struct ledger *ledger = ledger_at(location);

	if (!ledger || (keep_own_pool(ledger, location->id) && ledger_add_pool(ledger, pool)))
		return CUDA_SUCCESS;
	log_limited(LOG_WARNING, 60, "more memory pools than can be counted: this one is refused");
	if (ours)
		real(cuMemPoolDestroy)(pool);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

#define GIVES_POOL(function, parameters, arguments, location, ours)                     \
	EXPORT CUresult function parameters                                             \
	{                                                                               \
		CUresult result = driver_ready() ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE; \
                                                                                        \
		result = result ? result : real(function) arguments;                    \
		return result ? result : keep_pool(location, *out, ours);               \
	}
#define AT_LOCATION (CUmemoryPool * out, CUmemLocation * at, CUmemAllocationType type)
GIVES_POOL(cuMemPoolCreate, (CUmemoryPool * out, const CUmemPoolProps *properties),
	   (out, properties), &properties->location, true)
GIVES_POOL(cuMemGetDefaultMemPool, AT_LOCATION, (out, at, type), at, false)
GIVES_POOL(cuMemGetMemPool, AT_LOCATION, (out, at, type), at, false)

/* Memory of a destroyed pool counts by itself until it is freed. */
static bool outlives(struct record *record, void *pool)
{
	if (record->pool != pool || !pool)
		return false;
	record->pool = NULL;
	record->size = record->asked;
	ledger_force(record->ledger, record->size);
	return false;
}

EXPORT CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
	driver_ready();
	ledger_remove_pool(pool);
	table_sift(outlives, pool);
	CUresult result = real(cuMemPoolDestroy)(pool);
	memory_look();
	return result;
}

#define TRIMS(function, parameters, arguments)              \
	EXPORT CUresult function parameters                 \
	{                                                   \
		driver_ready();                             \
		CUresult result = real(function) arguments; \
		memory_look();                              \
		return result;                              \
	}
TRIMS(cuMemPoolTrimTo, (CUmemoryPool pool, size_t keep), (pool, keep))
TRIMS(cuDeviceGraphMemTrim, (CUdevice device), (device))
