/* The part of NVML that the agent and the device plugin use. It is loaded with dlopen(), so that
 * both start on a machine without a driver.
 *
 * The functions have the prototypes of the toolkit's nvml.h. */
#pragma once

#include <nvml.h>
#include <stdbool.h>
#include <stddef.h>

/* One row each: the exported name, and whether the function is optional. */
/* clang-format off */
#define NVML_FUNCTIONS(row) \
	row(nvmlInit_v2, true) \
	row(nvmlShutdown, true) \
	row(nvmlDeviceGetCount_v2, true) \
	row(nvmlDeviceGetHandleByIndex_v2, true) \
	row(nvmlDeviceGetUUID, true) \
	row(nvmlDeviceGetName, true) \
	row(nvmlDeviceGetMemoryInfo, true) \
	row(nvmlDeviceGetMinorNumber, false) \
	row(nvmlDeviceGetArchitecture, false) \
	row(nvmlDeviceGetMigMode, false) \
	row(nvmlDeviceGetMemoryAffinity, false) \
	row(nvmlDeviceGetPciInfo_v3, false) \
	row(nvmlDeviceGetSupportedEventTypes, false) \
	row(nvmlDeviceRegisterEvents, false) \
	row(nvmlEventSetCreate, false) \
	row(nvmlEventSetWait_v2, false) \
	row(nvmlEventSetFree, false) \
	row(nvmlDeviceGetTotalEccErrors, false) \
	row(nvmlDeviceGetRemappedRows, false) \
	row(nvmlDeviceGetFieldValues, false) \
	row(nvmlDeviceGetComputeRunningProcesses, false) \
	row(nvmlDeviceGetMPSComputeRunningProcesses, false) \
	row(nvmlDeviceGetHandleByUUID, false) \
	row(nvmlDeviceGetProcessUtilization, false) \
	row(nvmlSystemGetDriverVersion, false) \
	row(nvmlSystemGetCudaDriverVersion_v2, false) \
	row(nvmlErrorString, false)
/* clang-format on */

struct nvml {
	void *library; /* NULL: not open */
	char path[256];
/* An optional function that the library lacks is NULL. */
#define NVML_FIELD(name, required) __typeof__(&name) name;
	NVML_FUNCTIONS(NVML_FIELD)
#undef NVML_FIELD
};

/* Opens the library and calls nvmlInit. @path: its place; NULL or empty: the dynamic loader's
 * search path, then the folders that drivers and the NVIDIA container runtime use. 0; -ENOENT: no
 * library; -ENXIO: no usable driver or GPU; -ENOSYS: the library lacks a function. Logs nothing:
 * @message (at least 256 bytes) gets one line. */
int nvml_open(struct nvml *out, const char *path, char *message, size_t message_size);
void nvml_close(struct nvml *nvml);
const char *nvml_error(const struct nvml *nvml, nvmlReturn_t error);
