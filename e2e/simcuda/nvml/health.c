/* A GPU's health, read from files in its folder. `ecc`: the number of uncorrected memory errors
 * (default 0). `remap-failed`: exists when rows of memory could not be remapped. `recovery`: the
 * recovery that the driver wants (no file: the driver reports none). */
#include "simcuda/nvml/state.h"

#include <stdio.h>
#include <unistd.h>

/* False: there is no such file, or no number in it. */
static bool read_number(unsigned gpu, const char *name, unsigned long long *out)
{
	char path[300];
	bool good;

	snprintf(path, sizeof(path), "%s/gpu%u/%s", nvml_machine()->folder, gpu, name);
	FILE *file = fopen(path, "re");
	if (!file)
		return false;
	good = fscanf(file, "%llu", out) == 1;
	fclose(file);
	return good;
}

nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, nvmlMemoryErrorType_t type,
					 nvmlEccCounterType_t counter, unsigned long long *out)
{
	unsigned gpu;

	RETURN_IF(nvml_device(device, &gpu));
	if (!out || counter >= NVML_ECC_COUNTER_TYPE_COUNT)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (type != NVML_MEMORY_ERROR_TYPE_UNCORRECTED || !read_number(gpu, "ecc", out))
		*out = 0;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t device, unsigned *corrected,
				       unsigned *uncorrected, unsigned *pending, unsigned *failed)
{
	char path[300];
	unsigned gpu;

	RETURN_IF(nvml_device(device, &gpu));
	if (!corrected || !uncorrected || !pending || !failed)
		return NVML_ERROR_INVALID_ARGUMENT;
	snprintf(path, sizeof(path), "%s/gpu%u/remap-failed", nvml_machine()->folder, gpu);
	*corrected = *uncorrected = *pending = 0;
	*failed = access(path, F_OK) == 0;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int n, nvmlFieldValue_t *values)
{
	unsigned gpu;

	RETURN_IF(nvml_device(device, &gpu));
	if (n < 1 || !values)
		return NVML_ERROR_INVALID_ARGUMENT;
	for (int i = 0; i < n; i++) {
		unsigned long long action;
		bool told = values[i].fieldId == NVML_FI_DEV_GET_GPU_RECOVERY_ACTION &&
			    read_number(gpu, "recovery", &action);

		values[i].nvmlReturn = told ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
		if (told) {
			values[i].valueType = NVML_VALUE_TYPE_UNSIGNED_INT;
			values[i].value.uiVal = (unsigned)action;
		}
	}
	return NVML_SUCCESS;
}
