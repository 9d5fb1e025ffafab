/* libnvidia-ml.so.1 of the simulated machine: the functions that the device plugin and the agent
 * use. It reads the shared file that the drivers of all processes write. */
#include "simcuda/nvml/state.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "weir/base.h"

#define HANDLE_BASE    0x4e564d4c0000u
#define PROCESSES_MAX  MACHINE_PROCESSES
#define DRIVER_VERSION "580.sim"

static struct {
	pthread_mutex_t lock;
	unsigned users; /* nvmlInit() without nvmlShutdown() */
	bool open;
	struct machine machine;
	struct {
		uint64_t busy, at;
		unsigned percent;
	} sample[MACHINE_GPUS];
} nvml = {.lock = PTHREAD_MUTEX_INITIALIZER};

struct machine *nvml_machine(void)
{
	struct machine *m;

	pthread_mutex_lock(&nvml.lock);
	m = nvml.users ? &nvml.machine : NULL;
	pthread_mutex_unlock(&nvml.lock);
	return m;
}

static void forked(void)
{
	machine_forget(&nvml.machine);
}

/* The machine stays open: closing its files would drop the locks of the driver in this process. */
static nvmlReturn_t init(void)
{
	int r = 0;

	pthread_mutex_lock(&nvml.lock);
	if (!nvml.open) {
		r = machine_open(&nvml.machine, MACHINE_OBSERVER);
		nvml.open = !r;
		if (nvml.open)
			pthread_atfork(NULL, NULL, forked);
		if (nvml.open) {
			machine_rm_make_nodes(&nvml.machine);
			/* The driver of this process does it, too, and knows its process better. */
			machine_rm_trap(&nvml.machine, true);
		}
	}
	if (!r)
		nvml.users++;
	pthread_mutex_unlock(&nvml.lock);
	return r ? NVML_ERROR_DRIVER_NOT_LOADED : NVML_SUCCESS;
}

nvmlReturn_t nvmlInit_v2(void)
{
	return init();
}

nvmlReturn_t nvmlInit(void)
{
	return init();
}

nvmlReturn_t nvmlInitWithFlags(unsigned int flags)
{
	(void)flags;
	return init();
}

nvmlReturn_t nvmlShutdown(void)
{
	nvmlReturn_t r = NVML_SUCCESS;

	pthread_mutex_lock(&nvml.lock);
	if (nvml.users)
		nvml.users--;
	else
		r = NVML_ERROR_UNINITIALIZED;
	pthread_mutex_unlock(&nvml.lock);
	return r;
}

const char *nvmlErrorString(nvmlReturn_t result)
{
	static const struct {
		nvmlReturn_t result;
		const char *text;
	} texts[] = {
		{NVML_SUCCESS, "Success"},
		{NVML_ERROR_UNINITIALIZED, "Uninitialized"},
		{NVML_ERROR_INVALID_ARGUMENT, "Invalid Argument"},
		{NVML_ERROR_NOT_SUPPORTED, "Not Supported"},
		{NVML_ERROR_NOT_FOUND, "Not Found"},
		{NVML_ERROR_INSUFFICIENT_SIZE, "Insufficient Size"},
		{NVML_ERROR_DRIVER_NOT_LOADED, "Driver Not Loaded"},
		{NVML_ERROR_TIMEOUT, "Timeout"},
		{NVML_ERROR_GPU_IS_LOST, "GPU is lost"},
	};

	for (size_t i = 0; i < countof(texts); i++)
		if (texts[i].result == result)
			return texts[i].text;
	return "Unknown Error";
}

static nvmlReturn_t put(char *out, unsigned int length, const char *text)
{
	if (!out)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (length <= strlen(text))
		return NVML_ERROR_INSUFFICIENT_SIZE;
	memcpy(out, text, strlen(text) + 1);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length)
{
	return nvml_machine() ? put(version, length, DRIVER_VERSION) : NVML_ERROR_UNINITIALIZED;
}

nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned int length)
{
	return nvml_machine() ? put(version, length, "13." DRIVER_VERSION)
			      : NVML_ERROR_UNINITIALIZED;
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version)
{
	if (!version)
		return NVML_ERROR_INVALID_ARGUMENT;
	*version = 13000;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version)
{
	return nvmlSystemGetCudaDriverVersion_v2(version);
}

nvmlReturn_t nvmlSystemGetProcessName(unsigned int pid, char *name, unsigned int length)
{
	char path[64], text[256] = "";
	FILE *file;

	if (!name || !length)
		return NVML_ERROR_INVALID_ARGUMENT;
	snprintf(path, sizeof(path), "/proc/%u/cmdline", pid);
	file = fopen(path, "re");
	if (!file)
		return NVML_ERROR_NOT_FOUND;
	if (!fgets(text, sizeof(text), file)) /* the first argument ends with NUL */
		text[0] = '\0';
	fclose(file);
	snprintf(name, length, "%s", text);
	return NVML_SUCCESS;
}

nvmlDevice_t nvml_handle(unsigned gpu)
{
	return (nvmlDevice_t)(uintptr_t)(HANDLE_BASE + 16u * (gpu + 1));
}

nvmlReturn_t nvml_device(nvmlDevice_t device, unsigned *gpu)
{
	const struct machine *m = nvml_machine();
	char path[300];

	if (!m)
		return NVML_ERROR_UNINITIALIZED;
	for (unsigned i = 0; i < m->config.gpus; i++) {
		if (nvml_handle(i) != device)
			continue;
		*gpu = i;
		snprintf(path, sizeof(path), "%s/gpu%u/lost", m->folder, i);
		return access(path, F_OK) == 0 ? NVML_ERROR_GPU_IS_LOST : NVML_SUCCESS;
	}
	return NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count)
{
	const struct machine *m = nvml_machine();

	if (!m)
		return NVML_ERROR_UNINITIALIZED;
	if (!count)
		return NVML_ERROR_INVALID_ARGUMENT;
	*count = m->config.gpus;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCount(unsigned int *count)
{
	return nvmlDeviceGetCount_v2(count);
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device)
{
	const struct machine *m = nvml_machine();
	unsigned gpu;

	if (!m)
		return NVML_ERROR_UNINITIALIZED;
	if (!device || index >= m->config.gpus)
		return NVML_ERROR_INVALID_ARGUMENT;
	RETURN_IF(nvml_device(nvml_handle(index), &gpu));
	*device = nvml_handle(gpu);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned int index, nvmlDevice_t *device)
{
	return nvmlDeviceGetHandleByIndex_v2(index, device);
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int length)
{
	char text[64];
	unsigned gpu;

	RETURN_IF(nvml_device(device, &gpu));
	machine_uuid_text(gpu, text);
	return put(uuid, length, text);
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device)
{
	const struct machine *m = nvml_machine();
	char text[64];

	if (!m)
		return NVML_ERROR_UNINITIALIZED;
	if (!uuid || !device)
		return NVML_ERROR_INVALID_ARGUMENT;
	for (unsigned i = 0; i < m->config.gpus; i++) {
		machine_uuid_text(i, text);
		if (!strcmp(text, uuid))
			return nvmlDeviceGetHandleByIndex_v2(i, device);
	}
	return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
	unsigned gpu, bus;

	RETURN_IF(nvml_device(device, &gpu));
	if (!pci)
		return NVML_ERROR_INVALID_ARGUMENT;
	bus = gpu + MACHINE_FIRST_BUS;
	*pci = (nvmlPciInfo_t){.bus = bus, .pciDeviceId = 0x233510de};
	snprintf(pci->busIdLegacy, sizeof(pci->busIdLegacy), "0000:%02X:00.0", bus);
	snprintf(pci->busId, sizeof(pci->busId), "00000000:%02X:00.0", bus);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPciInfo(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
	return nvmlDeviceGetPciInfo_v3(device, pci);
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *id, nvmlDevice_t *device)
{
	unsigned domain, bus, slot;

	if (!id || !device || sscanf(id, "%x:%x:%x", &domain, &bus, &slot) != 3)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (domain || slot || bus < MACHINE_FIRST_BUS)
		return NVML_ERROR_NOT_FOUND;
	return nvmlDeviceGetHandleByIndex_v2(bus - MACHINE_FIRST_BUS, device);
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char *id, nvmlDevice_t *device)
{
	return nvmlDeviceGetHandleByPciBusId_v2(id, device);
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned int length)
{
	unsigned gpu;

	RETURN_IF(nvml_device(device, &gpu));
	return put(name, length, MACHINE_GPU_NAME);
}

/* Functions that return one number. */
#define NUMBER(function, type, value)                        \
	nvmlReturn_t function(nvmlDevice_t device, type out) \
	{                                                    \
		unsigned gpu;                                \
                                                             \
		RETURN_IF(nvml_device(device, &gpu));        \
		if (!out)                                    \
			return NVML_ERROR_INVALID_ARGUMENT;  \
		*out = value;                                \
		return NVML_SUCCESS;                         \
	}

NUMBER(nvmlDeviceGetIndex, unsigned int *, gpu)
NUMBER(nvmlDeviceGetMinorNumber, unsigned int *, gpu)
NUMBER(nvmlDeviceGetBrand, nvmlBrandType_t *, NVML_BRAND_NVIDIA)
NUMBER(nvmlDeviceGetArchitecture, nvmlDeviceArchitecture_t *, NVML_DEVICE_ARCH_HOPPER)
NUMBER(nvmlDeviceGetComputeMode, nvmlComputeMode_t *, NVML_COMPUTEMODE_DEFAULT)
NUMBER(nvmlDeviceGetPersistenceMode, nvmlEnableState_t *, NVML_FEATURE_ENABLED)
NUMBER(nvmlDeviceGetNumaNodeId, unsigned int *, 0)
NUMBER(nvmlDeviceIsMigDeviceHandle, unsigned int *, 0)
NUMBER(nvmlDeviceGetMaxMigDeviceCount, unsigned int *, 0)

nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned int *current, unsigned int *pending)
{
	unsigned gpu;

	RETURN_IF(nvml_device(device, &gpu));
	if (!current || !pending)
		return NVML_ERROR_INVALID_ARGUMENT;
	*current = *pending = NVML_DEVICE_MIG_DISABLE;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor)
{
	unsigned gpu;

	RETURN_IF(nvml_device(device, &gpu));
	if (!major || !minor)
		return NVML_ERROR_INVALID_ARGUMENT;
	*major = 9;
	*minor = 0;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryAffinity(nvmlDevice_t device, unsigned int size, unsigned long *set,
					 nvmlAffinityScope_t scope)
{
	const struct machine *m = nvml_machine();
	unsigned gpu;

	RETURN_IF(nvml_device(device, &gpu));
	if (!set || !size || scope > NVML_AFFINITY_SCOPE_SOCKET)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (!m->config.numa)
		return NVML_ERROR_NOT_SUPPORTED;
	memset(set, 0, size * sizeof(*set));
	set[0] = 1ul << gpu * m->config.numa / m->config.gpus;
	return NVML_SUCCESS;
}

/* All CPUs are equally near. */
nvmlReturn_t nvmlDeviceGetCpuAffinity(nvmlDevice_t device, unsigned int size, unsigned long *set)
{
	unsigned long cpus = (unsigned long)sysconf(_SC_NPROCESSORS_CONF), bits = 8 * sizeof(long);
	unsigned gpu;

	RETURN_IF(nvml_device(device, &gpu));
	if (!set || !size)
		return NVML_ERROR_INVALID_ARGUMENT;
	memset(set, 0, size * sizeof(*set));
	for (unsigned long i = 0; i < cpus && i < size * bits; i++)
		set[i / bits] |= 1ul << i % bits;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *out)
{
	struct machine *m = nvml_machine();
	unsigned gpu;

	RETURN_IF(nvml_device(device, &gpu));
	if (!out)
		return NVML_ERROR_INVALID_ARGUMENT;
	out->total = m->config.memory;
	out->used = machine_used(m, gpu);
	out->free = out->total - out->used;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *out)
{
	nvmlMemory_t memory;

	if (!out)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (out->version != nvmlMemory_v2)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	RETURN_IF(nvmlDeviceGetMemoryInfo(device, &memory));
	out->total = memory.total;
	out->reserved = 0;
	out->used = memory.used;
	out->free = memory.free;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int *count,
						     nvmlProcessInfo_t *out)
{
	cleanup(freep) struct machine_process *list = NULL;
	struct machine *m = nvml_machine();
	unsigned gpu, room;
	size_t n;

	RETURN_IF(nvml_device(device, &gpu));
	if (!count || (*count && !out))
		return NVML_ERROR_INVALID_ARGUMENT;
	list = calloc(PROCESSES_MAX, sizeof(*list));
	if (!list)
		return NVML_ERROR_MEMORY;
	n = machine_processes(m, gpu, list, PROCESSES_MAX);
	room = *count;
	*count = (unsigned)n;
	if (room < n)
		return NVML_ERROR_INSUFFICIENT_SIZE;
	for (size_t i = 0; i < n; i++)
		out[i] = (nvmlProcessInfo_t){list[i].pid, list[i].memory, 0xffffffffu, 0xffffffffu};
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t device, unsigned int *count,
						     nvmlProcessInfo_v2_t *out)
{
	return nvmlDeviceGetComputeRunningProcesses_v3(device, count, out);
}

static nvmlReturn_t no_processes(nvmlDevice_t device, unsigned int *count)
{
	unsigned gpu;

	RETURN_IF(nvml_device(device, &gpu));
	if (!count)
		return NVML_ERROR_INVALID_ARGUMENT;
	*count = 0;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t device, unsigned int *count,
						      nvmlProcessInfo_t *out)
{
	(void)out;
	return no_processes(device, count);
}

nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int *count,
							nvmlProcessInfo_t *out)
{
	(void)out;
	return no_processes(device, count);
}

/* The part of the time since the last call in which a block ran on the GPU. */
static unsigned utilization(struct machine *m, unsigned gpu)
{
	struct timespec t;
	uint64_t now, busy = machine_busy_time(m, gpu);
	unsigned percent;

	clock_gettime(CLOCK_MONOTONIC, &t);
	now = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
	pthread_mutex_lock(&nvml.lock);
	if (now - nvml.sample[gpu].at >= 1000000) {
		uint64_t spent = busy - nvml.sample[gpu].busy, span = now - nvml.sample[gpu].at;

		nvml.sample[gpu].percent =
			nvml.sample[gpu].at ? (unsigned)(100 * spent / span) : spent > 0;
		nvml.sample[gpu].busy = busy;
		nvml.sample[gpu].at = now;
	}
	percent = nvml.sample[gpu].percent;
	pthread_mutex_unlock(&nvml.lock);
	return percent < 100 ? percent : 100;
}

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *out)
{
	struct machine *m = nvml_machine();
	unsigned gpu;

	RETURN_IF(nvml_device(device, &gpu));
	if (!out)
		return NVML_ERROR_INVALID_ARGUMENT;
	out->gpu = utilization(m, gpu);
	out->memory = (unsigned)(100 * machine_used(m, gpu) / m->config.memory);
	return NVML_SUCCESS;
}
