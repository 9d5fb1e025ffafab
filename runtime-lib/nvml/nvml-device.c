/* The GPUs that the container sees: the one of WEIR_GPU, which the device plugin sets, as number 0.
 * Without the variable, or if NVML does not know that GPU, all of them. */
#include "nvml/nvml.h"

#include <stdlib.h>

static bool own_gpu(nvmlDevice_t *out)
{
	const char *uuid = getenv("WEIR_GPU");

	return nvml_ready() && uuid && real(nvmlDeviceGetHandleByUUID)(uuid, out) == NVML_SUCCESS;
}

/* Hides another container's GPU. */
static nvmlReturn_t found(nvmlReturn_t result, const nvmlDevice_t *device)
{
	nvmlDevice_t own;

	if (result == NVML_SUCCESS && own_gpu(&own) && *device != own)
		return NVML_ERROR_NOT_FOUND;
	return result;
}

static nvmlReturn_t get_count(__typeof__(&nvmlDeviceGetCount) function, unsigned *count)
{
	nvmlDevice_t own;

	nvmlReturn_t result = function(count);
	if (result == NVML_SUCCESS && own_gpu(&own))
		*count = 1;
	return result;
}

EXPORT nvmlReturn_t nvmlDeviceGetCount(unsigned *count)
{
	nvml_ready();
	return get_count(real(nvmlDeviceGetCount), count);
}

EXPORT nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *count)
{
	nvml_ready();
	return get_count(real(nvmlDeviceGetCount_v2), count);
}

static nvmlReturn_t get_by_index(__typeof__(&nvmlDeviceGetHandleByIndex) function, unsigned index,
				 nvmlDevice_t *device)
{
	nvmlDevice_t own;

	if (!device || !own_gpu(&own))
		return function(index, device);
	if (index)
		return NVML_ERROR_INVALID_ARGUMENT;
	*device = own;
	return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned index, nvmlDevice_t *device)
{
	nvml_ready();
	return get_by_index(real(nvmlDeviceGetHandleByIndex), index, device);
}

EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *device)
{
	nvml_ready();
	return get_by_index(real(nvmlDeviceGetHandleByIndex_v2), index, device);
}

EXPORT nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned *index)
{
	nvmlDevice_t own;

	nvml_ready();
	nvmlReturn_t result = real(nvmlDeviceGetIndex)(device, index);
	if (result == NVML_SUCCESS && own_gpu(&own) && device == own)
		*index = 0;
	return result;
}

#define FIND_BY(key_type, function)                                      \
	EXPORT nvmlReturn_t function(key_type key, nvmlDevice_t *device) \
	{                                                                \
		nvml_ready();                                            \
		return found(real(function)(key, device), device);       \
	}

FIND_BY(const char *, nvmlDeviceGetHandleBySerial)
FIND_BY(const char *, nvmlDeviceGetHandleByUUID)
FIND_BY(const nvmlUUID_t *, nvmlDeviceGetHandleByUUIDV)
FIND_BY(const char *, nvmlDeviceGetHandleByPciBusId)
FIND_BY(const char *, nvmlDeviceGetHandleByPciBusId_v2)
