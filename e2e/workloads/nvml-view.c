/* Prints what NVML shows to a program, in lines that a script can compare. Built twice: nvml-view
 * opens the library with dlopen, as nvidia-smi does; nvml-view-linked is linked with it.
 * --allocate: holds this many MiB of the GPU's memory meanwhile. */
#include <dlfcn.h>
#include <stdio.h>

#define NVML_NO_UNVERSIONED_FUNC_DEFS
#include <nvml.h>

#include "workload.h"

#define PROCESSES_MAX 64u

#ifdef LINKED
#define FIND(function) (&(function))
#else
static void *library;
static void *find(const char *name)
{
	library = library ? library : dlopen("libnvidia-ml.so.1", RTLD_NOW);
	void *function = library ? dlsym(library, name) : NULL;
	if (!function)
		workload_fail("%s", dlerror());
	return function;
}
#define FIND(function) ((__typeof__(&(function)))find(#function))
#endif

/* A call that must succeed. */
#define NVML(function, ...)                                                              \
	do {                                                                             \
		nvmlReturn_t result_ = FIND(function)(__VA_ARGS__);                      \
		if (result_ != NVML_SUCCESS)                                             \
			workload_fail(#function ": %s", FIND(nvmlErrorString)(result_)); \
	} while (0)

static void show_memory(nvmlDevice_t device)
{
	nvmlMemory_v2_t v2 = {.version = nvmlMemory_v2};
	nvmlMemory_t v1;

	NVML(nvmlDeviceGetMemoryInfo, device, &v1);
	NVML(nvmlDeviceGetMemoryInfo_v2, device, &v2);
	printf("memory total %llu used %llu free %llu MiB\n", v1.total >> 20, v1.used >> 20,
	       v1.free >> 20);
	printf("memory_v2 total %llu used %llu free %llu reserved %llu MiB\n", v2.total >> 20,
	       v2.used >> 20, v2.free >> 20, v2.reserved >> 20);
}

static void show_processes(nvmlDevice_t device)
{
	nvmlProcessInfo_t list[PROCESSES_MAX];
	unsigned n = 0;

	nvmlReturn_t first = FIND(nvmlDeviceGetComputeRunningProcesses_v3)(device, &n, NULL);
	if (first != (n ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS))
		workload_fail("%u processes do not fit into no room, but NVML says %d", n,
			      (int)first);
	n = PROCESSES_MAX;
	NVML(nvmlDeviceGetComputeRunningProcesses_v3, device, &n, list);
	printf("processes %u\n", n);
	for (unsigned i = 0; i < n; i++) {
		char name[64] = "?";
		FIND(nvmlSystemGetProcessName)(list[i].pid, name, sizeof(name));
		printf("process %s %llu MiB\n", name, list[i].usedGpuMemory >> 20);
	}
}

static void show_gpu(unsigned at)
{
	char uuid[NVML_DEVICE_UUID_V2_BUFFER_SIZE];
	nvmlDevice_t device, again;
	nvmlPciInfo_t pci;
	unsigned index;

	NVML(nvmlDeviceGetHandleByIndex_v2, at, &device);
	NVML(nvmlDeviceGetUUID, device, uuid, sizeof(uuid));
	NVML(nvmlDeviceGetIndex, device, &index);
	NVML(nvmlDeviceGetPciInfo_v3, device, &pci);
	NVML(nvmlDeviceGetHandleByUUID, uuid, &again);
	if (again == device)
		NVML(nvmlDeviceGetHandleByPciBusId_v2, pci.busId, &again);
	if (again != device || index != at)
		workload_fail("GPU %u is not itself", at);
	printf("gpu %u %s\n", index, uuid);
	show_memory(device);
	show_processes(device);
}

int main(int argc, char **argv)
{
	struct workload w = {.seed = 1};
	uint64_t mebibytes = 0;
	unsigned n;
	const struct workload_option own[] = {
		{"allocate", OPTION_NUMBER, &mebibytes, "MiB of the GPU's memory"},
		{0},
	};

	workload_parse(&w, argc, argv, "what NVML shows", own);
	if (mebibytes) {
		CUdeviceptr memory;
		workload_open(&w, NULL);
		CU(cuMemAlloc(&memory, (size_t)mebibytes << 20));
	}
	NVML(nvmlInit_v2);
	NVML(nvmlDeviceGetCount_v2, &n);
	printf("gpus %u\n", n);
	for (unsigned i = 0; i < n; i++)
		show_gpu(i);
	workload_ready(&w);
	while (w.stop_file && !workload_stopped(&w))
		sleep_until_ns(now_ns() + 10000000);
	NVML(nvmlShutdown);
	return 0;
}
