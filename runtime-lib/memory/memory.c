#include "memory/memory.h"

#define PITCH 512u /* least alignment of rows */

bool memory_claim(struct memory_claim *claim, uint64_t size)
{
	*claim = (struct memory_claim){.ledger = ledger_here()};
	if (!claim->ledger)
		return true;
	claim->size = size;
	claim->context = driver_context();
	return ledger_take(claim->ledger, size);
}

/* Calls no driver, but for a library. */
static void give_back(const struct record *record)
{
	if (record->kind == RECORD_CONTEXT)
		ledger_add_contexts((CUdevice)record->size, -1, true);
	else if (record->kind == RECORD_GRAPH)
		ledger_drop_graph(record->ledger, record->size);
	else if (record->ledger)
		ledger_drop(record->ledger, record->size);
	else
		ledger_add_variables(-(int64_t)record->size);
}

/* An allocation without a record stays charged. */
CUresult memory_made(const struct memory_claim *claim, CUresult result, enum record_kind kind,
		     uint64_t key)
{
	struct record record = {.kind = kind,
				.key = key,
				.ledger = claim->ledger,
				.size = claim->size,
				.context = claim->context};

	if (!claim->ledger && !claim->size)
		return result;
	if (result == CUDA_SUCCESS)
		table_put(&record);
	else
		give_back(&record);
	return result;
}

CUresult memory_released(const struct record *record, CUresult result)
{
	if (result == CUDA_SUCCESS)
		give_back(record);
	else
		table_put(record);
	return result;
}

struct renaming {
	CUcontext from, to;
};

static bool rename_context(struct record *record, void *userdata)
{
	const struct renaming *renaming = userdata;

	if (record->context && record->context == renaming->from)
		record->context = renaming->to;
	return false;
}

/* No driver's handle has the highest bit: it is an address of the process. */
CUcontext memory_take_context(CUcontext context)
{
	static _Atomic uint64_t names;
	CUcontext name = (CUcontext)(uintptr_t)(1ull << 63 | atomic_fetch_add(&names, 1));

	table_sift(rename_context, &(struct renaming){context, name});
	return name;
}

void memory_put_back(CUcontext taken, CUcontext context)
{
	table_sift(rename_context, &(struct renaming){taken, context});
}

static bool goes(struct record *record, void *taken)
{
	if (!record->context || record->context != taken)
		return false;
	give_back(record);
	return true;
}

void memory_forget_context(CUcontext taken)
{
	table_sift(goes, taken);
}

void memory_forget(void)
{
	table_forget();
	memory_map_forget();
	memory_limit_forget();
	ledger_forget();
}

static uint64_t pitched(uint64_t width, uint64_t height)
{
	uint64_t row = saturating_add(width, PITCH - 1);

	return saturating_mul(row - row % PITCH, height);
}

#define ALLOCATE(function, ...) MEMORY_ALLOCATES(function, RECORD_POINTER, __VA_ARGS__)
ALLOCATE(cuMemAlloc_v2, size, (CUdeviceptr * out, size_t size), (out, size))
ALLOCATE(cuMemAlloc, size, (CUdeviceptr_v1 * out, unsigned size), (out, size))
ALLOCATE(cuMemAllocManaged, size, (CUdeviceptr * out, size_t size, unsigned flags),
	 (out, size, flags))
ALLOCATE(cuMemAllocPitch_v2, pitched(width, height),
	 (CUdeviceptr * out, size_t *pitch, size_t width, size_t height, unsigned element),
	 (out, pitch, width, height, element))
ALLOCATE(cuMemAllocPitch, pitched(width, height),
	 (CUdeviceptr_v1 * out, unsigned *pitch, unsigned width, unsigned height, unsigned element),
	 (out, pitch, width, height, element))
MEMORY_RELEASES(cuMemFree_v2, RECORD_POINTER, address, (CUdeviceptr address), (address),
		memory_look())
MEMORY_RELEASES(cuMemFree, RECORD_POINTER, address, (CUdeviceptr_v1 address), (address),
		memory_look())

/* The GPU's memory as the container may use it. */

#define INFO(function, type)                                                                      \
	EXPORT CUresult function(type *free_bytes, type *total)                                   \
	{                                                                                         \
		struct ledger *ledger = ledger_here();                                            \
		uint64_t limit, reserved;                                                         \
                                                                                                  \
		CUresult result = real(function)(free_bytes, total);                              \
		if (result != CUDA_SUCCESS || !ledger || !ledger_view(ledger, &limit, &reserved)) \
			return result;                                                            \
		if (total)                                                                        \
			*total = (type)smaller(*total, limit);                                    \
		if (free_bytes)                                                                   \
			*free_bytes =                                                             \
				(type)smaller(*free_bytes, limit - smaller(reserved, limit));     \
		return result;                                                                    \
	}
INFO(cuMemGetInfo_v2, size_t)
INFO(cuMemGetInfo, unsigned)

#define TOTAL(function, type)                                                              \
	EXPORT CUresult function(type *bytes, CUdevice device)                             \
	{                                                                                  \
		uint64_t limit, reserved;                                                  \
                                                                                           \
		driver_ready();                                                            \
		CUresult result = real(function)(bytes, device);                           \
		struct ledger *ledger = result == CUDA_SUCCESS ? ledger_of(device) : NULL; \
		if (ledger && ledger_view(ledger, &limit, &reserved))                      \
			*bytes = (type)smaller(*bytes, limit);                             \
		return result;                                                             \
	}
TOTAL(cuDeviceTotalMem_v2, size_t)
TOTAL(cuDeviceTotalMem, unsigned)
