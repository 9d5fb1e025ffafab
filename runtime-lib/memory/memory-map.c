/* Physical memory and address ranges. Physical memory exists until its handles are released and its
 * mappings undone. The process that created it is charged. */
#include "memory/memory.h"
#include "shim/thread.h"

struct physical {
	struct ledger *ledger;
	uint64_t size;
	unsigned handles, mappings;
};

/* Of the counts and their records; never held over a driver call. A physical with a record exists.
 */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void memory_map_forget(void)
{
	pthread_mutex_init(&lock, NULL); /* its holder is not in this process */
}

static void put(enum record_kind kind, uint64_t key, uint64_t size, struct physical *physical)
{
	struct record record = {.kind = kind, .key = key, .size = size, .physical = physical};

	table_put(&record);
}

/* Frees it after its last handle and mapping. */
static void let_go(struct physical *physical)
{
	if (!physical || physical->handles || physical->mappings)
		return;
	ledger_drop(physical->ledger, physical->size);
	free(physical);
}

static CUresult create(CUmemGenericAllocationHandle *out, size_t size,
		       const CUmemAllocationProp *properties, unsigned long long flags)
{
	struct ledger *ledger = ledger_of(properties->location.id);
	struct physical *physical = ledger ? malloc(sizeof(*physical)) : NULL;

	if (ledger && (!physical || !ledger_take(ledger, size))) {
		free(physical);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	struct memory_wait wait = {0};
	CUresult result;
	do
		result = real(cuMemCreate)(out, size, properties, flags);
	while (memory_wait(&wait, ledger, size, result));
	if (result == CUDA_SUCCESS && physical) {
		*physical = (struct physical){.ledger = ledger, .size = size, .handles = 1};
		locked(&lock);
		put(RECORD_HANDLE, *out, 0, physical);
	} else if (physical) {
		ledger_drop(ledger, size);
		free(physical);
	}
	return result;
}

EXPORT CUresult cuMemCreate(CUmemGenericAllocationHandle *out, size_t size,
			    const CUmemAllocationProp *properties, unsigned long long flags)
{
	if (driver_ready() && properties &&
	    properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE)
		return create(out, size, properties, flags);
	return real(cuMemCreate)(out, size, properties, flags);
}

/* The driver may reuse the number of the last handle at once, so its record goes first. The
 * physical stays until release_end(). NULL: imported. */
static struct physical *release_begin(CUmemGenericAllocationHandle handle)
{
	struct record record;

	locked(&lock);
	if (!table_find(RECORD_HANDLE, handle, &record))
		record.physical = NULL;
	if (record.physical) {
		record.physical->mappings++;
		if (--record.physical->handles == 0)
			table_take(RECORD_HANDLE, handle, &record);
	}
	return record.physical;
}

static void release_end(struct physical *physical, CUmemGenericAllocationHandle handle, bool done)
{
	locked(&lock);
	physical->mappings--;
	if (!done && physical->handles++ == 0)
		put(RECORD_HANDLE, handle, 0, physical);
	let_go(physical);
}

EXPORT CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
	driver_ready();
	struct physical *physical = release_begin(handle);
	CUresult result = real(cuMemRelease)(handle);

	if (physical)
		release_end(physical, handle, result == CUDA_SUCCESS);
	return result;
}

EXPORT CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *out, void *address)
{
	struct record record;

	driver_ready();
	CUresult result = real(cuMemRetainAllocationHandle)(out, address);
	if (result != CUDA_SUCCESS)
		return result;
	locked(&lock);
	if (table_find(RECORD_HANDLE, *out, &record) ||
	    (table_find_mapping((uintptr_t)address, &record) && record.physical)) {
		record.physical->handles++;
		put(RECORD_HANDLE, *out, 0, record.physical);
	}
	return result;
}

EXPORT CUresult cuMemMap(CUdeviceptr address, size_t size, size_t offset,
			 CUmemGenericAllocationHandle handle, unsigned long long flags)
{
	struct record record;

	driver_ready();
	CUresult result = real(cuMemMap)(address, size, offset, handle, flags);
	if (result != CUDA_SUCCESS)
		return result;
	locked(&lock);
	/* Imported memory is recorded, too: cuMemUnmap() walks all mappings of a range. */
	if (!table_find(RECORD_HANDLE, handle, &record))
		record.physical = NULL;
	if (record.physical)
		record.physical->mappings++;
	put(RECORD_MAPPING, address, size, record.physical);
	return result;
}

EXPORT CUresult cuMemUnmap(CUdeviceptr address, size_t size)
{
	struct record record;

	driver_ready();
	CUresult result = real(cuMemUnmap)(address, size);
	if (result != CUDA_SUCCESS)
		return result;
	locked(&lock);
	for (uint64_t at = address; at - address < size; at += record.size) {
		if (!table_take(RECORD_MAPPING, at, &record) || !record.size)
			break;
		if (record.physical)
			record.physical->mappings--;
		let_go(record.physical);
	}
	return result;
}
