#include "memory/memory.h"

#include <stddef.h>

#define PITCH 512u /* rows are at least aligned so */

bool memory_claim(struct memory_claim *claim, uint64_t size)
{
	*claim = (struct memory_claim){.ledger = ledger_here(), .size = size};
	if (!claim->ledger)
		return true;
	if (real(cuCtxGetCurrent)(&claim->context) != CUDA_SUCCESS)
		claim->context = NULL;
	return ledger_take(claim->ledger, size);
}

/* One that cannot be recorded stays charged: there is no memory for a record of 64 bytes. */
CUresult memory_made(const struct memory_claim *claim, CUresult result, enum record_kind kind,
		     uint64_t key)
{
	struct record record = {.kind = kind,
				.key = key,
				.ledger = claim->ledger,
				.size = claim->size,
				.context = claim->context};

	if (!claim->ledger)
		return result;
	if (result == CUDA_SUCCESS)
		table_put(&record);
	else
		ledger_drop(claim->ledger, claim->size);
	return result;
}

bool memory_releasing(struct record *record, enum record_kind kind, uint64_t key)
{
	return table_take(kind, key, record);
}

CUresult memory_released(const struct record *record, CUresult result)
{
	if (result == CUDA_SUCCESS)
		ledger_drop(record->ledger, record->size);
	else
		table_put(record);
	return result;
}

static bool goes(struct record *record, void *context)
{
	if (!record->context || record->context != context)
		return false;
	ledger_drop(record->ledger, record->size);
	return true;
}

void memory_forget_context(CUcontext context)
{
	table_sift(goes, context);
}

void memory_forget(void)
{
	table_forget();
	memory_map_forget();
	ledger_forget();
}

EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *out, size_t size)
{
	struct memory_claim claim;

	if (!memory_claim(&claim, size))
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result = real(cuMemAlloc_v2)(out, size);
	return memory_made(&claim, result, RECORD_POINTER, result ? 0 : *out);
}

EXPORT CUresult cuMemAlloc(CUdeviceptr_v1 *out, unsigned size)
{
	struct memory_claim claim;

	if (!memory_claim(&claim, size))
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result = real(cuMemAlloc)(out, size);
	return memory_made(&claim, result, RECORD_POINTER, result ? 0 : *out);
}

static uint64_t pitched(uint64_t width, uint64_t height)
{
	uint64_t bytes, row = width > UINT64_MAX - PITCH ? UINT64_MAX : width + PITCH - 1;

	return __builtin_mul_overflow(row - row % PITCH, height, &bytes) ? UINT64_MAX : bytes;
}

EXPORT CUresult cuMemAllocPitch_v2(CUdeviceptr *out, size_t *pitch, size_t width, size_t height,
				   unsigned element)
{
	struct memory_claim claim;

	if (!memory_claim(&claim, pitched(width, height)))
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result = real(cuMemAllocPitch_v2)(out, pitch, width, height, element);
	return memory_made(&claim, result, RECORD_POINTER, result ? 0 : *out);
}

EXPORT CUresult cuMemAllocPitch(CUdeviceptr_v1 *out, unsigned *pitch, unsigned width,
				unsigned height, unsigned element)
{
	struct memory_claim claim;

	if (!memory_claim(&claim, pitched(width, height)))
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result = real(cuMemAllocPitch)(out, pitch, width, height, element);
	return memory_made(&claim, result, RECORD_POINTER, result ? 0 : *out);
}

EXPORT CUresult cuMemAllocManaged(CUdeviceptr *out, size_t size, unsigned flags)
{
	struct memory_claim claim;

	if (!memory_claim(&claim, size))
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result = real(cuMemAllocManaged)(out, size, flags);
	return memory_made(&claim, result, RECORD_POINTER, result ? 0 : *out);
}

EXPORT CUresult cuMemFree_v2(CUdeviceptr address)
{
	struct record record;
	bool known = memory_releasing(&record, RECORD_POINTER, address);

	driver_ready();
	CUresult result = real(cuMemFree_v2)(address);
	if (known)
		memory_released(&record, result);
	memory_look();
	return result;
}

EXPORT CUresult cuMemFree(CUdeviceptr_v1 address)
{
	struct record record;
	bool known = memory_releasing(&record, RECORD_POINTER, address);

	driver_ready();
	CUresult result = real(cuMemFree)(address);
	if (known)
		memory_released(&record, result);
	return result;
}
