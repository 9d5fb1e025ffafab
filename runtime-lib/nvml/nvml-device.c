/* The GPUs that the container sees: the one of WEIR_GPU, which the device plugin sets, as number 0.
 * Without the variable, or if NVML does not know that GPU, all of them. */
#include "nvml/nvml.h"

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

#define COUNT(function)                                      \
	EXPORT nvmlReturn_t function(unsigned *count)        \
	{                                                    \
		nvmlDevice_t own;                            \
                                                             \
		nvml_ready();                                \
		nvmlReturn_t result = real(function)(count); \
		if (result == NVML_SUCCESS && own_gpu(&own)) \
			*count = 1;                          \
		return result;                               \
	}
COUNT(nvmlDeviceGetCount)
COUNT(nvmlDeviceGetCount_v2)

#define BY_INDEX(function)                                                 \
	EXPORT nvmlReturn_t function(unsigned index, nvmlDevice_t *device) \
	{                                                                  \
		nvmlDevice_t own;                                          \
                                                                           \
		nvml_ready();                                              \
		if (!device || !own_gpu(&own))                             \
			return real(function)(index, device);              \
		if (index)                                                 \
			return NVML_ERROR_INVALID_ARGUMENT;                \
		*device = own;                                             \
		return NVML_SUCCESS;                                       \
	}
BY_INDEX(nvmlDeviceGetHandleByIndex)
BY_INDEX(nvmlDeviceGetHandleByIndex_v2)

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
