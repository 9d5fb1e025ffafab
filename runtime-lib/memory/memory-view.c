/* The GPU's memory as its container may use it. */
#include "memory/memory.h"

#include <stddef.h>

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

EXPORT CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
	struct ledger *ledger = ledger_here();
	uint64_t limit, reserved;

	CUresult result = real(cuMemGetInfo_v2)(free_bytes, total);
	if (result != CUDA_SUCCESS || !ledger || !ledger_view(ledger, &limit, &reserved))
		return result;
	if (total)
		*total = least(*total, limit);
	if (free_bytes)
		*free_bytes = least(*free_bytes, limit - least(reserved, limit));
	return result;
}

EXPORT CUresult cuMemGetInfo(unsigned *free_bytes, unsigned *total)
{
	struct ledger *ledger = ledger_here();
	uint64_t limit, reserved;

	CUresult result = real(cuMemGetInfo)(free_bytes, total);
	if (result != CUDA_SUCCESS || !ledger || !ledger_view(ledger, &limit, &reserved))
		return result;
	if (total)
		*total = (unsigned)least(*total, limit);
	if (free_bytes)
		*free_bytes = (unsigned)least(*free_bytes, limit - least(reserved, limit));
	return result;
}

EXPORT CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
	uint64_t limit, reserved;

	driver_ready();
	CUresult result = real(cuDeviceTotalMem_v2)(bytes, device);
	struct ledger *ledger = result == CUDA_SUCCESS ? ledger_of(device) : NULL;
	if (ledger && ledger_view(ledger, &limit, &reserved))
		*bytes = least(*bytes, limit);
	return result;
}

EXPORT CUresult cuDeviceTotalMem(unsigned *bytes, CUdevice device)
{
	uint64_t limit, reserved;

	driver_ready();
	CUresult result = real(cuDeviceTotalMem)(bytes, device);
	struct ledger *ledger = result == CUDA_SUCCESS ? ledger_of(device) : NULL;
	if (ledger && ledger_view(ledger, &limit, &reserved))
		*bytes = (unsigned)least(*bytes, limit);
	return result;
}
